/* SPDX-License-Identifier: MIT */
#ifndef CPU_KERNELS_KERNELS_H
#define CPU_KERNELS_KERNELS_H

/* The arithmetic of the CPU backend: a struct of functions per instruction set.
 *
 * The kernel sources use the eight-lane operations of cpu/lanes/ and are built once per instruction set
 * (build.h); a further set is a further header there, or a struct with some functions replaced.
 *
 * Every kernel guarantees that one output is computed by one thread, in one order of summation, whatever
 * other rows or columns the call covers. So the logits of a row have the same bytes alone, in a batch, or in
 * any chunking. Builds need not agree with each other bit for bit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gguf/format.h"
#include "model/description.h"

#define KERNELS_ROWS    8  /* output rows of a group: one lane each */
#define KERNELS_BLOCK   32 /* activations that share a scale */
#define KERNELS_TOKENS  32 /* positions of a KV block */
#define KERNELS_QUERIES 8  /* most queries that attention takes at once */
#define KERNELS_MANY    16 /* activation rows of a tile, if a build has tiles */

/* The inputs of a product: rows of floats, and the same rounded to 8 bits. `stride` counts elements, is a
 * multiple of KERNELS_BLOCK, and the padding of a row is zero. */
struct activations {
    uint32_t stride;
    float *values;      /* [rows][stride] */
    int8_t *quants;     /* [rows][stride], −127 … 127 */
    float *scales;      /* [rows][stride / 32]: value ≈ scale · quant */
    float *sums;        /* [rows][stride / 32]: scale · Σ quant, for formats with a minimum */
    int16_t *half_sums; /* [rows][stride / 32][2]: Σ quant of 16 each, for formats with an offset */

    /* Copies of quants, scales and sums in the layout for products of many rows, if the build has one; else
     * NULL, also in a view whose first row is not a multiple of 16. */
    int8_t *tiles; /* [rows / 16, rounded up][stride / 32], 16 rows of 32, in the build's own order */
    float *tile_scales, *tile_sums; /* [rows / 16, rounded up][stride / 32][16] */
};

/* One group of weight rows, or a pair, and its activations. */
struct group_product {
    const uint8_t *group; /* in the layout of packing.h */
    size_t apart;         /* bytes from there to the second group of a pair */
    bool from_memory;     /* it was not read recently, so prefetching pays off */
    uint32_t n_columns;
    const struct activations *x;
    float *out; /* [rows of x][out_stride]: the group's 8 columns of it, or the pair's 16 */
    size_t out_stride;
};

/* out[i · out_stride + r] = Σ_k group[r][k] · x[i][k] for the rows r of the group or pair and i = first …
 * first + n − 1.
 */
typedef void kernel_multiply(const struct group_product *product, uint32_t first, uint32_t n);

/* One KV block of one head, as queries read it: floats or, if those are NULL, half precision. */
struct attended_block {
    const float *keys;   /* [dim][32 tokens] */
    const float *values; /* [32 tokens][value_dim] */
    const uint16_t *half_keys, *half_values;
    const uint16_t *next_keys, *next_values; /* of the next block, or any address: prefetched */
    uint32_t dim, value_dim;                 /* the second a multiple of 8 */
    uint32_t first, end;                     /* tokens that the query sees; at least one */
    float cap;                               /* scores become cap · tanh(score / cap); 0: unchanged */
};

/* The running softmax: start with −∞, 0 and zeros; divide by the sum at the end. */
struct running_softmax {
    float largest; /* score */
    float sum;     /* Σ e^(score − largest) */
    float *values; /* [value_dim]: Σ e^(score − largest) · value */
};

/* A query, and its running softmax. */
struct attending {
    const float *query; /* [dim] */
    struct running_softmax *softmax;
};

/* Rows of a sequence for one head of a delta net. */
struct delta_rows {
    const float *queries, *keys; /* [n][key_stride] */
    float *values;               /* [n][value_stride]; replaced by the output */
    const float *decays, *betas; /* [n][gate_stride] */
    size_t key_stride, value_stride, gate_stride;
    uint32_t n, key_dim; /* n ≥ 1; key_dim a multiple of 8 */
    uint32_t value_dim;  /* of the head, or of a part of it: a multiple of 8 */
};

