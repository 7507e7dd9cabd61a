/* SPDX-License-Identifier: MIT */
#ifndef CPU_LANES_ROWS_NEON_H
#define CPU_LANES_ROWS_NEON_H

/* Vectors of products and attention on 64-bit ARM: one register, so that a group of eight weight rows takes
 * two. Loads from a group take the number of the half, 0 or 1, instead of the distance to a second group.
 * The instructions take weights and activations as signed bytes, so an offset is subtracted from the weights
 * themselves, once for all rows of a tile.
 *
 * Three builds differ in how bytes are multiplied and added to 32-bit lanes: SMMLA takes eight columns of
 * two weight rows and two activation rows (LANES_SQUARES), SDOT four columns of four weight rows and one
 * activation row (LANES_DOTPROD), and the baseline goes through 16 bits. All give the same integers, and
 * everything else is the same, so all three give the same bits. */

#include "cpu/lanes/lanes.h"

#define LANES_ROWS   4
#define LANES_GROUPS 1
#define LANES_PARTS  2

typedef float32x4_t rows_f32;
typedef int32x4_t rows_i32;
typedef uint8x16_t rows_u8; /* [4 rows][4 columns], half a chunk of packing.h */

LANES_INLINE rows_f32 rows_f32_load(const float *p, size_t part)
{
    return vld1q_f32(p + 4 * part);
}

LANES_INLINE rows_f32 rows_f32_load_all(const float *p)
{
    return vld1q_f32(p);
}

LANES_INLINE rows_f32 rows_f32_from_f16(const uint16_t *p, size_t part)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * part)));
}

LANES_INLINE rows_f32 rows_f32_from_f16_all(const uint16_t *p)
{
    return rows_f32_from_f16(p, 0);
}

LANES_INLINE rows_f32 rows_f32_from_bf16(const uint16_t *p, size_t part)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * part), 16));
}

LANES_INLINE int32_t four_bytes(const void *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return four;
}

LANES_INLINE rows_i32 rows_i32_from_u8(const uint8_t *p, size_t part)
{
    uint16x8_t words = vmovl_u8(vreinterpret_u8_s32(vdup_n_s32(four_bytes(p + 4 * part))));
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words)));
}

LANES_INLINE rows_i32 rows_i32_from_i8(const int8_t *p, size_t part)
{
    int16x8_t words = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four_bytes(p + 4 * part))));
    return vmovl_s16(vget_low_s16(words));
}

LANES_INLINE rows_u8 rows_u8_load(const uint8_t *p, size_t part)
{
    return vld1q_u8(p + 16 * part);
}

LANES_INLINE void rows_f32_store(float *p, rows_f32 v)
{
    vst1q_f32(p, v);
}

LANES_INLINE rows_f32 rows_f32_splat(float x)
{
    return vdupq_n_f32(x);
}

LANES_INLINE rows_i32 rows_i32_splat(int32_t x)
{
    return vdupq_n_s32(x);
}

LANES_INLINE rows_f32 rows_f32_fma(rows_f32 a, rows_f32 b, rows_f32 c)
{
    return vfmaq_f32(c, a, b);
}

LANES_INLINE rows_f32 rows_f32_from_i32(rows_i32 v)
{
    return vcvtq_f32_s32(v);
}

LANES_INLINE rows_u8 rows_u8_left(rows_u8 v, int bits)
{
    return v << (uint8_t)bits;
}

LANES_INLINE rows_u8 rows_u8_right(rows_u8 v, int bits)
{
    return v >> (uint8_t)bits;
}

LANES_INLINE rows_u8 rows_u8_entries(const int8_t table[16], rows_u8 v)
{
    return vreinterpretq_u8_s8(vqtbl1q_s8(vld1q_s8(table), v));
}

/* ---- weights in the order in which they are multiplied, HALF vectors for 16 columns ---- */

#if defined(LANES_SQUARES)

#define HALF   2
#define HALF_X 32 /* bytes of their activations: [2][2 rows][8 columns] */

/* Two chunks become [2 rows][8 columns] of the rows 0 and 1, and of 2 and 3: all columns of the former come
 * first. */
LANES_INLINE void rows_arrange(rows_u8 w[8])
{
    rows_u8 arranged[8];
    UNROLLED
    for (int c = 0; c < 4; c++) {
        const uint32x4_t even = vreinterpretq_u32_u8(w[2 * c]), odd = vreinterpretq_u32_u8(w[2 * c + 1]);
        arranged[c] = vreinterpretq_u8_u32(vzip1q_u32(even, odd));
        arranged[c + 4] = vreinterpretq_u8_u32(vzip2q_u32(even, odd));
    }
    UNROLLED
    for (int c = 0; c < 8; c++)
        w[c] = arranged[c];
}

/* The operands of sum i of a tile: weight rows 0 and 1 if i is even, 2 and 3 if it is odd. Its lanes are [2
 * activation rows][2 weight rows]. */
