/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_DRY_H
#define ENGINE_SAMPLING_DRY_H

/* DRY, "don't repeat yourself" (P. E. Weidmann, text-generation-webui #5677): penalizes ids that would
 * continue a repetition of the last ids; the longer the repetition, the higher the penalty.
 *
 * It considers the last dry_penalty_last_n ids of prompt and output (−1: all). If the last L ids also occur
 * earlier, and L is at least dry_allowed_length, the id that follows there is penalized by dry_multiplier ·
 * dry_base^(L − dry_allowed_length); of several occurrences the longest counts. A repetition does not extend
 * back past the last sequence breaker. L counts up to DRY_LONGEST. */

#include "common/sampling.h"
#include "engine/sampling/units.h"
#include "text/tokenizer/tokenizer.h"

bool dry_is_on(const struct sampling *sampling);

/* Sets lengths[n_vocab], which are 0, to the longest repetition that each id would continue, if it is at
 * least dry_allowed_length. False: there is none, and nothing was written. dry_clear resets them to 0. */
bool dry_mark(const struct sampling *sampling, struct ids_view history, uint32_t n_vocab, uint16_t *lengths);
void dry_clear(const struct sampling *sampling, struct ids_view history, uint32_t n_vocab, uint16_t *lengths);

/* The penalty for a repetition of `length` ids, which is subtracted from the logit. */
float dry_penalty(const struct sampling *sampling, uint32_t length);

#endif
