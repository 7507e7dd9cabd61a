/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_H
#define CPU_FORWARD_H

/* One pass of a ragged batch of rows (pass.h) through the layers. */

#include "cpu/pass.h"

/* -EINVAL names what the model has and this pass cannot compute, or a context longer than the model's learned
 * positions. To be asked before anything is loaded. */
int forward_check(const struct model *model, uint32_t n_context, struct error *err);

/* Takes the workspace for passes of up to max_rows rows. The pointers named above it are filled in by the
 * caller and outlive it. 0, or -ENOMEM with a reason. */
int forward_init(struct forward *forward, struct memory *memory, bool float_activations, struct error *err);

/* Runs a pass. 0, or -ECANCELED when progress abandoned it: positions it had written are as good as empty. */
int forward_run(struct forward *forward, const struct forward_pass *pass);

#endif