LANES_INLINE const rows_u8 *rows_weights(const rows_u8 w[8], int i)
{
    return w + 4 * (i % 2);
}

LANES_INLINE rows_f32 rows_f32_of(rows_f32 v, int i)
{
    float32x2_t two = i % 2 ? vget_high_f32(v) : vget_low_f32(v);
    return vcombine_f32(two, two);
}

LANES_INLINE rows_i32 rows_i32_of(rows_i32 v, int i)
{
    int32x2_t two = i % 2 ? vget_high_s32(v) : vget_low_s32(v);
    return vcombine_s32(two, two);
}

/* sum + Σ (w − offset) · x over 16 columns. */
LANES_INLINE rows_i32 rows_add_half(rows_i32 sum, const rows_u8 *w, uint8_t offset, const int8_t *x)
{
    sum = vmmlaq_s32(sum, vld1q_s8(x), vreinterpretq_s8_u8(w[0] - offset));
    return vmmlaq_s32(sum, vld1q_s8(x + 16), vreinterpretq_s8_u8(w[1] - offset));
}

#else

#define HALF   4
#define HALF_X 16

#define rows_arrange(w)
#define rows_weights(w, i) (w)
#define rows_f32_of(v, i)  (v)
#define rows_i32_of(v, i)  (v)

#if defined(LANES_DOTPROD)
LANES_INLINE rows_i32 rows_add_half(rows_i32 sum, const rows_u8 *w, uint8_t offset, const int8_t *x)
{
    const int8x16_t all = vld1q_s8(x);
    sum = vdotq_laneq_s32(sum, vreinterpretq_s8_u8(w[0] - offset), all, 0);
    sum = vdotq_laneq_s32(sum, vreinterpretq_s8_u8(w[1] - offset), all, 1);
    sum = vdotq_laneq_s32(sum, vreinterpretq_s8_u8(w[2] - offset), all, 2);
    return vdotq_laneq_s32(sum, vreinterpretq_s8_u8(w[3] - offset), all, 3);
}
#else
/* Two products fit 16 bits: 128 · 127 · 2 < 2^15. */
LANES_INLINE rows_i32 rows_add_half(rows_i32 sum, const rows_u8 *w, uint8_t offset, const int8_t *x)
{
    rows_i32 low = vdupq_n_s32(0), high = vdupq_n_s32(0); /* [2 rows][2]: even and odd pairs of columns */
    UNROLLED
    for (int c = 0; c < 4; c += 2) {
        const int8x16_t x0 = vreinterpretq_s8_s32(vdupq_n_s32(four_bytes(x + 4 * c)));
        const int8x16_t x1 = vreinterpretq_s8_s32(vdupq_n_s32(four_bytes(x + 4 * c + 4)));
        const int8x16_t w0 = vreinterpretq_s8_u8(w[c] - offset), w1 = vreinterpretq_s8_u8(w[c + 1] - offset);
        int16x8_t first = vmull_s8(vget_low_s8(w0), vget_low_s8(x0));
        low = vpadalq_s16(low, vmlal_s8(first, vget_low_s8(w1), vget_low_s8(x1)));
        high = vpadalq_s16(high, vmlal_high_s8(vmull_high_s8(w0, x0), w1, x1));
    }
    return sum + vpaddq_s32(low, high);
}
#endif
#endif

/* ---- the dot products: portable.h says what each means ---- */

LANES_INLINE rows_f32 rows_dot_offset(const rows_u8 *w, int max_weight, int offset, const int8_t *x,
                                      const int16_t *halves)
{
    (void)max_weight, (void)halves;
    rows_i32 sum = rows_add_half(rows_i32_splat(0), w, (uint8_t)offset, x);
    return rows_f32_from_i32(rows_add_half(sum, w + HALF, (uint8_t)offset, x + HALF_X));
}

LANES_INLINE rows_f32 rows_dot_signed(const rows_u8 *w, const int8_t *x, const int16_t *halves)
{
    return rows_dot_offset(w, 0, 0, x, halves);
}

LANES_INLINE rows_f32 rows_dot_scaled(const rows_u8 *w, int max_weight, const int8_t *x, rows_i32 factor)
{
    return rows_dot_offset(w, max_weight, 0, x, NULL) * rows_f32_from_i32(factor);
}

LANES_INLINE rows_f32 rows_dot_halves(const rows_u8 *w, int max_weight, int offset, const int8_t *x,
                                      const int16_t *halves, const rows_i32 factors[2])
{
    (void)max_weight, (void)halves;
    rows_i32 first = rows_add_half(rows_i32_splat(0), w, (uint8_t)offset, x);
    rows_i32 last = rows_add_half(rows_i32_splat(0), w + HALF, (uint8_t)offset, x + HALF_X);
    return rows_f32_from_i32(first * factors[0] + last * factors[1]);
}

#undef HALF
#undef HALF_X

#endif
