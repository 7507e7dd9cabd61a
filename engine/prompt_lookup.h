/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_PROMPT_LOOKUP_H
#define ENGINE_PROMPT_LOOKUP_H

/* Drafts from a sequence's own ids (prompt lookup decoding, n-gram speculation). */

#include <stdint.h>

/* An engine_config.draft: finds where the last ids, at least two, occurred before, and proposes what followed
 * there. The longest match is used, the latest of equally long ones. Returns 0 or `most`: where the proposal
 * reaches the end of the ids, it continues in a circle. */
uint32_t prompt_lookup(void *arg, const int32_t *ids, uint32_t n, uint32_t most, int32_t *ret_draft);

#endif
