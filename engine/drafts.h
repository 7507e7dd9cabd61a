/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_DRAFTS_H
#define ENGINE_DRAFTS_H

/* Drafts of a sequence: ids that may come next, which the model verifies in one step (speculative decoding).
 * No draft changes an id, as each is sampled from the same logits as without.
 *
 * A state of recurrent layers cannot be cut back. So a set with a draft copies the state behind its first
 * row, whose id is certain, to a spare snapshot; if part of the draft is wrong, the slot goes back to that
 * copy, and the ids behind it that were right are fed once more. */

#include "engine/scheduler.h"

/* How many ids the next draft of a sequence that decodes may have, `most` at most. Fewer after a draft that
 * was wrong, none for some steps after several, and in a model with states none that would step over a border
 * at which a snapshot is due. */
uint32_t drafts_most(const struct scheduler *scheduler, struct sequence *sequence, uint32_t most);

/* Gets what a set with a draft needs before it is planned. False: there is no spare snapshot, and the
 * sequence gets no draft. */
bool drafts_begin(struct scheduler *scheduler, struct sequence *sequence);

/* The set, with a draft or not, was read, or abandoned: result NULL; its ids are part of the sequence, which
 * may have ended. Leads back the slot of a sequence that decodes on after a wrong draft, if it has a state.
 */
void drafts_end(struct scheduler *scheduler, struct sequence *sequence, const struct backend_row_set *set,
                const struct backend_result *result);

#endif
