/* SPDX-License-Identifier: MIT */
/* Borders are numbers of positions. A prompt's last id is always fed, so that there are logits: the border at
 * its very end is of no use to the same prompt. */

#include "engine/snapshots.h"

uint32_t snapshots_prompt_end(const struct sequence *sequence)
{
    return (sequence->n_prefill - 1) / BACKEND_BLOCK_TOKENS * BACKEND_BLOCK_TOKENS;
}

/* The earlier of two borders, of which 0 is none, if the other is one at all. */
static uint32_t earlier(uint32_t found, uint32_t border, uint32_t from, uint32_t end)
{
    const bool fits = border > from && border <= end;
    return fits && (found == 0 || border < found) ? border : found;
}

static uint32_t next_of_prompt(const struct sequence *sequence, uint32_t from, uint32_t end)
{
    uint32_t found = earlier(0, snapshots_prompt_end(sequence), from, end);
    found = earlier(found, sequence->branch, from, end);
    return earlier(found, (from / SNAPSHOTS_STRIDE + 1) * SNAPSHOTS_STRIDE, from, end);
}

uint32_t snapshots_next(const struct sequence *sequence, uint32_t end)
{
    if (sequence->space == 0)
        return 0;
    if (sequence->state == SEQUENCE_PREFILLING)
        return next_of_prompt(sequence, sequence->fed, end);
    return end % BACKEND_BLOCK_TOKENS == 0 ? end : 0;
}

bool snapshots_follow(const struct sequence *sequence, uint32_t border, uint32_t end)
{
    return sequence->state == SEQUENCE_PREFILLING && next_of_prompt(sequence, border, end) > 0;
}
