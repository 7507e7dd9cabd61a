/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_DELTA_MIXER_H
#define CPU_FORWARD_DELTA_MIXER_H

/* The mixer of a layer with a gated delta net. */

#include "cpu/forward/pass.h"

#define DELTA_MIXER_MOST_TAPS 64 /* of its convolution; models with more are rejected */

/* Called by every thread: its phases read the stream and the delta of the layer before, and write the new
 * delta. */
void delta_mixer(struct forward *forward, uint32_t l, uint32_t index);

#endif
