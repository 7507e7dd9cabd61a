/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_PASS_PARTS_H
#define CUDA_HOST_PASS_PARTS_H

/* What the parts of a pass are queued with. Functions return 0 or a fault. */

#include "cuda/host/pass.h"

/* After a part was queued with the result r: lets the observer see it. */
int pass_seen(const struct pass *pass, int r, enum pass_part part, uint32_t layer);

/* The next launch reads n matrices, of so many experts each; else 1 (device_expect). */
void pass_expect_weights(struct device_stream *queue, const struct device_matrix *const *matrices, uint32_t n,
                         uint32_t n_experts);

struct multiply_step pass_products(const struct pass *pass, uint32_t n_rows);

/* Products of a layer's matrices, at most KERNELS_PRODUCTS, which are the library's in large steps. */
int pass_multiply(const struct pass *pass, struct device_stream *queue, const struct device_product *products,
                  uint32_t n, const struct device_activations *x, uint32_t n_rows);

/* The mixer of a layer with a gated delta net, from its first products to attended (pass_delta.c). */
int pass_delta_net(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows);

#endif
