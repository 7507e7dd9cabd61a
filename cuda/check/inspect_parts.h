/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_INSPECT_PARTS_H
#define CUDA_CHECK_INSPECT_PARTS_H

/* The parts of a layer, each inspected after its kernels were queued (pass.h), in the order of the pass,
 * because each uses what the ones before have brought. */

#include "cuda/check/inspect_compare.h"

/* inspect_attention.c */
int inspect_qkv(struct inspection *look, uint32_t layer);
int inspect_heads(struct inspection *look, uint32_t layer); /* in their place, and in the pool */
int inspect_attention(struct inspection *look, uint32_t layer);

/* inspect_delta.c */
int inspect_output_gate(struct inspection *look, uint32_t layer); /* the product */
int inspect_delta_products(struct inspection *look, uint32_t layer);
int inspect_delta_rows(struct inspection *look, uint32_t layer); /* convolution, unit vectors, β and α */
int inspect_delta_rule(struct inspection *look, uint32_t layer); /* with states and the snapshot */
int inspect_delta_gate(struct inspection *look, uint32_t layer);

/* inspect_kv.c: brings what the pool has of a layer, as floats, into look->keys and values. */
int inspect_bring_kv(struct inspection *look, uint32_t layer);

/* One head's key or value at a position: is it what the pool's type makes of look->expected, [dim], which is
 * off by site->off of the largest? look->expected becomes what it is cut to. */
int inspect_stored(struct inspection *look, const struct inspect_site *site, const float *found);

/* inspect_feed_forward.c */
int inspect_activate(struct inspection *look, uint32_t layer); /* gate, up and activation */
int inspect_shared(struct inspection *look, uint32_t layer);   /* the same of a shared expert */

/* Picked row i of what a kernel made of the gate and up of picked rows, of n columns. */
int inspect_activated_row(struct inspection *look, const char *kernel, uint32_t layer, uint32_t i,
                          const float *gate, const float *up, const struct held *activated, uint32_t n);

/* inspect_experts.c */
int inspect_experts(struct inspection *look, uint32_t layer); /* choice, gate, up and activation */
int inspect_mixture(struct inspection *look, uint32_t layer); /* downs, and the sum: delta, which is held */

#endif
