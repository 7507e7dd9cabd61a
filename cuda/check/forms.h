/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_FORMS_H
#define CUDA_CHECK_FORMS_H

/* The same steps in every form in which they are served, compared to the byte:
 *
 *   in turn      kernel by kernel, each launched behind the end of the one before: what the others must equal
 *   overlapped   kernel by kernel, each launched while the one before it may still run (cuda/device/simt.h)
 *   recorded     decodes as recorded graphs, whose launches overlap too
 *
 * A *round* is a few sequences that share the blocks of a context and then have blocks of their own. Two
 * steps read a prompt into the first while the others decode, the second submitted before the first is read;
 * then two steps decode all, also one behind the other. Compared are all ids, the logits of the second step
 * of either kind, and what the first and the last sequence then have as keys, values and states.
 *
 * The short form is what every start pays for: the two steps that read, of two sequences, in turn and
 * overlapped, through one layer of each kind (kinds.h); that a recorded decode has the bytes of one in turn
 * is seen by the gate itself. The whole form has rounds of up to 64 sequences behind 0, 288 and 448
 * positions, through all layers, with the recordings that serve, and repeats each of the other forms. */

#include "cuda/check/inspect.h"

/* $QUERN_CHECK: "short", as without it, is 0; "whole" is 20, and a number from 1 to 1000 itself: so often the
 * whole form repeats each. 0; -EINVAL names what else it is. */
int forms_read_repeats(uint32_t *ret_repeats, struct error *err);

/* Call it with no slot open and nothing in flight. `repeats` 0: the short form, whose context is the first
 * `held` positions of the sequence in blocks 0, 1 …, which have keys and values. 0; -ENODEV: some form gives
 * other bytes, and the inspection's error names form, rows, context and the first difference; -ENOMEM of the
 * host, or a fault of the device. */
int forms_check(struct inspection *look, uint32_t held, uint32_t repeats);

#endif
