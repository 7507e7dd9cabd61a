/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_ATTENTION_HALF_H
#define CPU_FORWARD_ATTENTION_HALF_H

/* The first half of a layer that attends. */

#include "cpu/forward/pass.h"

/* By every member, in phases, from the stream and the delta of the layer before; what it makes is the delta.
 */
void attention_half(struct forward *forward, uint32_t l, uint32_t index);

#endif
