/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_THOUGHT_H
#define ENGINE_THOUGHT_H

/* The budget of a sequence's thoughts: counts the ids inside them, and says which id has to come next once
 * the budget is used up.
 *
 *     text before ──▶ THINKING ──budget used up──▶ ENDING: the ids that end a thought, one by one ──▶ text
 *                        │                                                                             │
 *                        ▲ ──the model ends it itself──▶ text ─────────────────────────────────────────┤
 *                        └───────────────────── another thought, while the budget lasts ◀──────────────┘
 *
 * Everything is a function of the ids so far, so a sequence that moves or is computed again does the same.
 * Whoever samples ahead of what was read asks how many ids are free. */

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

/* Of the ids that come next, so many can be sampled before one may have to be what the budget wants. 0: the
 * next one has to be thought_forced. UINT32_MAX: none has to, ever. */
uint32_t thought_free_ids(const struct thought *thought);

/* The id that has to come next; TOKENIZER_NONE: any. */
int32_t thought_forced(const struct thought *thought);

/* A mask over ids that allows that id alone, or none at all if `allowed`, the mask of a grammar, excludes it
 * (NULL: there is no grammar). It changes with the next call. */
const uint32_t *thought_mask(struct thought *thought, const uint32_t *allowed);

/* Whether that mask allowed nothing. */
bool thought_is_excluded(const struct thought *thought);

#endif
