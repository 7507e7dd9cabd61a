/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CPU_PACKING_H
#define WORKER_CPU_PACKING_H

/* How weights lie in memory for the kernels: groups of eight output rows, interleaved so that one vector
 * holds the same columns of all eight.
 *
 * Packing only moves bits: no weight and no scale is rounded again, and nothing gets much larger. A group is
 * the eight rows' blocks side by side, in the order of columns. With [8] running over the rows, a *chunk*
 * being 32 bytes [8][4 columns], and "low/high nibbles" a chunk of two runs of columns at once:
 *
 *   F32 F16 BF16   per column: value [8]
 *   Q8_0   32 columns: scale f16 [8]; 8 chunks of signed bytes
 *   Q4_0   32 columns: scale f16 [8]; 4 chunks, low nibbles columns 0–15, high 16–31; value nibble − 8
 *   Q5_0   32 columns: as Q4_0, then 32 bytes [8][4] of fifth bits: bit c belongs to chunk c's column, the
 *          eight chunks being those that the nibbles make; value − 16
 *   Q4_K   256 columns: scale f16 [8], min scale f16 [8]; of 8 blocks of 32: scale u8 [8] of each, then
 *          min u8 [8] of each; 4 pairs of blocks: 8 chunks, low nibbles the even block, high the odd
 *   Q5_K   as Q4_K, then 8 chunks of fifth bits: bit j of a byte belongs to block j
 *   Q6_K   256 columns: scale f16 [8]; of 8 blocks of 32: scale i8 [8] of each half, [block][half][8];
 *          4 pairs of blocks as Q4_K; 2 quads of blocks: 8 chunks, bits 2j and 2j + 1 the top bits of block j
 *          of the quad; value − 32
 *
 * The offsets below are of the quantized formats' groups. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/model/format.h"

enum {
    PACKED_Q8_0_BYTES = 16 + 256,
    PACKED_Q4_0_BYTES = 16 + 128,
    PACKED_Q5_0_BITS = PACKED_Q4_0_BYTES,
    PACKED_Q5_0_BYTES = PACKED_Q4_0_BYTES + 32,

    PACKED_Q4_K_SCALES = 32,
    PACKED_Q4_K_MINS = 96,
    PACKED_Q4_K_NIBBLES = 160,
    PACKED_Q4_K_BYTES = 160 + 1024,
    PACKED_Q5_K_BITS = PACKED_Q4_K_BYTES,
    PACKED_Q5_K_BYTES = PACKED_Q4_K_BYTES + 256,

    PACKED_Q6_K_SCALES = 16,
    PACKED_Q6_K_NIBBLES = 144,
    PACKED_Q6_K_BITS = 144 + 1024,
    PACKED_Q6_K_BYTES = 144 + 1024 + 512
};

struct packing {
    bool quantized;              /* its kernel wants quantized activations */
    uint32_t block_columns;      /* of one packed block */
    uint32_t packed_block_bytes; /* of eight rows of it */
    /* Packs n_blocks blocks of eight rows, rows[r] pointing at the file's bytes. */
    void (*pack)(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out);
    /* The weights as floats, out [n_blocks · block_columns][8]: exactly what the file's format means. */
    void (*unpack)(const uint8_t *group, uint32_t n_blocks, float *out);
};

/* NULL for a format that the CPU backend cannot multiply. */
const struct packing *packing_of(enum format format);

#endif
