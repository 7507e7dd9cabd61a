/* SPDX-License-Identifier: MIT */
#ifndef CPU_KERNELS_UNPACK_H
#define CPU_KERNELS_UNPACK_H

/* The weights of packed blocks (packing.h) as bytes: eight chunks of four columns for each 32 columns,
 * unsigned, before any offset is subtracted. */

#include "cpu/lanes/rows.h"
#include "cpu/kernels/packing.h"

LANES_INLINE void load_nibbles(const uint8_t nibbles[4 * 32], size_t apart, rows_u8 w[8])
{
    UNROLLED
    for (int c = 0; c < 4; c++) {
        rows_u8 both = rows_u8_load(nibbles + 32 * c, apart);
        w[c] = both & 15;
        w[c + 4] = rows_u8_right(both, 4);
    }
}

LANES_INLINE void load_fives(const struct packed_q5_0 *block, size_t apart, rows_u8 w[8])
{
    rows_u8 tops = rows_u8_load(block->tops, apart);
    load_nibbles(block->low.nibbles, apart, w);
    UNROLLED
    for (int c = 0; c < 8; c++)
        w[c] |= (c <= 4 ? rows_u8_left(tops, 4 - c) : rows_u8_right(tops, c - 4)) & 16;
}

/* Same as block_mxfp4_scale. */
LANES_INLINE rows_f32 scales_of_exponents(const uint8_t exponents[8], size_t apart)
{
    rows_i32 e = rows_i32_from_u8(exponents, apart);
    rows_i32 subnormal = e < 2, none = e == 255;
    rows_i32 bits = (subnormal & ((e + 1) << 21)) | (~subnormal & ((e - 1) << 23));
    return (rows_f32)((none & 0x7fc00000) | (~none & bits));
}

typedef uint16_t rows_u16 __attribute__((vector_size(sizeof(rows_u8))));

/* Bytes shifted by a number of bits that is not a compile-time constant, without masking: `bits` bits at the
 * other end come from the adjacent byte. */
LANES_INLINE rows_u8 rows_u8_pushed_left(rows_u8 v, int bits)
{
    return (rows_u8)((rows_u16)v << bits);
}

LANES_INLINE rows_u8 rows_u8_pushed_right(rows_u8 v, int bits)
{
    return (rows_u8)((rows_u16)v >> bits);
}

/* The two blocks of pair p of a superblock, whose weights have `bits` bits (a constant). Loops over pairs
 * are not unrolled, or the code of a tile would exceed the instruction cache. */
LANES_INLINE void load_pair(const uint8_t *nibbles, const uint8_t *tops, size_t apart, const int bits,
                            const int p, rows_u8 even[8], rows_u8 odd[8])
{
    UNROLLED
    for (int c = 0; c < 8; c++) {
        rows_u8 both = rows_u8_load(nibbles + 32 * c, apart);
        even[c] = both & 15;
        odd[c] = rows_u8_right(both, 4);
        if (bits == 5) {
            rows_u8 top = rows_u8_pushed_right(rows_u8_load(tops + 32 * c, apart), 2 * p);
            even[c] |= rows_u8_left(top, 4) & 16;
            odd[c] |= rows_u8_left(top, 3) & 16;
        } else if (bits == 6) {
            rows_u8 top = rows_u8_pushed_left(rows_u8_load(tops + 32 * c, apart), 4 - 4 * (p % 2));
            even[c] |= top & 48;
            odd[c] |= rows_u8_right(top, 2) & 48;
        }
    }
}

/* Block j of a superblock, from pairs of bits. */
LANES_INLINE void load_pairs(const uint8_t pairs[2][8 * 32], size_t apart, const int j, rows_u8 w[8])
{
    UNROLLED
    for (int c = 0; c < 8; c++)
        w[c] = rows_u8_right(rows_u8_load(pairs[j / 4] + 32 * c, apart), 2 * (j % 4)) & 3;
}

#endif