struct kernels {
    const char *name; /* "avx2" */

    /* By format (formats.h), on groups in the layout of packing.h. F32, F16 and BF16 read values, the others
     * quants. */
    kernel_multiply *multiply[FORMAT_LIMIT];

    /* The same, with the same bits, for two groups at once; NULL if that is no faster. */
    kernel_multiply *multiply_pair[FORMAT_LIMIT];

    /* The same for many_groups groups, one or two, and n rows of activations with tiles; `first` and n are
     * multiples of 16. NULL: the build has none. */
    kernel_multiply *multiply_many[FORMAT_LIMIT];
    uint32_t many_groups;
    uint32_t many_rows; /* a multiple of 16: the number of rows from which unpacking the weights pays off */
    bool has_tiles;     /* quantize also fills the tiles, if x has any */

    /* Rounds one row to 8 bits, a scale per block. A block with an infinity or NaN gets the scale NaN, so
     * the fault shows in every output. */
    void (*quantize)(const struct activations *x, uint32_t row);

    /* out = x / √(mean x² + epsilon) · weight; out may be x. */
    void (*rms_norm)(const float *x, const float *weight, uint32_t n, float epsilon, float *out);

    /* The same for x − mean x, plus bias, which may be NULL. */
    void (*layer_norm)(const float *x, const float *weight, const float *bias, uint32_t n, float epsilon,
                       float *out);

    /* By activation: out = activation(x) · factor, n a multiple of 8; factor NULL: 1. SiLU is x / (1 + e^−x);
     * GELU is its tanh approximation, with which models are trained; clamped SwiGLU changes both inputs
     * (model/kinds.h). */
    void (*activate[KINDS_OF(ACTIVATIONS)])(const float *x, const float *factor, uint32_t n, float *out);

    /* out = factor · σ(x), n a multiple of 8; out may be x or factor. */
    void (*sigmoid)(const float *x, const float *factor, uint32_t n, float *out);

    /* out = x · scale / √(Σ x² + epsilon), followed by zeros up to a multiple of 8. */
    void (*unit)(const float *x, uint32_t n, float epsilon, float scale, float *out);

    /* out[c] = Σ_t taps[t · tap_stride + c] · rows[t][c], from the first tap to the last; n a multiple of 8.
     */
    void (*convolve)(const float *const *rows, const float *taps, uint32_t n_taps, size_t tap_stride,
                     uint32_t n, float *out);

    /* For each row: S ← α S, d = β (v − S k), S ← S + d kᵀ, v ← S q; state[value_dim / 8][key_dim][8]. */
    void (*delta_rule)(const struct delta_rows *rows, float *state);

    /* x = cap · tanh(x / cap), n a multiple of 8. */
    void (*soft_cap)(float *x, uint32_t n, float cap);

    /* x += y, n a multiple of 8. */
    void (*add)(float *x, const float *y, uint32_t n);

    /* Half precision to float and back, n a multiple of 8. */
    void (*halves_to_floats)(const uint16_t *in, uint32_t n, float *out);
    void (*floats_to_halves)(const float *in, uint32_t n, uint16_t *out);

    /* 8-bit numbers to floats, n a multiple of 8: with a scale for each, or one for all. */
    void (*scale_each)(const int8_t *quants, const float *scales, uint32_t n, float *out);
    void (*scale_all)(const int8_t *quants, float scale, uint32_t n, float *out);

    /* n queries over the same tokens of a KV block, each computed as if alone; KERNELS_QUERIES at once share
     * the most work. Up to `attend_halves` of them are faster on halves than on converted floats. */
    void (*attend)(const struct attended_block *block, const struct attending *queries, uint32_t n);
    uint32_t attend_halves; /* ≤ KERNELS_QUERIES; 0: none */
};

/* The builds that this machine can run, best first, plain C ("portable") last; NULL after the last. */
const struct kernels *kernels_at(uint32_t i);

/* The build with that name; NULL: the best. Returns NULL if this machine cannot run it. */
const struct kernels *kernels_by_name(const char *name);

#endif
