/* SPDX-License-Identifier: MIT */
#ifndef CUDA_GIVE_BACK_H
#define CUDA_GIVE_BACK_H

/* Memory that an open backend gives back, and takes again when a step needs it: memory that only the
 * library's large products use, and pinned staging of logits and copies. Weights, KV blocks, slots and the
 * memory used in decoding stay, because recorded steps contain their addresses. */

#include "cuda/parts.h"
#include "engine/backend/give_back.h"

/* Waits for the steps in flight. 0 or a fault. */
int give_back_idle(struct backend *backend, struct backend_given *ret_given);

/* Bytes of pinned memory that are currently given back. */
size_t give_back_pinned(const struct backend *backend);

/* Takes again what this step needs. Without memory for the library, Quern's own kernels multiply. 0; -ENOMEM:
 * logits were requested, and the host lacks memory for them. */
int give_back_take_again(struct backend *backend, const struct backend_step *step);

#endif
