/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SNAPSHOTS_H
#define ENGINE_SNAPSHOTS_H

/* Which states of a sequence are kept, in models with recurrent layers: those at some borders of blocks.
 *
 * - end: the last border within a prompt. The same prompt again begins there, or one that continues it.
 * - branch: where the prompt leaves blocks that others computed, if there was no snapshot. A beginning that
 *   several prompts share gets its snapshot from the second of them.
 * - stride: every SNAPSHOTS_STRIDE positions of a prompt, for prompts that branch off earlier.
 * - turn: the last border of an answer that grows, in place of the one before. The conversation's next turn
 *   begins there, and a sequence that is preempted.
 *
 * A step takes one snapshot of each sequence, so a chunk of a prompt ends where a second would be due. */

#include "engine/sequence.h"

#define SNAPSHOTS_STRIDE 2048 /* positions, a multiple of BACKEND_BLOCK_TOKENS */

/* The first border after the submitted rows, up to `end`, whose state is kept; 0: none. */
uint32_t snapshots_next(const struct sequence *sequence, uint32_t end);

/* Is there another after that one, up to `end`? */
bool snapshots_follow(const struct sequence *sequence, uint32_t border, uint32_t end);

/* The last border within the prompt; 0: none. */
uint32_t snapshots_prompt_end(const struct sequence *sequence);

#endif
