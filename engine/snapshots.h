/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SNAPSHOTS_H
#define ENGINE_SNAPSHOTS_H

/* The block borders at which the state of a sequence is kept, for models with recurrent layers:
 *
 * - end: the last border within a prompt. The same prompt, or one that continues it, resumes there.
 * - branch: where the prompt leaves cached blocks, if there was no snapshot. The second of several prompts
 *   with a common beginning makes its snapshot.
 * - stride: every SNAPSHOTS_STRIDE positions of a prompt, for prompts that branch off earlier.
 * - turn: the last border of a growing answer, replacing the previous one. The conversation's next turn, and
 *   a preempted sequence, resume there.
 *
 * A step takes one snapshot per sequence, so a prompt chunk ends where a second one would be due. */

#include "engine/sequence.h"

#define SNAPSHOTS_STRIDE 2048 /* positions, a multiple of BACKEND_BLOCK_TOKENS */

/* The first border after the submitted rows, up to `end`, at which to keep the state; 0: none. */
uint32_t snapshots_next(const struct sequence *sequence, uint32_t end);

/* Whether another one is due after that border, up to `end`. */
bool snapshots_follow(const struct sequence *sequence, uint32_t border, uint32_t end);

/* The last border within the prompt; 0: none. */
uint32_t snapshots_prompt_end(const struct sequence *sequence);

#endif
