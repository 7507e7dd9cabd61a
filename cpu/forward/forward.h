/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_FORWARD_H
#define CPU_FORWARD_FORWARD_H

/* One pass of a ragged batch of rows (pass.h) through the layers. */

#include "cpu/forward/pass.h"

/* -EINVAL names a trait that the pass cannot compute, or a context longer than the model's learned positions.
 * Call it before loading. */
int forward_check(const struct model *model, uint32_t n_context, struct error *err);

/* Allocates the workspace for passes of up to max_rows rows. The caller sets the pointers above, which must
 * outlive it. 0, or -ENOMEM with a reason. */
int forward_init(struct forward *forward, struct memory *memory, bool float_activations, struct error *err);

/* Runs a pass. 0, or -ECANCELED if progress abandoned it: positions that it wrote then count as empty. */
int forward_run(struct forward *forward, const struct forward_pass *pass);

#endif
