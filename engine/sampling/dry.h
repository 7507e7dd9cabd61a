/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_DRY_H
#define ENGINE_SAMPLING_DRY_H

/* DRY, "don't repeat yourself" (P. E. Weidmann, text-generation-webui #5677): makes ids less likely that
 * would continue a repeat of the last ids, the more the longer the repeat is.
 *
 * It looks at the last dry_penalty_last_n ids of prompt and output (−1: all). If an earlier place of them
 * ends in the same L ids as the whole, and L is at least dry_allowed_length, the id that follows there is
 * penalized by dry_multiplier · dry_base^(L − dry_allowed_length); of several places the longest counts. A
 * repeat does not reach back over the last sequence breaker. L counts up to DRY_LONGEST. */

#include "common/sampling.h"
#include "engine/sampling/units.h"
#include "text/tokenizer/tokenizer.h"

bool dry_is_on(const struct sampling *sampling);

/* Writes the longest repeat that each id would continue to lengths[n_vocab], which are 0, for those of at
 * least dry_allowed_length. False: there is none, and nothing was written. dry_clear makes them 0 again. */
bool dry_mark(const struct sampling *sampling, struct ids_view history, uint32_t n_vocab, uint16_t *lengths);
void dry_clear(const struct sampling *sampling, struct ids_view history, uint32_t n_vocab, uint16_t *lengths);

/* What is subtracted, for a repeat of so many ids. */
float dry_penalty(const struct sampling *sampling, uint32_t length);

#endif
