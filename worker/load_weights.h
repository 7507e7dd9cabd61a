/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LOAD_WEIGHTS_H
#define WORKER_LOAD_WEIGHTS_H

/* The weights of a worker while it loads: where they are placed, whether another worker on the machine shares
 * its weights, and the digest that proves they are of the same model. Parts of load_run, in this order. */

#include <stdint.h>

#include "common/error.h"
#include "worker/load.h"

uint64_t load_bytes_of_tensors(const struct gguf *gguf);

/* Bytes of other workers' copies of the weights on other nodes. */
uint64_t load_bytes_of_copies(const struct load *load);

/* Looks for weights that another worker has packed or is packing. Does nothing for a device, which has its
 * own copy, or for a worker that is alone on the machine. */
void load_open_weights(struct load *load);

/* Waits while the worker that is packing them makes progress. */
void load_wait_for_weights(struct load *load);

/* Start and finish computing the digest of the model's files, unless it is known. -errno with a reason. */
int load_begin_digest(struct load *load, struct error *err);
int load_finish_digest(struct load *load, struct error *err);

/* Opens and waits again, for another backend, which packs differently. -errno with a reason. */
int load_reopen_weights(struct load *load, struct error *err);

/* Shares the packed weights, if the files did not change meanwhile: -ESTALE with a reason if they did. */
int load_finish_weights(struct load *load, struct error *err);

#endif
