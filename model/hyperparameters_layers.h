/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HYPERPARAMETERS_LAYERS_H
#define MODEL_HYPERPARAMETERS_LAYERS_H

/* Hyperparameters that files list layer by layer. Private to hyperparameters.c. */

#include "common/error.h"
#include "gguf/gguf.h"
#include "gguf/gguf_writer.h"
#include "model/architecture.h"

/* Reads which layers have a window and which are recurrent, and, if `layers_differ`, the key/value heads and
 * widths of each; n_kv_heads and n_ff become the largest. n_layers and n_draft_layers must be set. 0, or
 * -EINVAL naming the key whose list has a wrong type, a wrong length or a number out of range. */
int hyperparameters_read_layers(const struct gguf *gguf, const struct architecture *architecture,
                                struct model_params *params, struct error *err);

/* Writes the lists of windows, key/value heads and widths that the parameters have. 0 or -ENOMEM. */
int hyperparameters_write_layers(const struct model_params *params, const struct architecture *architecture,
                                 struct gguf_writer *writer);

#endif
