/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_LAYOUT_H
#define CUDA_KERNELS_LAYOUT_H

/* The layout of weight matrices in device memory.
 *
 * A format's blocks are split into planes, each an array [n_rows][bytes of a row], so that the lanes of a
 * warp load neighbouring 16 bytes. Packing only moves bits: no weight and no scale is rounded again. Rows are
 * padded to a multiple of 256 columns with zeros, also in scales: the padding adds nothing.
 *
 * Bytes are those of 256 columns of a row, eight *blocks* of 32 columns. Columns 4 c … 4 c + 3 of a block are
 * its word c.
 *
 *   F32            0: 1024  the floats
 *
 *   F16, BF16      0:  512  the halves
 *
 *   Q8_0           0:  256  quants: [2 halves][8 blocks][16], block b's columns 16 h … 16 h + 15
 *                  1:   16  scales, binary16 [8]
 *
 *   Q4_0           0:  128  nibbles [8][16]: byte i is column i (low) and column 16 + i (high) of a block
 *                  1:   16  scales, binary16 [8]
 *
 *   Q4_1           0:  128  nibbles as Q4_0
 *                  1:   32  scale, minimum, binary16 [8][2]
 *
 *   Q5_0, Q5_1     0, 1     as Q4_0, Q4_1
 *                  2:   32  tops [8][4]: bit c of byte i is bit 4 of column 4 c + i
 *
 *   IQ4_NL         0:  128  places in its table [8][16]: of the four bytes c the low two are word c, the high
 *                           two word c + 4, four bits a column
 *                  1:   16  scales, binary16 [8]
 *
 *   MXFP4          0:  128  places as IQ4_NL
 *                  1:    8  exponents [8]
 *
 *   IQ4_XS         0:  128  places as IQ4_NL
 *                  1:    8  scales, int8 [8]
 *                  2:    2  scale of all, binary16
 *
 *   Q2_K           0:   64  pairs of bits [8][2 halves][4]: bits 2 c and 2 c + 1 of byte i of half h are
 *                           column 16 h + 4 c + i
 *                  1:   16  [8][2]: of 16 columns the scale (low nibble) and the minimum (high nibble)
 *                  2:    4  scale, minimum scale of all, binary16
 *
 *   Q3_K           0:   64  pairs of bits as Q2_K
 *                  1:   16  scales, int8 [8][2]: of 16 columns each
 *                  2:   32  tops [8][4]: as Q5_0's, of bit 2
 *                  3:    2  scale of all, binary16
 *
 *   Q4_K           0:  128  nibbles as Q4_0
 *                  1:   16  scale, minimum scale (binary16); [8] low bits of block b's scale (low nibble) and
 *                           minimum (high nibble); 32 bits: 4 b … its scale's bits 4 and 5, then the
 *                           minimum's
 *
 *   Q5_K           0, 1     as Q4_K
 *                  2:   32  tops as Q5_0
 *
 *   Q6_K           0:  128  nibbles as Q4_0
 *                  1:   16  scales, int8 [8][2]: of 16 columns each
 *                  2:   64  tops [8][2][4]: pairs of bits as Q2_K, bits 4 and 5
 *                  3:    2  scale of all, binary16
 *
 * The order of Q8_0's quants is also that of quantized activations (layout_quant_place). */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "gguf/format.h"

#define LAYOUT_COLUMNS 256
#define LAYOUT_PLANES  4

struct layout {
    uint32_t n_planes;
    uint32_t plane_bytes[LAYOUT_PLANES]; /* of 256 columns of a row */
};

/* For every format that models may have (gguf/formats.h); NULL for any other number. */
const struct layout *layout_of(enum format format);

static inline uint32_t layout_padded(uint32_t n_columns)
{
    return (n_columns + LAYOUT_COLUMNS - 1) / LAYOUT_COLUMNS * LAYOUT_COLUMNS;
}

/* Bytes of one row of a plane. */
size_t layout_row_bytes(const struct layout *layout, uint32_t plane, uint32_t n_columns);

/* Bytes of all planes of a matrix, each aligned to 256 bytes, a multiple of 256; and the planes' places from
 * `memory` on. */
size_t layout_bytes(const struct layout *layout, uint32_t n_rows, uint32_t n_columns);
void layout_place(const struct layout *layout, uint32_t n_rows, uint32_t n_columns, void *memory,
                  void *ret_planes[LAYOUT_PLANES]);

/* Packs n_rows rows of the file's blocks, contiguous at `rows`, into planes[p], n_rows times layout_row_bytes
 * each; the caller uploads each to its place in the matrix's plane. n_columns is a multiple of the format's
 * block. Planes are aligned to 16 bytes. */
void layout_pack(enum format format, const uint8_t *rows, uint32_t n_rows, uint32_t n_columns,
                 uint8_t *const planes[LAYOUT_PLANES]);

#ifdef __cplusplus
}
#endif

/* The place of column k's byte in a row of quants: the halves of eight blocks are separate, so that eight
 * lanes, each with a block, load 128 neighbouring bytes twice. Four columns from a multiple of 4 stay
 * together. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline uint32_t
    layout_quant_place(uint32_t k)
{
    return k / 256 * 256 + k / 16 % 2 * 128 + k / 32 % 8 * 16 + k % 16;
}

#endif
