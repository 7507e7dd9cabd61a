/* SPDX-License-Identifier: MIT */
#ifndef CPU_KERNELS_PACKING_H
#define CPU_KERNELS_PACKING_H

/* The memory layout of weights for the kernels: groups of eight output rows, interleaved so that one vector
 * holds the same columns of all eight.
 *
 * Packing only moves bits: no weight or scale is rounded, and the size hardly grows. A group is the blocks of
 * eight rows side by side, in the order of columns; F32, F16 and BF16 are [column][8 rows]. Each struct below
 * is a block of eight rows in a quantized format. In it a *chunk* is 32 bytes, [8 rows][4 columns], and
 * nibbles are two chunks in one: the low ones and the high ones. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gguf/format.h"

struct packed_f32 { /* a column */
    float weights[8];
};

struct packed_f16 {
    uint16_t weights[8];
};

struct packed_bf16 {
    uint16_t weights[8];
};

/* 32 columns per scale. */
struct packed_q8_0 {
    uint16_t scales[8];     /* binary16, as all below */
    uint8_t quants[8 * 32]; /* chunks of signed bytes */
};

struct packed_q4_0 { /* value nibble − 8 */
    uint16_t scales[8];
    uint8_t nibbles[4 * 32]; /* low: columns 0–15, high: 16–31 */
};

struct packed_q4_1 { /* value scale · nibble + min */
    struct packed_q4_0 low;
    uint16_t mins[8];
};

struct packed_q5_0 { /* value (nibble, fifth bit above) − 16 */
    struct packed_q4_0 low;
    uint8_t tops[32]; /* [8][4]: bit c belongs to chunk c of the nibbles */
};

struct packed_q5_1 { /* value scale · (nibble, fifth bit above) + min */
    struct packed_q5_0 low;
    uint16_t mins[8];
};

struct packed_iq4_nl { /* value block_iq4_values[nibble] */
    struct packed_q4_0 low;
};

struct packed_mxfp4 {        /* value block_mxfp4_values[nibble] */
    uint8_t exponents[8];    /* of the scale: block_mxfp4_scale */
    uint8_t nibbles[4 * 32]; /* as Q4_0 */
};

/* 256 columns per scale, in eight blocks of 32 with their own scales. */
struct packed_q2_k {
    uint16_t scales[8], min_scales[8];
    uint8_t block_scales[8][2]
                        [8];  /* [block][half][row]: the scale in the low nibble, the minimum in the high */
    uint8_t pairs[2][8 * 32]; /* [four blocks], chunks: bits 2j and 2j + 1 belong to block j of the four */
};

struct packed_q3_k { /* value (two bits, third above) − 4 */
    uint16_t scales[8];
    int8_t block_scales[8][2][8];
    uint8_t pairs[2][8 * 32]; /* as Q2_K */
    uint8_t tops[8 * 32];     /* chunks: bit j of a byte belongs to block j */
};

struct packed_q4_k {
    uint16_t scales[8], min_scales[8];
    uint8_t block_scales[8][8], block_mins[8][8]; /* [block][row] */
    uint8_t nibbles[4][8 * 32]; /* [pair of blocks], chunks: low the even block, high the odd */
};

struct packed_q5_k {
    struct packed_q4_k low;
    uint8_t tops[8 * 32]; /* chunks: bit j of a byte belongs to block j */
};

struct packed_q6_k { /* value (nibble, two bits above) − 32 */
    uint16_t scales[8];
    int8_t block_scales[8][2][8]; /* [block][half][row] */
    uint8_t nibbles[4][8 * 32];   /* as Q4_K */
    uint8_t tops[2][8 * 32]; /* [four blocks], chunks: bits 2j and 2j + 1 belong to block j of the four */
};

struct packed_iq4_xs { /* value block_iq4_values[nibble] */
    uint16_t scales[8];
    int8_t block_scales[8][8];  /* [block][row] */
    uint8_t nibbles[8][4 * 32]; /* [block], each as Q4_0 */
};

_Static_assert(sizeof(struct packed_q8_0) == 16 + 256, "no padding");
_Static_assert(sizeof(struct packed_q4_0) == 16 + 128, "no padding");
_Static_assert(sizeof(struct packed_q5_0) == 16 + 128 + 32, "no padding");
_Static_assert(sizeof(struct packed_q4_1) == 16 + 128 + 16, "no padding");
_Static_assert(sizeof(struct packed_q5_1) == 16 + 128 + 32 + 16, "no padding");
_Static_assert(sizeof(struct packed_mxfp4) == 8 + 128, "no padding");
_Static_assert(sizeof(struct packed_q2_k) == 32 + 128 + 512, "no padding");
_Static_assert(sizeof(struct packed_q3_k) == 16 + 128 + 512 + 256, "no padding");
_Static_assert(sizeof(struct packed_iq4_xs) == 16 + 64 + 1024, "no padding");
_Static_assert(sizeof(struct packed_q4_k) == 32 + 128 + 1024, "no padding");
_Static_assert(sizeof(struct packed_q5_k) == 32 + 128 + 1024 + 256, "no padding");
_Static_assert(sizeof(struct packed_q6_k) == 16 + 128 + 1024 + 512, "no padding");

struct packing {
    bool quantized;              /* its kernel wants quantized activations */
    uint32_t block_columns;      /* of one packed block */
    uint32_t packed_block_bytes; /* of eight rows of such a block */
    /* Packs n_blocks blocks of eight rows; rows[r] points to the file's bytes. */
    void (*pack)(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out);
    /* The weights as floats, out [n_blocks · block_columns][8]: exactly the values of the file. */
    void (*unpack)(const uint8_t *group, uint32_t n_blocks, float *out);
};

/* NULL: the CPU backend cannot multiply this format. */
const struct packing *packing_of(enum format format);

#endif
