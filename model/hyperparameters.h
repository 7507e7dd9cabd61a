/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HYPERPARAMETERS_H
#define MODEL_HYPERPARAMETERS_H

/* Hyperparameters in metadata: read, checked, written. */

#include "common/error.h"
#include "gguf/gguf.h"
#include "gguf/gguf_writer.h"
#include "model/architecture.h"

/* No width exceeds this, nor does a product of two that is itself a width: far above any model, and a row of
 * it times a step's rows still is a 64-bit index. */
#define HYPERPARAMETERS_LIMIT (1u << 24)

/* After ARCHITECTURE and a dot: a bool that GGUF files do not need (model/huggingface/folder.h). */
#define HYPERPARAMETERS_ROPE_HALVES "rope.halves"

/* Likewise, but kept in files made from it, in which other programs ignore it: false if the ends of YaRN's
 * ramp are not rounded to whole pairs. */
#define HYPERPARAMETERS_ROPE_TRUNCATE "rope.scaling.truncate"

/* Reads and checks everything but n_vocab, which is the number of the embedding's rows. `path` gives the name
 * if the file has none. -EINVAL names the unknown architecture, or the key that is missing or invalid, alone
 * or together with others. */
int hyperparameters_read(const struct gguf *gguf, const char *path,
                         const struct architecture **ret_architecture, struct model_params *ret_params,
                         struct error *err);

/* Fills in optional numbers that are 0: key/value heads, the heads' size, rotary dims and base, scales. Then
 * checks that the numbers are consistent, and that every width, alone or as a product, is within
 * HYPERPARAMETERS_LIMIT. -EINVAL with a reason. hyperparameters_read does this too. */
int hyperparameters_complete(const struct architecture *architecture, struct model_params *params,
                             struct error *err);

/* Writes architecture, name and all numbers that are set (not 0), under the keys that are read; rotary
 * scaling is not written. 0 or -ENOMEM. */
int hyperparameters_write(const struct model_params *params, const struct architecture *architecture,
                          struct gguf_writer *writer);

/* The number of layers in a file of any architecture; 0: not given. */
uint32_t hyperparameters_layers(const struct gguf *gguf);

/* The heads' size if rows of queries and keys are stored in halves (HYPERPARAMETERS_ROPE_HALVES); else 0. */
uint32_t hyperparameters_halves(const struct gguf *gguf);

#endif
