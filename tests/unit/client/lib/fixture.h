/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CLIENT_LIB_FIXTURE_H
#define TESTS_UNIT_CLIENT_LIB_FIXTURE_H

/* A libquern client connected to a fake broker: one pair in each test program. Errors fail the running Check
 * test. */

#include <quern.h>

#include "tests/unit/client/lib/fake_broker.h"

extern struct fake_broker *broker;
extern struct quern *client;

/* The output of a request, gathered by a callback. */
struct gathered {
    struct quern_id id;
    int n_ids;
    int ends;
    char text[4096];
    size_t text_len;
    enum quern_reason reason;
    char error[32], error_text[256];
    uint32_t retry_after_ms, output_tokens;
};

/* A quern_output_fn; `arg` is a zeroed struct gathered. Checks that each id arrives once and in order, and
 * that nothing follows the end. */
void gather(void *arg, const struct quern_output *output);

/* Starts the broker and the client, which connects. */
void start(struct fake_config config);
/* Ends both. */
void stop(void);

/* A request that the fake broker accepts. */
struct quern_request a_request(void);
/* Sends one. */
struct quern_id send_request(struct gathered *g);
/* Sends one and waits for its end. */
void generate(struct gathered *g);

/* Dispatches until the condition holds, for half a minute at most. */
#define DISPATCH_UNTIL(condition)                                                                            \
    do {                                                                                                     \
        for (uint64_t begun = clock_ns(); !(condition) && clock_ns() - begun < 30 * CLOCK_NS_PER_S;)         \
            ck_assert_int_ge(quern_dispatch(client, 50, NULL), 0);                                           \
        ck_assert(condition);                                                                                \
    } while (0)

/* Dispatches until that fails; returns the code, with its text in `err`. */
int dispatch_until_broken(struct quern_error *err);

/* Checks that the output of `n_frames` frames arrived completely, once, and ended once. */
void check_whole(const struct gathered *g, int n_frames);

#endif
