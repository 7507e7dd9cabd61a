/* SPDX-License-Identifier: MIT */
#ifndef WORKER_REPORT_H
#define WORKER_REPORT_H

/* The worker's slot of the board: periodic snapshots, and the counter that proves progress. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/system/resident.h"
#include "proto/board.h"
#include "engine/engine.h"

struct report_peaks { /* bytes */
    uint64_t memory, kv_held, resident;
};

struct report {
    struct board_slot *slot; /* NULL: no board */
    uint32_t incarnation;
    uint64_t next_ns; /* when the next snapshot is due */
    uint64_t rate_since_ns, rate_tokens;
    double tokens_per_s;
    uint64_t next_usage_ns; /* when `usage` is next updated */
    struct backend_usage usage;
    struct resident resident;
    struct report_peaks peaks;
};

/* The contents of a snapshot. */
struct report_facts {
    enum worker_state state;
    uint64_t step_started_ns; /* of the running step; 0: idle */
    struct engine *engine;    /* NULL: not loaded */
    uint32_t unstarted;       /* requests not yet in the engine */
};

/* Maps the slot in `fd`, and closes the descriptor; −1: no board, and nothing is written. 0 or -errno with a
 * reason. A zeroed report may be closed too. */
int report_open(struct report *report, int fd, uint32_t incarnation, struct error *err);
void report_close(struct report *report);

/* Counts progress: a layer, a part of the model loaded, a prompt prepared. From any thread. */
void report_progress(struct report *report);

/* Makes the next snapshot due at once, with updated memory usage. */
void report_look_again(struct report *report);

/* Writes the snapshot; the next one is due `ns` later. */
void report_write(struct report *report, const struct report_facts *facts, uint64_t now, uint64_t ns);

#endif
