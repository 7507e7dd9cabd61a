/* SPDX-License-Identifier: MIT */
/* How long drafts are, and what becomes of the slot of a wrong one.
 *
 * A sequence's drafts double while they are right, and become as long as what was right of the last one.
 * After drafts of which nothing was right it pauses for 0, 1, 3, 7 … steps: text that repeats nothing costs
 * little. */

#include "engine/drafts.h"

#include "engine/cache/prefix.h"

#define FIRST_LENGTH 4
#define MOST_PAUSE   31 /* steps */

/* ---- lengths ---- */

/* Ids up to the last position before the next border, behind the one that is fed for certain. */
static uint32_t before_border(const struct sequence *sequence)
{
    const uint32_t left = BACKEND_BLOCK_TOKENS - 1 - sequence->fed % BACKEND_BLOCK_TOKENS;
    return left > 0 ? left - 1 : 0;
}

uint32_t drafts_most(const struct scheduler *scheduler, struct sequence *sequence, uint32_t most)
{
    struct sequence_drafts *drafts = &sequence->drafts;
    if (drafts->wait > 0) {
        drafts->wait--;
        return 0;
    }
    const uint32_t length = drafts->length > 0 ? drafts->length : FIRST_LENGTH;
    most = most < length ? most : length;
    if (scheduler->snapshots && before_border(sequence) < most)
        most = before_border(sequence);
    return most;
}

static void learn(struct sequence_drafts *drafts, uint32_t n, uint32_t n_right)
{
    if (n_right == n) {
        drafts->length = 2 * n > drafts->length ? 2 * n : drafts->length;
        drafts->pause = 0;
    } else if (n_right > 0) {
        drafts->length = n_right;
        drafts->pause = 0;
    } else {
        drafts->length = 1;
        drafts->wait = drafts->pause;
        drafts->pause = drafts->pause < MOST_PAUSE ? 2 * drafts->pause + 1 : MOST_PAUSE;
    }
}

/* ---- a draft ---- */

bool drafts_begin(struct scheduler *scheduler, struct sequence *sequence)
{
    sequence->drafts.has_spare =
        scheduler->snapshots && prefix_take_snapshot(scheduler->prefix, &sequence->drafts.spare);
    return !scheduler->snapshots || sequence->drafts.has_spare;
}

void drafts_end(struct scheduler *scheduler, struct sequence *sequence, const struct backend_row_set *set,
                const struct backend_result *result)
{
    struct sequence_drafts *drafts = &sequence->drafts;
    if (set->output != BACKEND_SAMPLE_ALL)
        return;
    if (result) {
        learn(drafts, set->n_ids - 1, result->n_accepted);
        scheduler->drafted += set->n_ids - 1;
        scheduler->accepted += result->n_accepted;
    }
    if (!drafts->has_spare)
        return;
    if (sequence->state == SEQUENCE_DECODING && sequence->n_again > 0) {
        const uint32_t kept = backend_blocks_for(sequence->fed);
        scheduler->ops->trim(scheduler->backend, sequence->slot, sequence->fed, drafts->spare);
        sequence->n_told = sequence->n_told < kept ? sequence->n_told : kept;
    }
    prefix_return_snapshot(scheduler->prefix, drafts->spare);
    drafts->has_spare = false;
}
