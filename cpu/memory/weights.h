/* SPDX-License-Identifier: MIT */
#ifndef CPU_MEMORY_WEIGHTS_H
#define CPU_MEMORY_WEIGHTS_H

/* A model's weights packed for the kernels, by the roles of model/tensors.h.
 *
 * They are in one arena, with the same layout for all instruction sets, so the workers of a machine can share
 * it. */

#include "cpu/memory/matrix.h"
#include "engine/backend/backend.h"
#include "model/model.h"

/* A hash of the sources that pack weights (meson.build): packed weights are only valid for the same sources.
 */
extern const uint64_t weights_packing;

/* A norm's weights, or other numbers that are used unchanged; NULL: the layer has none. */
struct vector {
    const float *weight, *bias; /* [columns rounded up to 8]; taps in the convolution's layout (states.h) */
};

/* Rows that are read one at a time instead of multiplied: embeddings and learned positions. */
struct table {
    const struct gguf_tensor *tensor; /* NULL: the model has none */
    const struct matrix *packed;      /* the only copy, packed for products, */
    uint8_t *rows;                    /* or else the rows as in the file */
};

/* A row as floats. */
void table_read(const struct table *table, uint32_t row, float *ret_row);

struct weights_layer {
    struct matrix matrices[TENSOR_ROLES]; /* no rows: the layer has none */
    struct vector vectors[TENSOR_ROLES];
};

struct weights {
    struct weights_layer *layers; /* [n_layers] */
    struct vector output_norm;
    struct matrix output;
    struct table embedding, positions;
    /* For the layers' own embeddings of each token; no rows, or NULL, if there are none. */
    struct table layer_embedding;
    struct matrix layer_projection;
    struct vector layer_projection_norm;
    uint32_t max_columns; /* of any matrix */
    size_t bytes;         /* of all packed matrices that one token reads */
    uint64_t layout;      /* hash of the arena's layout */
    bool any_quantized;
};

/* Finds the packed arena in the config's store, or packs every matrix of the model with all threads and
 * copies the rest. Releases pages of the file on the way; the file is not read later. Do not move the struct:
 * its tables point into it. The memory belongs to the store, or comes from `memory`; weights_deinit frees the
 * rest. -EINVAL names a tensor of a format without kernels; -ENOMEM. The progress hook of the config is
 * called after each matrix. */
int weights_init(struct weights *weights, const struct model *model, struct memory *memory,
                 struct threads *threads, const struct backend_config *config, struct error *err);
void weights_deinit(struct weights *weights);

#endif
