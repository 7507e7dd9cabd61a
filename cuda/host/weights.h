/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_WEIGHTS_H
#define CUDA_HOST_WEIGHTS_H

/* A model's weights on the device, by the roles of model/tensors.h. */

#include "cuda/kernels/kernels.h"
#include "cuda/host/memory/memory.h"
#include "engine/backend/backend.h"
#include "model/model.h"

struct device_layer {
    struct device_matrix matrices[TENSOR_ROLES]; /* no rows where the layer has none */
    struct device_vector vectors[TENSOR_ROLES];  /* offsets of norms are in them */
    const double *frequencies;                   /* [rotary.dims / 2]; of layers that turn alike the same */
};

struct device_weights {
    struct device_layer *layers; /* [n_layers] */
    struct device_vector output_norm;
    struct device_matrix output;
    struct device_matrix embedding, positions; /* rows as in the file; positions may have none */
    struct device_matrix layer_embedding;      /* so are these; of models whose layers get something of a */
    struct device_matrix layer_projection;     /* token by themselves, as the next two */
    struct device_vector layer_projection_norm;
    size_t bytes; /* read for one token: all matrices but of experts it does not
                   * assignment, a row of each embedding */
};

/* -EINVAL names the first tensor whose format no kernel reads. */
int device_weights_check(const struct model *model, struct error *err);

/* Takes or counts the memory of all weights. 0, or -ENOMEM of the host. */
int device_weights_init(struct device_weights *weights, struct device_memory *memory,
                        const struct model *model);
void device_weights_deinit(struct device_weights *weights); /* what the host holds */

/* Another number: what workers keep for one another when they load means something else (weight_store.h). */
uint64_t device_weights_packing(void);

/* Packs and copies everything, or copies what another worker has packed, where config->weights has that;
 * gives the file's pages back behind it, calls the progress hook after each tensor, and tells `loaded` of
 * each piece that is on its way. 0, -ENOMEM, the device's fault, or any error of gguf_make_rows. */
int device_weights_load(struct device_weights *weights, struct device *device,
                        const struct backend_config *config, struct error *err);

#endif
