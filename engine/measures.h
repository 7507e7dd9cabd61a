/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_MEASURES_H
#define ENGINE_MEASURES_H

/* What the engine measures over all its steps and tokens since it was created. Each measure is a histogram
 * and costs a few nanoseconds. */

#include <stdint.h>

#include "common/instruments/histogram.h"

struct measures {
    /* With histogram_seconds: steps that only decode, that only prefill, and that do both. A step ends when
     * its results are read, and begins when it is submitted or the one before is read, whichever is later. */
    struct histogram step_decode, step_prefill, step_mixed;
    struct histogram step_rows;           /* with histogram_rows; drafts included */
    struct histogram computed_rows;       /* with histogram_rows; includes rows that pad a recorded size */
    struct histogram token_gap;           /* with histogram_seconds; ids that came together share the time */
    struct histogram first_token;         /* with histogram_seconds; since submit; not for embeddings */
    struct histogram slots_used, kv_used; /* with histogram_shares, once per step */
    uint32_t step_hint, rows_hint, computed_hint, gap_hint, slots_hint, kv_hint; /* see histogram_add */
};

/* A step with these rows was read; padding_rows more were computed only as padding. */
void measures_step(struct measures *measures, uint32_t decode_rows, uint32_t prefill_rows,
                   uint32_t padding_rows, uint64_t ns);

/* How many of the slots and of the KV blocks were in use meanwhile. */
void measures_use(struct measures *measures, uint32_t slots, uint32_t of_slots, uint32_t blocks,
                  uint32_t of_blocks);

/* A request got its first id, `ns` after it was submitted. */
void measures_first(struct measures *measures, uint64_t ns);

/* It got n ≥ 1 more, `ns` after the one before. */
void measures_ids(struct measures *measures, uint32_t n, uint64_t ns);

#endif
