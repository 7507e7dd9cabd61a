/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_PLAN_H
#define ENGINE_PLAN_H

/* Builds the contents of a step: the next token of every decoding sequence, then as many prompt chunks as fit
 * into the time of a step at the measured speed. */

#include <stdint.h>

#include "engine/scheduler.h"

struct plan {                     /* a step, and the sequence of each of its row sets */
    struct backend_row_set *sets; /* [n_slots] */
    struct sequence **sequences;  /* [n_slots] */
    uint32_t n;
    uint32_t n_decodes; /* how many of them decode: they come first */
    int32_t *drafts;    /* [max_rows]: the ids of sets that verify drafts */
    uint32_t decode_rows, prefill_rows;
};

struct planner {
    struct scheduler *scheduler;
    uint64_t step_ns, alone_ns; /* budget of a step while sequences decode; of one that only prefills */
    double row_ns;              /* measured time of a row of prefill; 0 before the first */
    double decode_ns;           /* measured time of a step that only decodes */
    struct sequence **prompts;  /* [n_slots] scratch */
    /* As in engine_config. */
    uint32_t (*draft)(void *arg, const int32_t *ids, uint32_t n, uint32_t most, int32_t *ret_draft);
    void *draft_arg;
    uint32_t most_draft;
};

/* step_ms 0: the backend's; otherwise also scales the budget of a step that only prefills. 0 or -ENOMEM. */
int planner_init(struct planner *planner, struct scheduler *scheduler, uint32_t step_ms);
void planner_deinit(struct planner *planner);

int plan_init(struct plan *plan, const struct scheduler *scheduler); /* 0 or -ENOMEM */
void plan_deinit(struct plan *plan);

/* Builds a step. Its sequences count it as in flight from here on. */
void plan_build(struct planner *planner, struct plan *ret_plan);

/* Keeps the first n sets of a built plan. The caller must settle the others. */
void plan_cut(struct plan *plan, uint32_t n);

/* Learns how long a step took. */
void plan_measure(struct planner *planner, const struct plan *plan, uint64_t ns);

#endif
