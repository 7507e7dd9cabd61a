/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_MEASURES_H
#define ENGINE_MEASURES_H

/* What the engine measures of all its steps and tokens, since it was made. Each is a histogram, and costs a
 * few nanoseconds. */

#include <stdint.h>

#include "common/instruments/histogram.h"

struct measures {
    /* Of histogram_seconds: steps that only decode, that only prefill, and that do both. A step ends when its
     * results are read, and begins when it is submitted or the one before is read, whichever is later. */
    struct histogram step_decode, step_prefill, step_mixed;
    struct histogram step_rows;           /* of histogram_rows; drafts included */
    struct histogram computed_rows;       /* of histogram_rows; with those that pad a recorded size */
    struct histogram token_gap;           /* of histogram_seconds; of ids that came together, their share */
    struct histogram first_token;         /* of histogram_seconds; from submit on; not of embeddings */
    struct histogram slots_used, kv_used; /* of histogram_shares, once a step */
    uint32_t step_hint, rows_hint, computed_hint, gap_hint, slots_hint, kv_hint; /* see histogram_add */
};

/* A step of so many rows was read, beside which so many were computed for nothing. */
void measures_step(struct measures *measures, uint32_t decode_rows, uint32_t prefill_rows,
                   uint32_t padding_rows, uint64_t ns);

/* Of the slots and the KV blocks there are, how many were in use meanwhile. */
void measures_use(struct measures *measures, uint32_t slots, uint32_t of_slots, uint32_t blocks,
                  uint32_t of_blocks);

/* A request got its first id, `ns` after it was submitted. */
void measures_first(struct measures *measures, uint64_t ns);

/* It got n ≥ 1 more, `ns` after the one before. */
void measures_ids(struct measures *measures, uint32_t n, uint64_t ns);

#endif
