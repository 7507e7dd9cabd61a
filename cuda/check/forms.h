/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_FORMS_H
#define CUDA_CHECK_FORMS_H

/* Runs the same steps in every form in which they are served, and compares them byte by byte:
 *
 *   in turn      kernel by kernel, each launched after the end of the previous one: the reference
 *   overlapped   kernel by kernel, each launched while the previous one may still run (cuda/device/simt.h)
 *   recorded     decodes as recorded graphs, whose launches overlap too
 *
 * A *round* is a few sequences that share the blocks of a context and then have separate blocks. Two steps
 * process a prompt in the first sequence while the others decode, the second step submitted before the first
 * is read; then two steps decode all sequences, submitted the same way. The check compares all ids, the
 * logits of the second step of either kind, and then the keys, values and states of the first and the last
 * sequence.
 *
 * The short form runs at every start: the two steps with a prompt, of two sequences, in turn and overlapped,
 * through one layer of each kind (kinds.h). The gate itself checks that a recorded decode has the bytes of
 * one in turn. The whole form has rounds of up to 64 sequences after 0, 288 and 448 positions, through all
 * layers, with the recordings used for serving, and repeats each of the other forms. */

#include "cuda/check/inspect.h"

/* Reads $QUERN_CHECK, how often the whole form repeats each form: "short" (the default) is 0, "whole" is 20,
 * or a number from 1 to 1000. 0; -EINVAL with a reason for any other value. */
int forms_read_repeats(uint32_t *ret_repeats, struct error *err);

/* Call it with no slot open and nothing in flight. `repeats` 0: the short form, whose context is the first
 * `held` positions of the sequence in blocks 0, 1 …, which have keys and values. 0; -ENODEV: a form gives
 * different bytes, and the inspection's error names form, rows, context and the first difference; -ENOMEM of
 * the host, or a fault of the device. */
int forms_check(struct inspection *look, uint32_t held, uint32_t repeats);

#endif
