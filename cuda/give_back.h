/* SPDX-License-Identifier: MIT */
#ifndef CUDA_GIVE_BACK_H
#define CUDA_GIVE_BACK_H

/* Memory that an open backend gives back, and takes again when a step needs it: what only large products of
 * the library use, and pinned staging of logits and of copies. Weights, KV blocks, slots and what decoding
 * works in stay, because recorded steps have their addresses. */

#include "cuda/parts.h"
#include "engine/backend/give_back.h"

/* Waits for the steps in flight. 0 or a fault. */
int give_back_idle(struct backend *backend, struct backend_given *ret_given);

/* Bytes of pinned memory that are given back at the moment. */
size_t give_back_pinned(const struct backend *backend);

/* Takes again what this step needs. Without memory for the library, our own kernels multiply. 0; -ENOMEM:
 * logits were asked for, and the host lacks memory for them. */
int give_back_take_again(struct backend *backend, const struct backend_step *step);

#endif
