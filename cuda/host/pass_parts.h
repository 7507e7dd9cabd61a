/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_PASS_PARTS_H
#define CUDA_HOST_PASS_PARTS_H

/* Functions that queue the parts of a pass. They return 0 or a fault. */

#include "cuda/host/pass.h"

/* After a part was queued with the result r: lets the observer see it. */
int pass_seen(const struct pass *pass, int r, enum pass_part part, uint32_t layer);

/* The next launch reads n matrices, of n_experts experts each, or 1 (device_expect). */
void pass_expect_weights(struct device_stream *queue, const struct device_matrix *const *matrices, uint32_t n,
                         uint32_t n_experts);

/* For a launch of these products, for which the pass may have choices. */
struct multiply_step pass_products(const struct pass *pass, const struct device_product *products, uint32_t n,
                                   const struct device_activations *x, uint32_t n_rows);

/* For products without choices. */
struct multiply_step pass_experts(const struct pass *pass, uint32_t n_rows);

/* Whether such a launch goes to the library. */
bool pass_takes_library(const struct pass *pass, const struct multiply_step *step);

/* Queues products of a layer's matrices, at most KERNELS_PRODUCTS, which the library computes in large
 * steps. */
int pass_multiply(const struct pass *pass, struct device_stream *queue, const struct device_product *products,
                  uint32_t n, const struct device_activations *x, uint32_t n_rows);

/* What happens to the stream between two parts of layers that add to it. */
struct pass_between {
    const struct norm *norm; /* the next norm, and its vector, without a weight if rows stay as they are */
    const struct device_vector *vector;
    int before; /* the layer that computed delta; −1: none */
    enum tensor_role post_norm;
    const uint32_t *outputs; /* NULL: all rows */
};
struct norm_step pass_norm_between(const struct pass *pass, const struct pass_between *between);

/* After the last part of layer l, which computed delta: the norm that the next layer reads. Not for the last
 * layer. */
struct pass_between pass_next_layer(const struct pass *pass, uint32_t l);

/* Queues a part's last product and the next norm. */
int pass_end_part(const struct pass *pass, struct device_stream *queue, const struct device_matrix *matrix,
                  const struct device_activations *x, const struct pass_between *next, uint32_t n_rows);

/* The feed-forward part up to the input of its last products; and these with their effect on the stream. The
 * last layer's delta is left to the norm of outputs (pass_feed_forward.c). */
int pass_activate(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows);
int pass_end_feed_forward(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows);

/* The per-token inputs of layers: computes those of all layers, once the rows are embedded; adds that of a
 * layer after its feed-forward part, with the last layer's delta as above (pass_inputs.c). */
int pass_make_inputs(const struct pass *pass, struct device_stream *queue, uint32_t n_rows);
int pass_add_input(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows);

/* The mixer of a layer with a gated delta net, from its first products to attended (pass_delta.c). */
int pass_delta_net(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows);

#endif
