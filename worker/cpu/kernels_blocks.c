/* SPDX-License-Identifier: MIT */
/* Products of Q8_0, Q4_0 and Q5_0 weights with 8-bit activations: one scale per row and 32 columns.
 *
 * Per block: the 32 products of a row are summed exactly in integers, then scaled by weight scale ·
 * activation scale and added to the row's float sum. Blocks follow one another in the order of columns. */

#include "worker/cpu/kernels_set.h"
#include "worker/cpu/packing.h"

LANES_INLINE void q8_0_tile(const uint8_t *group, uint32_t n_columns, const struct activations *x,
                            uint32_t first, const int n, float *out, size_t out_stride)
{
    f32x8 sum[TILE_MAX];
    UNROLLED
    for (int i = 0; i < n; i++)
        sum[i] = f32x8_splat(0);
    const size_t x_blocks = x->stride / KERNELS_BLOCK;
    for (uint32_t b = 0; b < n_columns / 32; b++, group += PACKED_Q8_0_BYTES) {
        prefetch_ahead(group, PACKED_Q8_0_BYTES, n);
        f32x8 scale = f32x8_from_f16((const uint16_t *)(const void *)group);
        u8x32 w[8];
        UNROLLED
        for (int c = 0; c < 8; c++)
            w[c] = u8x32_load(group + 16 + 32 * c);
        UNROLLED
        for (int i = 0; i < n; i++) {
            size_t row = first + (size_t)i;
            i32x8 dot = dot_signed(w, 8, x->quants + row * x->stride + b * 32);
            f32x8 factor = scale * f32x8_splat(x->scales[row * x_blocks + b]);
            sum[i] = f32x8_fma(f32x8_from_i32(dot), factor, sum[i]);
        }
    }
    UNROLLED
    for (int i = 0; i < n; i++)
        f32x8_store(out + (size_t)i * out_stride, sum[i]);
}

/* Q4_0 and Q5_0; `bits` is a constant. */
LANES_INLINE void nibble_tile(const uint8_t *group, uint32_t n_columns, const struct activations *x,
                              uint32_t first, const int n, float *out, size_t out_stride, const int bits)
{
    f32x8 sum[TILE_MAX];
    UNROLLED
    for (int i = 0; i < n; i++)
        sum[i] = f32x8_splat(0);
    const size_t x_blocks = x->stride / KERNELS_BLOCK;
    for (uint32_t b = 0; b < n_columns / 32;
         b++, group += bits == 5 ? PACKED_Q5_0_BYTES : PACKED_Q4_0_BYTES) {
        f32x8 scale = f32x8_from_f16((const uint16_t *)(const void *)group);
        u8x32 w[8];
        UNROLLED
        for (int c = 0; c < 4; c++) {
            u8x32 both = u8x32_load(group + 16 + 32 * c);
            w[c] = both & 15;
            w[c + 4] = u8x32_right(both, 4);
        }
        if (bits == 5) {
            u8x32 tops = u8x32_load(group + PACKED_Q5_0_BITS);
            UNROLLED
            for (int c = 0; c < 8; c++)
                w[c] |= (c <= 4 ? u8x32_left(tops, 4 - c) : u8x32_right(tops, c - 4)) & 16;
        }
        UNROLLED
        for (int i = 0; i < n; i++) {
            size_t row = first + (size_t)i;
            const int16_t *halves = x->half_sums + (row * x_blocks + b) * 2;
            i32x8 dot =
                dot_unsigned(w, 8, (1 << bits) - 1, x->quants + row * x->stride + b * 32, i32x8_splat(1));
            dot -= i32x8_splat((1 << (bits - 1)) * (halves[0] + halves[1]));
            f32x8 factor = scale * f32x8_splat(x->scales[row * x_blocks + b]);
            sum[i] = f32x8_fma(f32x8_from_i32(dot), factor, sum[i]);
        }
    }
    UNROLLED
    for (int i = 0; i < n; i++)
        f32x8_store(out + (size_t)i * out_stride, sum[i]);
}

DEFINE_MULTIPLY(multiply_q8_0, q8_0_tile)
DEFINE_MULTIPLY(multiply_q4_0, nibble_tile, 4)
DEFINE_MULTIPLY(multiply_q5_0, nibble_tile, 5)
