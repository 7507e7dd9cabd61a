/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_KINDS_H
#define CUDA_HOST_KINDS_H

/* A model reduced to one layer of each kind, over the weights, pools, states and workspace of the whole
 * model. Its pass covers every case that kernels meet in any layer, and costs the same however deep the model
 * is.
 *
 * Layers are of the same kind if their matrices have the same formats and shapes, and their traits lead to
 * the same kernels and paths. */

#include "cuda/host/pass.h"

/* The most kinds, taken in the model's order. Files from `quantize` and similar programs have one to four
 * kinds by format; in models with two kinds of layers, each of these occurs twice. */
#define KINDS_MOST 16

struct kinds {
    struct pass pass; /* one layer of each kind, without the library's products */
    uint32_t n;
    uint32_t layers[KINDS_MOST]; /* the layers of `pass`, by their numbers in the whole model */

    struct model model;
    struct device_weights weights;
    struct pools pools;
    struct device_states states;
    struct model_layer model_layers[KINDS_MOST];
    struct device_layer device_layers[KINDS_MOST];
    struct pools_layer pools_layers[KINDS_MOST];
    size_t offsets[KINDS_MOST];
};

/* Makes it from `pass`, which must outlive it. The struct must not be moved: it points into itself. */
void kinds_init(struct kinds *kinds, const struct pass *pass);

#endif
