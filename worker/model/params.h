/* SPDX-License-Identifier: MIT */
#ifndef WORKER_MODEL_PARAMS_H
#define WORKER_MODEL_PARAMS_H

/* Hyperparameters out of metadata: part of model_open. */

#include "worker/model/model.h"

/* Reads and checks everything but n_vocab, which the embedding's rows decide. `path` gives the name where the
 * file has none. -EINVAL names the key that is missing or makes no sense. */
int params_read(const struct gguf *gguf, const char *path, struct model_params *ret_params,
                struct error *err);

#endif
