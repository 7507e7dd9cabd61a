/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_FEED_FORWARD_H
#define CPU_FORWARD_FEED_FORWARD_H

/* The second half of a layer: one feed-forward, or experts. */

#include "cpu/forward/pass.h"

/* By every member, in phases, from the mixer's delta on; what it makes is the delta. The caller ends the last
 * phase. */
void feed_forward_half(struct forward *forward, uint32_t l, uint32_t index);

#endif
