/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_DRAFTS_H
#define ENGINE_DRAFTS_H

/* Drafts of a sequence: ids that may come next, which the model verifies in one step (speculative decoding).
 * Drafts change no id: each is sampled from the same logits as without drafts.
 *
 * The state of recurrent layers cannot be rewound. So a set with a draft copies the state after its first
 * row, whose id is certain, to a spare snapshot; if part of the draft is wrong, the slot returns to that
 * copy, and the correct ids after it are fed again. */

#include "engine/scheduler.h"

/* How many ids, up to `most`, the next draft of a decoding sequence may have. Fewer after a wrong draft, none
 * for some steps after several, and, in a model with states, none if it would cross a border where a snapshot
 * is due. */
uint32_t drafts_most(const struct scheduler *scheduler, struct sequence *sequence, uint32_t most);

/* Acquires what a set with a draft needs, before it is planned. False: no spare snapshot is free, and the
 * sequence gets no draft. */
bool drafts_begin(struct scheduler *scheduler, struct sequence *sequence);

/* A set, with or without a draft, was read or (result NULL) abandoned; its ids are already part of the
 * sequence, which may have ended. If a draft was wrong, the model has states and the sequence continues to
 * decode, returns its slot to the spare snapshot. */
void drafts_end(struct scheduler *scheduler, struct sequence *sequence, const struct backend_row_set *set,
                const struct backend_result *result);

#endif
