/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_KINDS_H
#define CUDA_HOST_KINDS_H

/* A model cut down to one layer of each kind, over the weights, pools, states and workspace of the whole
 * model. A kernel meets there whatever it meets in any layer, and a pass costs the same however deep the
 * model is.
 *
 * Layers are of one kind if their matrices have the same formats and shapes, and their traits make the same
 * kernels take the same paths. */

#include "cuda/host/pass.h"

/* Those that come first in the model; what `quantize` and its like mix in a file makes one to four. */
#define KINDS_MOST 8

struct kinds {
    struct pass pass; /* of one layer of each kind, by our own kernels alone */
    uint32_t n;
    uint32_t layers[KINDS_MOST]; /* of the whole model: whom the layers of `pass` are */

    struct model model;
    struct device_weights weights;
    struct pools pools;
    struct device_states states;
    struct model_layer model_layers[KINDS_MOST];
    struct device_layer device_layers[KINDS_MOST];
    struct pools_layer pools_layers[KINDS_MOST];
    size_t offsets[KINDS_MOST];
};

/* Of `pass`, which outlives it. Not to be moved: its parts point at one another. */
void kinds_init(struct kinds *kinds, const struct pass *pass);

#endif
