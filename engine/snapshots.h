/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SNAPSHOTS_H
#define ENGINE_SNAPSHOTS_H

/* Which states of a sequence are kept, of models with recurrent layers: those behind some borders of blocks.
 *
 *   end     the last border within a prompt: the same prompt again, or one that goes on from it
 *   branch  where the blocks of a prompt that others have computed end, and there was no snapshot: a
 * beginning that several share has one from the second of them on stride  every SNAPSHOTS_STRIDE positions of
 * a prompt: what branches off earlier turn    while an answer grows, its last border, in the place of the one
 * before: the next turn of a conversation, and a sequence that is preempted
 *
 * A step has one of them for each sequence, so a chunk of a prompt ends where a second one would come. */

#include "engine/sequence.h"

#define SNAPSHOTS_STRIDE 2048 /* positions, a multiple of BACKEND_BLOCK_TOKENS */

/* The first border behind the rows that were submitted and up to `end` whose state is kept; 0: none. */
uint32_t snapshots_next(const struct sequence *sequence, uint32_t end);

/* Is there another one behind that, up to `end`? */
bool snapshots_follow(const struct sequence *sequence, uint32_t border, uint32_t end);

/* The last border within its prompt; 0: it has none. */
uint32_t snapshots_prompt_end(const struct sequence *sequence);

#endif
