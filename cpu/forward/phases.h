/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_PHASES_H
#define CPU_FORWARD_PHASES_H

/* What mixers and feed-forwards have in common: the work on rows between products, and the ends of phases.
 *
 * Within a phase threads claim rows or tasks, and nobody reads what others write in it; then all meet. */

#include "cpu/forward/pass.h"

void phases_scale(float *x, uint32_t n, float factor);

/* A norm of n numbers. A model without such a norm hands its input on. */
void phases_normalize(const struct kernels *kernels, const struct norm *norm, const struct vector *vector,
                      const float *x, uint32_t n, float *out);

/* Rounds a row to 8 bits, if products read it so. */
void phases_round_row(const struct forward *forward, const struct activations *x, uint32_t row);

/* Row `row` of the stream, normed, becomes row `to` of what the next products read. */
void phases_norm_row(const struct forward *forward, uint32_t row, const struct norm *norm,
                     const struct vector *vector, uint32_t to);

/* stream += delta, which the mixer or feed-forward of layer l has made; its own norm has the role
 * `post_norm`. */
void phases_add_delta(const struct forward *forward, uint32_t l, enum tensor_role post_norm, uint32_t row);

/* The last of them in layer l, and what becomes of the stream behind it. */
void phases_end_layer(const struct forward *forward, uint32_t l, uint32_t row);

/* A row of the stream as it is becomes what the next products read. */
void phases_copy_row(const struct forward *forward, uint32_t row);

/* Row `row` of gate (NULL: there is none) and up, n numbers each, becomes that of x. The rest is zeroed,
 * because layers differ in width. */
void phases_activate_row(const struct forward *forward, const struct layer_traits *traits, const float *gate,
                         const float *up, const struct activations *x, uint32_t row, uint32_t n);

/* Row `row` of what a mixer has made, n columns: the rest is zeroed, for layers differ in width, and the row
 * is rounded. */
void phases_finish_attended(const struct forward *forward, uint32_t row, uint32_t n);

/* Every member waits for the others; the first notes what the phase took, and which products it made. */
void phases_end(struct forward *forward, uint32_t index, const char *phase);
void phases_end_products(struct forward *forward, uint32_t index, const char *phase,
                         const struct product *products, uint32_t n_products);

/* The same where there is more to note than products. NULL: this member notes nothing. */
struct backend_kernel *phases_end_noted(struct forward *forward, uint32_t index, const char *phase);

#endif
