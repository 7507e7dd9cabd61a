/* SPDX-License-Identifier: MIT */
#ifndef CPU_LANES_PORTABLE_H
#define CPU_LANES_PORTABLE_H

/* Eight lanes in plain C: runs on every machine, and defines each operation.
 *
 * Kernels are written once over these operations and compiled once per instruction set, with another header
 * instead of this one (avx2.h). Vector types are the compiler's; arithmetic on them uses the ordinary
 * operators. Loads and stores need no alignment. */

#include <stdint.h>
#include <string.h>

#include "gguf/format.h"

#define LANES_NAME      "portable"
#define LANES_NAMED(id) id##_portable
#define LANES_INLINE    static inline __attribute__((always_inline))

typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef int16_t i16x16 __attribute__((vector_size(32)));
typedef uint16_t u16x16 __attribute__((vector_size(32)));
typedef uint8_t u8x32 __attribute__((vector_size(32)));

LANES_INLINE f32x8 f32x8_load(const float *p)
{
    f32x8 v;
    memcpy(&v, p, sizeof v);
    return v;
}

LANES_INLINE void f32x8_store(float *p, f32x8 v)
{
    memcpy(p, &v, sizeof v);
}

LANES_INLINE f32x8 f32x8_splat(float x)
{
    return (f32x8){x, x, x, x, x, x, x, x};
}

LANES_INLINE i32x8 i32x8_splat(int32_t x)
{
    return (i32x8){x, x, x, x, x, x, x, x};
}

/* a · b + c, rounded once if the hardware can, twice here; the same everywhere within one build. */
LANES_INLINE f32x8 f32x8_fma(f32x8 a, f32x8 b, f32x8 c)
{
    return a * b + c;
}

/* a where a lane of the mask is set (all ones), else b. */
LANES_INLINE f32x8 f32x8_select(i32x8 mask, f32x8 a, f32x8 b)
{
    return (f32x8)((mask & (i32x8)a) | (~mask & (i32x8)b));
}

LANES_INLINE f32x8 f32x8_max(f32x8 a, f32x8 b)
{
    return f32x8_select(a > b, a, b);
}

LANES_INLINE f32x8 f32x8_from_i32(i32x8 v)
{
    return __builtin_convertvector(v, f32x8);
}

/* To the nearest integer, ties to even. |v| < 2^22. */
LANES_INLINE i32x8 i32x8_nearest(f32x8 v)
{
    f32x8 magic = f32x8_splat(12582912.0f); /* 1.5 · 2^23: the sum's low bits are the integer */
    return (i32x8)(v + magic) - (i32x8)magic;
}

LANES_INLINE i32x8 i32x8_from_u8(const uint8_t *p)
{
    typedef uint8_t u8x8 __attribute__((vector_size(8)));
    u8x8 v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, i32x8);
}

LANES_INLINE i32x8 i32x8_from_i8(const int8_t *p)
{
    typedef int8_t i8x8 __attribute__((vector_size(8)));
    i8x8 v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, i32x8);
}

/* Keeps the low 8 bits of each lane. */
LANES_INLINE void i32x8_store_i8(int8_t *p, i32x8 v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (int8_t)v[i];
}

LANES_INLINE u32x8 u32x8_from_u16(const uint16_t *p)
{
    typedef uint16_t u16x8 __attribute__((vector_size(16)));
    u16x8 v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, u32x8);
}

LANES_INLINE f32x8 f32x8_from_bf16(const uint16_t *p)
{
    return (f32x8)(u32x8_from_u16(p) << 16);
}

LANES_INLINE f32x8 f32x8_from_f16(const uint16_t *p)
{
    u32x8 h = u32x8_from_u16(p);
    u32x8 sign = (h & 0x8000) << 16, magnitude = (h & 0x7fff) << 13;
    /* The product moves the exponent's bias from 15 to 127 and makes subnormals normal. */
    f32x8 scaled = (f32x8)magnitude * f32x8_splat(0x1p112f);
    u32x8 special = (u32x8)((h & 0x7c00) == 0x7c00) & 0x7f800000; /* infinities and NaN */
    return (f32x8)((u32x8)scaled | special | sign);
}

#define LANES_ATTEND_HALVES 0 /* conversion is slow here */

