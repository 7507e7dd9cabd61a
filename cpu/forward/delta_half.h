/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_DELTA_HALF_H
#define CPU_FORWARD_DELTA_HALF_H

/* The first half of a layer that has a gated delta net. */

#include "cpu/forward/pass.h"

#define DELTA_HALF_MOST_TAPS 64 /* of its convolution; models with more are refused */

/* By every member, in phases, from the stream and the delta of the layer before; what it makes is the delta.
 */
void delta_half(struct forward *forward, uint32_t l, uint32_t index);

#endif
