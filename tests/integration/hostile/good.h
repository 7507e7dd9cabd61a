/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_GOOD_H
#define TESTS_INTEGRATION_HOSTILE_GOOD_H

/* Well-behaved clients, next to the attackers. Three processes:
 *
 *   streamer  one stream over HTTP after the other; the times between two chunks are its gaps
 *   asker     five tokens over HTTP, each time on a new connection; how long that takes is its wait
 *   neighbour the streamer's request by libquern, from the pool itself: what of a gap is not the gateway's
 *
 * A client that is told to retry (429, 503) does so, and the time counts as waiting. Anything else but the
 * right answer is a failure and ends the client. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    GOOD_CLIENTS = 3,
    GOOD_TOKENS = 300,
    GOOD_SEED = 7,
    GOOD_TEXT = 16384, /* bytes of that many tokens, at most */
    GOOD_TIMES = 1 << 16,
    GOOD_LOOK_MS = 50,   /* how often a waiting client checks whether the test is over */
    GOOD_PATIENCE_S = 60 /* without receiving a byte */
};
#define GOOD_PROMPT "on and on"

enum good_phase { GOOD_CALM, GOOD_ATTACKED, GOOD_PHASES };

/* The times of one process in one phase. */
struct good_times {
    long n; /* beyond GOOD_TIMES only the worst is kept */
    uint32_t worst_us;
    uint32_t us[GOOD_TIMES];
};

/* Shared with the clients. */
struct good {
    bool over;
    int phase; /* enum good_phase */
    struct good_times gaps[GOOD_PHASES], waits[GOOD_PHASES], pool_gaps[GOOD_PHASES];
    long streams, answers; /* whole ones */
    long told_to_wait[GOOD_PHASES];
    long failed;
    char failure[400]; /* the first */
};

/* The clients' targets and expected answers. */
struct good_target {
    int port;
    const char *key;
    const char *endpoint;     /* of the pool */
    char expected[GOOD_TEXT]; /* text of GOOD_TOKENS tokens, from good_learn */
};

/* Gets the expected text from an undisturbed pool. 0 or -errno, with a line on stderr. */
int good_learn(struct good_target *target);

/* Starts the clients and waits until each was served; false after a minute, or if one failed. */
bool good_start(struct good *good, const struct good_target *target, pid_t ret_pids[GOOD_CLIENTS]);

/* The median in milliseconds; 0 if there are no times. Sorts the times. */
double good_median_ms(struct good_times *times);

/* ---- for the clients ---- */

bool good_is_over(const struct good *good);
void good_count(long *number);
/* Records a time that ends now, in the current phase. */
void good_note(const struct good *good, struct good_times times[GOOD_PHASES], uint64_t since_ns);
void good_fail(struct good *good, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
