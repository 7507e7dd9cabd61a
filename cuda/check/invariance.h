/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_INVARIANCE_H
#define CUDA_CHECK_INVARIANCE_H

/* The cost of making a row's bits independent of the number of rows. Only steps of few rows differ
 * (kernels.h): above KERNELS_GEMV rows the kernels are the same either way. So a step of one row, and one of
 * that many, are run and timed both ways before serving. */

#include "cuda/host/step.h"

/* Tells config->say, in one line; nothing when config->say is NULL, or the context is too short to try.
 * `pass` is invariant; nothing is in flight and no slot open, and so it is afterwards. 0 or a fault. */
int invariance_tell_cost(struct steps *steps, const struct pass *pass);

#endif
