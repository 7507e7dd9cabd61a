/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_THOUGHT_H
#define ENGINE_THOUGHT_H

/* The budget of a sequence's thoughts: counts the ids inside them, and forces the ids that end a thought once
 * the budget is used up.
 *
 *     text before ──▶ THINKING ──budget used up──▶ ENDING: the ids that end a thought, one by one ──▶ text
 *                        │                                                                             │
 *                        ▲ ──the model ends it itself──▶ text ─────────────────────────────────────────┤
 *                        └───────────────────── another thought, while the budget lasts ◀──────────────┘
 *
 * Everything is a function of the ids so far, so a sequence that moves or is computed again does the same. A
 * caller that samples before results are read asks how many ids are free. */

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "text/tokenizer/tokenizer.h"

struct thought;

/* Copies the ids of `thinking`; its dialect and marks are borrowed. 0 or -ENOMEM. */
int thought_new(const struct engine_thinking *thinking, uint32_t n_vocab, struct thought **ret_thought);
struct thought *thought_free(struct thought *thought); /* takes NULL, returns NULL */

/* The sequence has one more id. 0 or -ENOMEM. */
int thought_take(struct thought *thought, const struct tokenizer *tokenizer, int32_t id);

/* How many of the next ids can be sampled before the budget may force one. 0: the next one is thought_forced.
 * UINT32_MAX: none will ever be forced. */
uint32_t thought_free_ids(const struct thought *thought);

/* The id that must come next; TOKENIZER_NONE: any. */
int32_t thought_forced(const struct thought *thought);

/* A mask that allows only the forced id, or nothing if `allowed`, the mask of a grammar, excludes it (NULL:
 * no grammar). Valid until the next call. */
const uint32_t *thought_mask(struct thought *thought, const uint32_t *allowed);

/* Whether that mask allowed nothing. */
bool thought_is_excluded(const struct thought *thought);

#endif
