/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_ATTENTION_MIXER_H
#define CPU_FORWARD_ATTENTION_MIXER_H

/* The mixer of a layer with attention. */

#include "cpu/forward/pass.h"

/* Called by every thread: its phases read the stream and the delta of the layer before, and write the new
 * delta. */
void attention_mixer(struct forward *forward, uint32_t l, uint32_t index);

#endif
