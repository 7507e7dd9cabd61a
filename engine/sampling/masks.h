/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_MASKS_H
#define ENGINE_SAMPLING_MASKS_H

/* The masks of sequences that follow a grammar, computed on a separate thread while a step runs.
 *
 *     mask_new, mask_take ──▶ pending ──the thread──▶ ready ──▶ read by the backend, once per step
 *
 * A mask is requested as soon as the ids before it are known, and awaited when it is read, just before an id
 * is sampled. The engine's thread makes every call except mask_await. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "text/grammar/grammar.h"
#include "text/tokenizer/tokenizer.h"

struct masks; /* the thread, and the vocabulary in the form that it needs */
struct mask;  /* of one sequence */

/* Starts the thread, with the caller's affinity and all signals blocked. The tokenizer must outlive it. 0 or
 * -errno.
 */
int masks_new(const struct tokenizer *tokenizer, uint32_t n_vocab, struct masks **ret_masks);
/* Every mask must have been freed. Takes NULL. */
struct masks *masks_free(struct masks *masks);

/* Waits up to `ms` for any pending mask; returns at once if there is none. */
void masks_wait(struct masks *masks, uint32_t ms);

/* Requests the mask of a sequence with this output. `end_ids` are allowed only if the grammar may end;
 * `spelled` are control tokens whose names count as text, and are allowed if that text is. Takes a reference
 * to the grammar, copies the ids. 0 or -ENOMEM. */
int mask_new(struct masks *masks, struct grammar *grammar, struct ids_view end_ids, struct ids_view spelled,
             struct ids_view output, struct mask **ret_mask);
/* Nothing may read it any more; it may be pending. Takes NULL and returns NULL. */
struct mask *mask_free(struct mask *mask);

/* The sequence has one more id, sampled with this mask, which must be ready: requests the next one. */
void mask_take(struct mask *mask, int32_t id);

/* Whether it is ready, or will be so soon that a step may rely on it. */
bool mask_is_near(const struct mask *mask);

/* Whether it is ready: mask_bits may be read. */
bool mask_is_ready(const struct mask *mask);

/* The address of its bits [(n_vocab + 31) / 32], ready or not. */
const uint32_t *mask_bits(const struct mask *mask);
/* Waits until they are ready. `arg` is the mask; any thread may call it: backend_row_set.await. */
void mask_await(void *arg);

/* For a ready mask that allows no id. True: the grammar has ended, and no id can express that. False, with
 * the reason: the grammar was too complex, or no token continues the text. */
bool mask_has_ended(const struct mask *mask, struct error *ret_reason);
/* For such a mask: whether the grammar was too complex, so that the request is impossible. */
bool mask_was_too_much(const struct mask *mask);

#endif
