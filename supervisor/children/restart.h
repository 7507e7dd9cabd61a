/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHILDREN_RESTART_H
#define SUPERVISOR_CHILDREN_RESTART_H

/* When to restart a dead worker, and when a silent one counts as dead. Policy only: touches no process, and
 * takes the time as an argument. */

#include <stdbool.h>
#include <stdint.h>

#define RESTART_BACKOFF_MIN_MS 500
#define RESTART_BACKOFF_MAX_MS 10000
#define RESTART_MAX_DEATHS     5     /* in a row without becoming ready: a crash loop */
#define STALL_MS               10000 /* of a worker that serves */
#define STALL_BROKER_MS        5000  /* of a broker that serves or takes over: none of its work takes long */
#define STALL_LOADING_MS       60000 /* of a worker that loads: a large matrix may come from a slow disk */
#define STALL_TRIAL_MS         10000 /* of a worker on trial that loads and shows no activity at all */

struct restart {       /* zeroed: never died */
    uint32_t deaths;   /* in a row, without having been ready */
    uint32_t waits;    /* how often the wait was doubled */
    uint64_t wait_ns;  /* the last one */
    uint64_t ready_ns; /* when it became ready; 0: it is not ready */
};

/* The worker is ready. */
void restart_ready(struct restart *restart, uint64_t now);

/* The worker died: true with the time to restart it, or false for a crash loop. Having been ready for
 * `steady_ns` resets the wait. */
bool restart_died(struct restart *restart, uint64_t steady_ns, uint64_t now, uint64_t *ret_at);

/* Watches one worker's progress. */
struct stall { /* zeroed: nothing seen */
    uint64_t progress;
    uint64_t since; /* clock_ns of the last change, or of the last time it had nothing to do */
};

/* True when a busy worker's `progress` (any number that changes with work done) has not changed for
 * `most_ms`. */
bool stall_check(struct stall *stall, bool busy, uint64_t progress, uint32_t most_ms, uint64_t now);

#endif
