/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HYPERPARAMETERS_H
#define MODEL_HYPERPARAMETERS_H

/* Hyperparameters in metadata: read, checked, written. */

#include "common/error.h"
#include "gguf/gguf.h"
#include "gguf/gguf_writer.h"
#include "model/architecture.h"

/* No width is beyond, nor a product of two that is one: far above any model, and a row of it times a step's
 * rows is still an index of 64 bits. */
#define HYPERPARAMETERS_LIMIT (1u << 24)

/* Behind ARCHITECTURE and a dot: a bool that GGUF files have no need of (model/huggingface/folder.h). */
#define HYPERPARAMETERS_ROPE_HALVES "rope.halves"

/* The same, and kept in files that are made of it, where other programs ignore it: false, where the ends of
 * YaRN's ramp are not rounded to whole pairs. */
#define HYPERPARAMETERS_ROPE_TRUNCATE "rope.scaling.truncate"

/* Reads and checks everything but n_vocab, which the embedding's rows decide. `path` gives the name where the
 * file has none. -EINVAL names the architecture that is not known, or the key that is missing or makes no
 * sense, alone or with others. */
int hyperparameters_read(const struct gguf *gguf, const char *path,
                         const struct architecture **ret_architecture, struct model_params *ret_params,
                         struct error *err);

/* Fills in what may be left out (0): key/value heads, the heads' size, rotary dims and base, scales. Then
 * checks that the numbers fit each other, and that no width, alone or as a product, is beyond what 32 bits
 * can index by far. -EINVAL with a reason. hyperparameters_read does this too. */
int hyperparameters_complete(const struct architecture *architecture, struct model_params *params,
                             struct error *err);

/* Writes architecture, name and all numbers that are set (not 0), under the keys that are read; rotary
 * scaling is not written. 0 or -ENOMEM. */
int hyperparameters_write(const struct model_params *params, const struct architecture *architecture,
                          struct gguf_writer *writer);

/* Layers that a file announces, of any architecture; 0 when it does not say. */
uint32_t hyperparameters_layers(const struct gguf *gguf);

/* The heads' size where rows of queries and keys stand by halves (HYPERPARAMETERS_ROPE_HALVES); else 0. */
uint32_t hyperparameters_halves(const struct gguf *gguf);

#endif
