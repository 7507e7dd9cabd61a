/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_GATE_H
#define CUDA_CHECK_GATE_H

/* The check that a device must pass before it serves.
 *
 * A fixed prompt and a decode after it go through the whole model, kernel by kernel, and are inspected
 * (inspect.h). The sampled ids must equal those of the host's sampler. The decode is repeated as it will be
 * served, from a recorded graph, and must have the same bits. Each recorded bucket is filled with equal rows
 * (or with one per slot), each of which must agree with the row alone. If a library computes large products
 * (library_products.h), the prompt is inspected again with its products.
 *
 * The first prompt covers only 40 rows and few positions. So a second prompt has 72 rows, and a decode after
 * it, from position 448 on, where attention has three pieces and products have a second row of tiles; the
 * keys and values before it are made up. It goes through one layer of each kind (kinds.h) and is inspected
 * like the first. If queries are scaled with their position, the scale changes every 32 positions there, not
 * at the model's interval. If a step, the context or the KV blocks are smaller, so is the second prompt; it
 * is omitted if it would check nothing new.
 *
 * Finally, a few steps are run in each form in which they are served, and must give the same bytes in all of
 * them (forms.h).
 *
 * On the emulator the buckets take most of the gate's time, so tests start workers with few slots.
 *
 * scripts/gpu-check checks the rest: log probabilities, masks, drafts, more outputs of a matrix. */

#include "cuda/check/forms.h"

/* Call it with everything ready to serve, nothing in flight and no slot open; this state is restored.
 * `repeats` as for forms_check. 0; -ENODEV: the device computes wrong results, and err says which; -ENOMEM of
 * the host, or a fault of the device. */
int gate_check(struct steps *steps, struct pass *pass, uint32_t repeats, struct error *err);

#endif
