/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_INSPECT_PARTS_H
#define CUDA_CHECK_INSPECT_PARTS_H

/* The parts of a layer, each inspected after its kernels were queued (pass.h), in the order of the pass,
 * because each uses the rows that earlier ones have copied. */

#include "cuda/check/inspect_compare.h"

/* inspect_inputs.c */
int inspect_projection(struct inspection *look);            /* for the layers' inputs */
int inspect_inputs(struct inspection *look);                /* the layers' inputs, which are held */
int inspect_input(struct inspection *look, uint32_t layer); /* gate and activation */

/* inspect_attention.c */
int inspect_qkv(struct inspection *look, uint32_t layer);
int inspect_heads(struct inspection *look, uint32_t layer); /* in place, and in the pool */
int inspect_attention(struct inspection *look, uint32_t layer);

/* inspect_delta.c */
int inspect_output_gate(struct inspection *look, uint32_t layer); /* the product */
int inspect_delta_products(struct inspection *look, uint32_t layer);
int inspect_delta_rows(struct inspection *look, uint32_t layer); /* convolution, unit vectors, β and α */
int inspect_delta_rule(struct inspection *look, uint32_t layer); /* with states and the snapshot */
int inspect_delta_gate(struct inspection *look, uint32_t layer);

/* inspect_kv.c: copies a layer's keys and values from the pool, as floats, to look->keys and look->values. */
int inspect_bring_kv(struct inspection *look, uint32_t layer);

/* Checks one head's key or value at a position against look->expected, [dim], as the pool's type stores it,
 * with a tolerance of site->off of the largest. look->expected becomes the values as stored. */
int inspect_stored(struct inspection *look, const struct inspect_site *site, const float *found);

/* inspect_feed_forward.c */
int inspect_activate(struct inspection *look, uint32_t layer); /* gate, up and activation */
int inspect_shared(struct inspection *look, uint32_t layer);   /* the same for a shared expert */

/* Checks picked row i of a kernel's output for the gate and up of the picked rows, n columns each. */
int inspect_activated_row(struct inspection *look, const char *kernel, uint32_t layer, uint32_t i,
                          const float *gate, const float *up, const struct held *activated, uint32_t n);

/* inspect_experts.c */
int inspect_route(struct inspection *look, uint32_t layer);   /* the router, and the choice */
int inspect_experts(struct inspection *look, uint32_t layer); /* gate, up and activation */
int inspect_mixture(struct inspection *look,
                    uint32_t layer); /* down products and their sum, delta, which is held, as is the output of
                                        a plain part beside them */

#endif
