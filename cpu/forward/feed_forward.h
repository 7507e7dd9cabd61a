/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_FEED_FORWARD_H
#define CPU_FORWARD_FEED_FORWARD_H

/* The second part of a layer: one feed-forward, or experts. */

#include "cpu/forward/pass.h"

/* Called by every thread: its phases read the mixer's delta and write the new one. The caller ends the last
 * phase. */
void feed_forward(struct forward *forward, uint32_t l, uint32_t index);

#endif
