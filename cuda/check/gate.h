/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_GATE_H
#define CUDA_CHECK_GATE_H

/* What a device has to show before it serves.
 *
 * A fixed prompt and a decode behind it go through the whole model, kernel by kernel, and are inspected
 * (inspect.h). The sampled ids must be those of the host's sampler. The decode is repeated as it will be
 * served, from a recorded graph, and must have the same bits. In each recorded bucket, as many equal rows as
 * it has (or as there are slots) must each agree with the row alone. If a library multiplies large steps
 * (library_products.h), the prompt is inspected again with its products.
 *
 * That is 40 rows, and few positions. So there is a second prompt of 72 rows, and a decode behind it, from
 * position 448 on, where attention has three pieces; the keys and values before it are made up. It goes
 * through one layer of each kind (kinds.h) and is inspected like the first. Queries that grow do so there,
 * whatever the model's interval. If a step, the context or the KV blocks are smaller, so is the second
 * prompt; it is left out if it would check nothing new.
 *
 * On the emulator the buckets take most of the gate's time, so tests start workers with few slots.
 *
 * scripts/gpu-check checks the rest: log probabilities, masks, drafts, more outputs of a matrix. */

#include "cuda/host/step.h"

/* With everything ready to serve, nothing in flight and no slot open; so it is afterwards. 0; -ENODEV: the
 * device computes wrongly, and err says what; -ENOMEM of the host, or a fault of the device. */
int gate_check(struct steps *steps, struct pass *pass, struct error *err);

#endif
