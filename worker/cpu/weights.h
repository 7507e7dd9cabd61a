/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CPU_WEIGHTS_H
#define WORKER_CPU_WEIGHTS_H

/* A model's weights packed for the kernels. */

#include "worker/cpu/matrix.h"
#include "worker/model/model.h"

struct weights_layer {
    const float *attn_norm, *ffn_norm; /* [n_embd rounded up to 8] */
    struct matrix q, k, v, output, gate, up, down;
};

struct weights {
    struct weights_layer *layers; /* [n_layers] */
    const float *output_norm;
    struct matrix output;
    uint32_t max_columns; /* of any matrix */
    size_t bytes;         /* of all packed matrices */
    bool any_quantized;
};

/* Packs every matrix of the model with all threads. Memory is taken from `memory`; weights_deinit frees the
 * rest. -EINVAL names a tensor of a format without kernels; -ENOMEM. */
int weights_init(struct weights *weights, const struct model *model, struct memory *memory,
                 struct threads *threads, struct error *err);
void weights_deinit(struct weights *weights);

#endif
