/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_GATE_H
#define CUDA_CHECK_GATE_H

/* What a device has to show before it serves.
 *
 * A fixed prompt and a decode behind it go through the whole model, kernel by kernel, and are inspected
 * (inspect.h). The ids that are sampled are those of the host's sampler. The decode is made again as it will
 * be served, from a recorded graph, and has the same bits. In each recorded bucket one row stands as many
 * times as it has rows, or there are slots, and each of these twins agrees with the row alone. Where a
 * library multiplies large steps (library_products.h) the prompt is inspected again with its products.
 *
 * That is 40 rows, and few positions. So there is a second prompt, of 72 rows, and a decode behind it, from
 * position 448 on, where attention goes over three pieces; keys and values before it are made up. It goes
 * through one layer of each kind (kinds.h), and is inspected as the first was; queries that grow do so there,
 * however far the model's wait. Where a step, the context or the KV blocks are smaller it is as large as they
 * are, and left out where it would ask nothing new.
 *
 * Not asked here, but by scripts/gpu-check: log probabilities, masks, drafts, more outputs of a matrix than a
 * few. */

#include "cuda/host/step.h"

/* With everything ready to serve, nothing in flight and no slot open; so it is afterwards. 0; -ENODEV: the
 * device computes wrongly, and err says what; -ENOMEM of the host, or a fault of the device. */
int gate_check(struct steps *steps, struct pass *pass, struct error *err);

#endif
