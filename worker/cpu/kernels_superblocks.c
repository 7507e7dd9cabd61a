/* SPDX-License-Identifier: MIT */
/* Products of Q4_K, Q5_K and Q6_K weights with 8-bit activations: 256 columns to a float scale, with integer
 * scales inside.
 *
 * Per block of 32 columns the products and the integer scales are summed exactly in integers; each block is
 * multiplied by its activation scale and added to the superblock's sum, which the float scale then brings
 * into the row's. Minimums (Q4_K, Q5_K) are summed the same way from the activations' block sums; the offset
 * of Q6_K is taken off in integers. */

#include "worker/cpu/kernels_set.h"
#include "worker/cpu/packing.h"

/* The two blocks of pair p as eight chunks of bytes each, for a format with `bits` bits a weight (constant).
 * The loop over pairs is not unrolled: the code of a tile would outgrow the instruction cache. */
LANES_INLINE void load_pair(const uint8_t *nibbles, const uint8_t *tops, const int bits, const int p,
                            u8x32 even[8], u8x32 odd[8])
{
    nibbles += p * 256;
    UNROLLED
    for (int c = 0; c < 8; c++) {
        u8x32 both = u8x32_load(nibbles + 32 * c);
        even[c] = both & 15;
        odd[c] = u8x32_right(both, 4);
        if (bits == 5) {
            u8x32 top = u8x32_right(u8x32_load(tops + 32 * c), 2 * p);
            even[c] |= u8x32_left(top, 4) & 16;
            odd[c] |= u8x32_left(top, 3) & 16;
        } else if (bits == 6) {
            u8x32 top = u8x32_right(u8x32_load(tops + p / 2 * 256 + 32 * c), 4 * (p % 2));
            even[c] |= u8x32_left(top, 4) & 48;
            odd[c] |= u8x32_left(top, 2) & 48;
        }
    }
}

/* Q4_K and Q5_K, of `bits` bits. */
LANES_INLINE void min_tile(const uint8_t *group, uint32_t n_columns, const struct activations *x,
                           uint32_t first, const int n, float *out, size_t out_stride, const int bits)
{
    f32x8 sum[TILE_MAX];
    UNROLLED
    for (int i = 0; i < n; i++)
        sum[i] = f32x8_splat(0);
    const size_t x_blocks = x->stride / KERNELS_BLOCK;
    const uint32_t bytes = bits == 5 ? PACKED_Q5_K_BYTES : PACKED_Q4_K_BYTES;
    for (uint32_t s = 0; s < n_columns / 256; s++, group += bytes) {
        prefetch_ahead(group, bytes, n);
        f32x8 inner[TILE_MAX], mins[TILE_MAX];
        UNROLLED
        for (int i = 0; i < n; i++)
            inner[i] = mins[i] = f32x8_splat(0);
        for (int p = 0; p < 4; p++) {
            u8x32 w[2][8];
            load_pair(group + PACKED_Q4_K_NIBBLES, group + PACKED_Q5_K_BITS, bits, p, w[0], w[1]);
            UNROLLED
            for (int h = 0; h < 2; h++) {
                int j = 2 * p + h;
                i32x8 scale = i32x8_from_u8(group + PACKED_Q4_K_SCALES + 8 * j);
                f32x8 min = f32x8_from_i32(i32x8_from_u8(group + PACKED_Q4_K_MINS + 8 * j));
                UNROLLED
                for (int i = 0; i < n; i++) {
                    size_t row = first + (size_t)i, block = row * x_blocks + s * 8 + (size_t)j;
                    const int8_t *quants = x->quants + row * x->stride + s * 256 + j * 32;
                    i32x8 dot = dot_unsigned(w[h], 8, (1 << bits) - 1, quants, scale);
                    inner[i] = f32x8_fma(f32x8_from_i32(dot), f32x8_splat(x->scales[block]), inner[i]);
                    mins[i] = f32x8_fma(min, f32x8_splat(x->sums[block]), mins[i]);
                }
            }
        }
        f32x8 scale = f32x8_from_f16((const uint16_t *)(const void *)group);
        f32x8 min_scale = f32x8_from_f16((const uint16_t *)(const void *)(group + 16));
        UNROLLED
        for (int i = 0; i < n; i++) {
            sum[i] = f32x8_fma(inner[i], scale, sum[i]);
            sum[i] = f32x8_fma(mins[i], -min_scale, sum[i]);
        }
    }
    UNROLLED
    for (int i = 0; i < n; i++)
        f32x8_store(out + (size_t)i * out_stride, sum[i]);
}

LANES_INLINE void q6_k_tile(const uint8_t *group, uint32_t n_columns, const struct activations *x,
                            uint32_t first, const int n, float *out, size_t out_stride)
{
    f32x8 sum[TILE_MAX];
    UNROLLED
    for (int i = 0; i < n; i++)
        sum[i] = f32x8_splat(0);
    const size_t x_blocks = x->stride / KERNELS_BLOCK;
    for (uint32_t s = 0; s < n_columns / 256; s++, group += PACKED_Q6_K_BYTES) {
        prefetch_ahead(group, PACKED_Q6_K_BYTES, n);
        f32x8 inner[TILE_MAX];
        UNROLLED
        for (int i = 0; i < n; i++)
            inner[i] = f32x8_splat(0);
        for (int p = 0; p < 4; p++) {
            u8x32 w[2][8];
            load_pair(group + PACKED_Q6_K_NIBBLES, group + PACKED_Q6_K_BITS, 6, p, w[0], w[1]);
            UNROLLED
            for (int h = 0; h < 2; h++) {
                int j = 2 * p + h;
                const int8_t *scales = (const int8_t *)group + PACKED_Q6_K_SCALES + 16 * j;
                i32x8 scale0 = i32x8_from_i8(scales), scale1 = i32x8_from_i8(scales + 8);
                UNROLLED
                for (int i = 0; i < n; i++) {
                    size_t row = first + (size_t)i, block = row * x_blocks + s * 8 + (size_t)j;
                    const int8_t *quants = x->quants + row * x->stride + s * 256 + j * 32;
                    i32x8 dot = dot_unsigned(w[h], 4, 63, quants, scale0) +
                                dot_unsigned(w[h] + 4, 4, 63, quants + 16, scale1);
                    dot -= weighted_pair(scale0, scale1, x->half_sums + 2 * block) << 5;
                    inner[i] = f32x8_fma(f32x8_from_i32(dot), f32x8_splat(x->scales[block]), inner[i]);
                }
            }
        }
        f32x8 scale = f32x8_from_f16((const uint16_t *)(const void *)group);
        UNROLLED
        for (int i = 0; i < n; i++)
            sum[i] = f32x8_fma(inner[i], scale, sum[i]);
    }
    UNROLLED
    for (int i = 0; i < n; i++)
        f32x8_store(out + (size_t)i * out_stride, sum[i]);
}

DEFINE_MULTIPLY(multiply_q4_k, min_tile, 4)
DEFINE_MULTIPLY(multiply_q5_k, min_tile, 5)
DEFINE_MULTIPLY(multiply_q6_k, q6_k_tile)
