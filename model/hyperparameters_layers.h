/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HYPERPARAMETERS_LAYERS_H
#define MODEL_HYPERPARAMETERS_LAYERS_H

/* Hyperparameters that files list layer by layer. Private to hyperparameters.c. */

#include "common/error.h"
#include "gguf/gguf.h"
#include "gguf/gguf_writer.h"
#include "model/architecture.h"

/* Reads which layers have a window and which are recurrent, and where `layers_differ` the key/value heads and
 * widths of each; n_kv_heads and n_ff become the largest. n_layers and n_draft_layers are set. 0, or -EINVAL
 * naming the key whose list has another type, another length or a number that is out of range. */
int hyperparameters_read_layers(const struct gguf *gguf, const struct architecture *architecture,
                                struct model_params *params, struct error *err);

/* Writes those of windows, key/value heads and widths, where the parameters have them. 0 or -ENOMEM. */
int hyperparameters_write_layers(const struct model_params *params, const struct architecture *architecture,
                                 struct gguf_writer *writer);

#endif
