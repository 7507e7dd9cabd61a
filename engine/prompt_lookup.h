/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_PROMPT_LOOKUP_H
#define ENGINE_PROMPT_LOOKUP_H

/* Drafts from a sequence's own ids (prompt lookup decoding, n-gram speculation). */

#include <stdint.h>

/* An engine_config.draft: proposes what followed where the last ids, two at least, stood before: the longest
 * match counts, and of equally long ones the latest. Returns 0 or `most`: what follows goes on in a circle
 * where it reaches the end of the ids. */
uint32_t prompt_lookup(void *arg, const int32_t *ids, uint32_t n, uint32_t most, int32_t *ret_draft);

#endif
