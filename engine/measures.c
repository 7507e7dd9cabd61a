/* SPDX-License-Identifier: MIT */
/* See measures.h. */

#include "engine/measures.h"

void measures_step(struct measures *measures, uint32_t decode_rows, uint32_t prefill_rows,
                   uint32_t padding_rows, uint64_t ns)
{
    const uint64_t rows = (uint64_t)decode_rows + prefill_rows;
    struct histogram *steps = prefill_rows == 0  ? &measures->step_decode
                              : decode_rows == 0 ? &measures->step_prefill
                                                 : &measures->step_mixed;
    measures->step_hint = histogram_add(steps, &histogram_seconds, measures->step_hint, ns, 1);
    measures->rows_hint = histogram_add(&measures->step_rows, &histogram_rows, measures->rows_hint, rows, 1);
    measures->computed_hint = histogram_add(&measures->computed_rows, &histogram_rows,
                                            measures->computed_hint, rows + padding_rows, 1);
}

static uint64_t share(uint32_t part, uint32_t all)
{
    return all > 0 ? 1000 * (uint64_t)part / all : 0;
}

void measures_use(struct measures *measures, uint32_t slots, uint32_t of_slots, uint32_t blocks,
                  uint32_t of_blocks)
{
    measures->slots_hint = histogram_add(&measures->slots_used, &histogram_shares, measures->slots_hint,
                                         share(slots, of_slots), 1);
    measures->kv_hint =
        histogram_add(&measures->kv_used, &histogram_shares, measures->kv_hint, share(blocks, of_blocks), 1);
}

void measures_first(struct measures *measures, uint64_t ns)
{
    histogram_add(&measures->first_token, &histogram_seconds, 0, ns, 1);
}

void measures_ids(struct measures *measures, uint32_t n, uint64_t ns)
{
    measures->gap_hint =
        histogram_add(&measures->token_gap, &histogram_seconds, measures->gap_hint, ns / n, n);
}