LANES_INLINE void f32x8_to_f16(uint16_t *p, f32x8 v)
{
    for (int i = 0; i < 8; i++)
        p[i] = format_f32_to_f16(v[i]);
}

LANES_INLINE u8x32 u8x32_load(const uint8_t *p)
{
    u8x32 v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Shifts within each byte. */
LANES_INLINE u8x32 u8x32_left(u8x32 v, int bits)
{
    return v << (uint8_t)bits;
}

LANES_INLINE u8x32 u8x32_right(u8x32 v, int bits)
{
    return v >> (uint8_t)bits;
}

/* Looks up each byte, 0 … 15, in the table. */
LANES_INLINE u8x32 u8x32_entries(const int8_t table[16], u8x32 v)
{
    u8x32 entries;
    for (int i = 0; i < 32; i++)
        entries[i] = (uint8_t)table[v[i]];
    return entries;
}

/* Four columns of eight rows, even and odd columns apart, times four activations. Two products fit 16 bits:
 * 128 · 127 · 2 < 2^15. */
LANES_INLINE i32x8 dot_four(i16x16 even, i16x16 odd, const int8_t *x)
{
    i16x16 x_even = (i16x16)i32x8_splat((uint16_t)x[0] | (int32_t)x[2] * 65536);
    i16x16 x_odd = (i16x16)i32x8_splat((uint16_t)x[1] | (int32_t)x[3] * 65536);
    i16x16 sums = even * x_even + odd * x_odd;
    return ((i32x8)((u32x8)sums << 16) >> 16) + ((i32x8)sums >> 16);
}

/* Σ w · x over n_chunks chunks. */
LANES_INLINE i32x8 dot_chunks(const u8x32 *w, int n_chunks, const int8_t *x)
{
    i32x8 sum = {0};
    for (int c = 0; c < n_chunks; c++) {
        u16x16 pairs = (u16x16)w[c]; /* even columns in the low bytes, odd ones in the high */
        sum += dot_four((i16x16)(pairs & 0xff), (i16x16)(pairs >> 8), x + 4 * c);
    }
    return sum;
}

/* The dot products behind every quantized format: 32 columns of eight rows with 32 activations, |x| ≤ 127.
 * `w` is eight chunks ([row][4 columns] bytes); weights are unsigned and at most max_weight, a constant: it
 * determines how many 16-bit products can be added before they overflow. `halves` are Σ x of the first 16
 * columns and of the last, for offsets of the weights. Results are floats, but exact: everything stays below
 * 2^24, so it does not matter whether a build multiplies integers or floats.
 *
 * factor · Σ w · x; |factor| ≤ 63, max_weight ≤ 31. */
LANES_INLINE f32x8 dot_scaled(const u8x32 w[8], int max_weight, const int8_t *x, i32x8 factor)
{
    (void)max_weight;
    return f32x8_from_i32(dot_chunks(w, 8, x) * factor);
}

/* Σ (w − offset) · x. */
LANES_INLINE f32x8 dot_offset(const u8x32 w[8], int max_weight, int offset, const int8_t *x,
                              const int16_t halves[2])
{
    (void)max_weight;
    return f32x8_from_i32(dot_chunks(w, 8, x) - offset * (halves[0] + halves[1]));
}

/* Σ w · x, each byte of w an int8_t. */
LANES_INLINE f32x8 dot_signed(const u8x32 w[8], const int8_t *x, const int16_t halves[2])
{
    (void)halves;
    i32x8 sum = {0};
    for (int c = 0; c < 8; c++)
        sum += dot_four((i16x16)((u16x16)w[c] << 8) >> 8, (i16x16)w[c] >> 8, x + 4 * c);
    return f32x8_from_i32(sum);
}

/* Each half of 16 columns with its own factor: Σ over both of factors[half] · Σ (w − offset) · x; max_weight
 * ≤ 63, |factor| ≤ 128. */
LANES_INLINE f32x8 dot_halves(const u8x32 w[8], int max_weight, int offset, const int8_t *x,
                              const int16_t halves[2], const i32x8 factors[2])
{
    (void)max_weight;
    i32x8 sum = factors[0] * (dot_chunks(w, 4, x) - offset * halves[0]);
    return f32x8_from_i32(sum + factors[1] * (dot_chunks(w + 4, 4, x + 16) - offset * halves[1]));
}

#endif
