/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_PHASES_H
#define CPU_FORWARD_PHASES_H

/* Common parts of mixers and feed-forwards: the work on rows between products, and the ends of phases.
 *
 * Within a phase threads claim rows or tasks, and none reads what others write in it; then all meet. */

#include "cpu/forward/pass.h"

void phases_scale(float *x, uint32_t n, float factor);

/* A norm of n numbers. If the model has no such norm, copies its input. */
void phases_normalize(const struct kernels *kernels, const struct norm *norm, const struct vector *vector,
                      const float *x, uint32_t n, float *out);

/* Rounds a row to 8 bits, if products read 8-bit rows. */
void phases_round_row(const struct forward *forward, const struct activations *x, uint32_t row);

/* Norms row `row` of the stream into row `to` of the next products' input. */
void phases_norm_row(const struct forward *forward, uint32_t row, const struct norm *norm,
                     const struct vector *vector, uint32_t to);

/* stream += delta, the output of the mixer or feed-forward of layer l; the norm of that output has the role
 * `post_norm`. */
void phases_add_delta(const struct forward *forward, uint32_t l, enum tensor_role post_norm, uint32_t row);

/* The same for the last part of layer l, with the stream scale after it. */
void phases_end_layer(const struct forward *forward, uint32_t l, uint32_t row);

/* Copies a row of the stream, without a norm, to the next products' input. */
void phases_copy_row(const struct forward *forward, uint32_t row);

/* Computes row `row` of x from those of gate (NULL: none) and up, n numbers each. Zeros the rest, because
 * layers differ in width. */
void phases_activate_row(const struct forward *forward, const struct layer_traits *traits, const float *gate,
                         const float *up, const struct activations *x, uint32_t row, uint32_t n);

/* Completes row `row` of a mixer's output, n columns: zeros the rest, because layers differ in width, and
 * rounds the row. */
void phases_finish_attended(const struct forward *forward, uint32_t row, uint32_t n);

/* Every member waits for the others; the first records the time of the phase, and the products in it. */
void phases_end(struct forward *forward, uint32_t index, const char *phase);
void phases_end_products(struct forward *forward, uint32_t index, const char *phase,
                         const struct product *products, uint32_t n_products);

/* The same if more than products is to be recorded. NULL: this member records nothing. */
struct backend_kernel *phases_end_noted(struct forward *forward, uint32_t index, const char *phase);

#endif
