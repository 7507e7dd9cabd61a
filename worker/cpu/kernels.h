/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CPU_KERNELS_H
#define WORKER_CPU_KERNELS_H

/* The arithmetic of the CPU backend: a table of functions per instruction set.
 *
 * The kernel sources (kernels_*.c) are written over the eight-lane operations of lanes_*.h and compiled once
 * per instruction set; another set is another such header, or a table whose entries are replaced one by one.
 *
 * What every kernel promises: one output is computed by one thread, in one order of summation, whatever other
 * rows or columns the call covers. So a row's logits are the same bytes alone, in a batch, or in any
 * chunking. Tables need not agree with each other bit for bit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/model/format.h"

#define KERNELS_ROWS   8  /* output rows of a group: one lane each */
#define KERNELS_BLOCK  32 /* activations that share a scale */
#define KERNELS_TOKENS 32 /* positions of a KV block */

/* The inputs of a product: rows of floats, and the same rounded to 8 bits. `stride` counts elements, is a
 * multiple of KERNELS_BLOCK, and what lies beyond a row's end is zero. */
struct activations {
    uint32_t stride;
    float *values;      /* [rows][stride] */
    int8_t *quants;     /* [rows][stride], −127 … 127 */
    float *scales;      /* [rows][stride / 32]: value ≈ scale · quant */
    float *sums;        /* [rows][stride / 32]: scale · Σ quant, for formats with a minimum */
    int16_t *half_sums; /* [rows][stride / 32][2]: Σ quant of 16 each, for formats with an offset */
};

/* Multiplies one group of weight rows by rows first … first + n − 1 of x:
 * out[i · out_stride + r] = Σ_k group[r][k] · x[first + i][k] for its 8 rows r, i < n. */
typedef void kernel_multiply(const uint8_t *group, uint32_t n_columns, const struct activations *x,
                             uint32_t first, uint32_t n, float *out, size_t out_stride);

struct kernels {
    const char *name; /* "avx2" */

    /* By format, on groups as packing.h lays them out; NULL where there is none. F32, F16 and BF16 read
     * values, the others quants. */
    kernel_multiply *multiply[FORMAT_LIMIT];

    /* Rounds one row to 8 bits, a scale per block. A block with an infinity or NaN gets the scale NaN, so
     * that a fault stays visible in every output. */
    void (*quantize)(const struct activations *x, uint32_t row);

    /* out = x / √(mean x² + epsilon) · weight; out [n rounded up to 32], zeros at the end. */
    void (*rms_norm)(const float *x, const float *weight, uint32_t n, float epsilon, float *out);

    /* out = gate / (1 + e^−gate) · up, n a multiple of 8. */
    void (*silu_multiply)(const float *gate, const float *up, uint32_t n, float *out);

    /* x += y, n a multiple of 8. */
    void (*add)(float *x, const float *y, uint32_t n);

    /* Half precision to float and back, n a multiple of 8. */
    void (*halves_to_floats)(const uint16_t *in, uint32_t n, float *out);
    void (*floats_to_halves)(const float *in, uint32_t n, uint16_t *out);

    /* One query head against the first n_tokens of one KV block: `keys` [dim][32], `values` [32][value_dim],
     * the query scaled already. Softmax so far is kept as largest score, Σ e^(score − largest), and the
     * weighted sum of values, acc [value_dim], a multiple of 8. Start with {-INFINITY, 0} and zeros; divide
     * at the end. */
    void (*attend)(const float *query, const float *keys, uint32_t dim, const float *values,
                   uint32_t value_dim, uint32_t n_tokens, float largest_and_sum[2], float *acc);
};

/* The tables that this machine can run, best first and plain C ("portable") last; NULL beyond. */
const struct kernels *kernels_at(uint32_t i);

/* The table of that name, or with NULL the best. NULL when this machine has none such. */
const struct kernels *kernels_by_name(const char *name);

#endif
