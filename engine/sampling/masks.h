/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_MASKS_H
#define ENGINE_SAMPLING_MASKS_H

/* The masks of sequences that follow a grammar, made on a separate thread while a step runs.
 *
 *     mask_new, mask_take ──▶ on its way ──the thread──▶ there ──▶ read by the backend, once a step
 *
 * A mask is requested as soon as the ids before it are known, and waited for where it is read: just before
 * an id is sampled. The engine's own thread makes every call but mask_await. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "text/grammar/grammar.h"
#include "text/tokenizer/tokenizer.h"

struct masks; /* the thread, and the vocabulary as it needs it */
struct mask;  /* of one sequence */

/* Starts the thread, which runs wherever the caller may run and takes no signals. The tokenizer outlives it.
 * 0 or -errno. */
int masks_new(const struct tokenizer *tokenizer, uint32_t n_vocab, struct masks **ret_masks);
/* Every mask was freed. NULL is fine. */
struct masks *masks_free(struct masks *masks);

/* Waits up to `ms` for any mask that is on its way; at once when none is. */
void masks_wait(struct masks *masks, uint32_t ms);

/* The mask of a sequence that has these ids of output, on its way at once. `end_ids` are allowed where the
 * grammar may end, and nowhere else; `spelled` are control tokens whose names are text, and are allowed where
 * that is. Takes a reference to the grammar, copies the ids. 0 or -ENOMEM. */
int mask_new(struct masks *masks, struct grammar *grammar, struct ids_view end_ids, struct ids_view spelled,
             struct ids_view output, struct mask **ret_mask);
/* Nobody reads it any more; it may be on its way. NULL is fine. Returns NULL. */
struct mask *mask_free(struct mask *mask);

/* The sequence has one id more, sampled with the mask that was there: the next one is on its way. */
void mask_take(struct mask *mask, int32_t id);

/* Whether it is there, or so quick that a step may count on it. */
bool mask_is_near(const struct mask *mask);

/* Where its bits are [(n_vocab + 31) / 32], or will be. */
const uint32_t *mask_bits(const struct mask *mask);
/* Waits until they are. `arg` is the mask; from any thread: backend_row_set.await. */
void mask_await(void *arg);

/* Of a mask that is there and has no id. True: the grammar has ended and there is no id to say so. False,
 * with the reason: the grammar was too much, or no token goes on. */
bool mask_has_ended(const struct mask *mask, struct error *ret_reason);

/* Of the same: whether the grammar was too much, so that the request cannot be done as it is. */
bool mask_was_too_much(const struct mask *mask);

#endif
