/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_INVARIANCE_H
#define CUDA_CHECK_INVARIANCE_H

/* Measures the cost of making a row's bits independent of the number of rows. Only steps of few rows differ
 * (kernels.h): above KERNELS_GEMV rows the kernels are the same either way. So before serving, a step of one
 * row and one of KERNELS_GEMV rows are timed both ways. */

#include "cuda/host/step.h"

/* Reports the cost to config->say, in one line; does nothing if that is NULL or the context is too short.
 * `pass` is invariant; nothing may be in flight and no slot open, and this state is restored. 0 or a
 * fault. */
int invariance_tell_cost(struct steps *steps, const struct pass *pass);

#endif
