/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_WEIGHTS_H
#define CUDA_HOST_WEIGHTS_H

/* A model's weights on the device, by the roles of model/tensors.h. */

#include "cuda/kernels/kernels.h"
#include "cuda/host/memory/memory.h"
#include "engine/backend/backend.h"
#include "model/model.h"

struct device_layer {
    struct device_matrix matrices[TENSOR_ROLES]; /* no rows: the layer has none */
    struct device_vector vectors[TENSOR_ROLES];  /* offsets of norms are already added */
    const double *frequencies; /* [rotary.dims / 2]; shared by layers with the same rotation */
};

struct device_weights {
    struct device_layer *layers; /* [n_layers] */
    struct device_vector output_norm;
    struct device_matrix output;
    struct device_matrix embedding, positions; /* rows as in the file; positions may have none */
    /* Of models whose layers have per-token inputs; rows of layer_embedding as in the file. */
    struct device_matrix layer_embedding;
    struct device_matrix layer_projection;
    struct device_vector layer_projection_norm;
    /* Read for one token: all matrices, of experts only the used ones, and a row of each embedding. */
    size_t bytes;
};

/* 0, or -EINVAL with the first tensor whose format no kernel reads. */
int device_weights_check(const struct model *model, struct error *err);

/* Takes or counts the memory of all weights. 0, or -ENOMEM of the host. */
int device_weights_init(struct device_weights *weights, struct device_memory *memory,
                        const struct model *model);
void device_weights_deinit(struct device_weights *weights); /* frees the host's data */

/* Identifies the packing: if the number differs, weights that workers keep for one another cannot be used
 * (weight_store.h). */
uint64_t device_weights_packing(void);

/* Packs and copies everything, or copies what another worker has packed, if config->weights has that. Gives
 * the file's pages back afterwards, calls the progress hook after each tensor, and reports each piece to
 * `loaded` when its copy is queued. 0, -ENOMEM, the device's fault, or any error of gguf_make_rows. */
int device_weights_load(struct device_weights *weights, struct device *device,
                        const struct backend_config *config, struct error *err);

#endif
