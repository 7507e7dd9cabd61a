/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_INVARIANCE_H
#define CUDA_CHECK_INVARIANCE_H

/* What it costs that a row's bits do not depend on how many rows there are. Only steps of a few rows differ
 * (kernels.h): of more than KERNELS_GEMV the kernels are the same either way. So a step of one row, and one
 * of as many as that, are made both ways and timed, before anything is served. */

#include "cuda/host/step.h"

/* Tells config->say, in one line; nothing when config->say is NULL, or the context is too short to try.
 * `pass` is invariant; nothing is in flight and no slot open, and so it is afterwards. 0 or a fault. */
int invariance_tell_cost(struct steps *steps, const struct pass *pass);

#endif
