/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_LAYER_INPUTS_H
#define CPU_FORWARD_LAYER_INPUTS_H

/* The layers' own embeddings of each token: computed once per pass, added after a layer's halves. */

#include "cpu/forward/pass.h"

/* Called by every thread after the rows are embedded. */
void layer_inputs_make(struct forward *forward, uint32_t index);

/* Called by every thread: its phases read the delta of the feed-forward and write the new one. The caller
 * ends the last phase. */
void layer_inputs_add(struct forward *forward, uint32_t l, uint32_t index);

#endif
