/* SPDX-License-Identifier: MIT */
#ifndef CPU_LANES_AVX2_H
#define CPU_LANES_AVX2_H

/* Eight lanes with AVX2, FMA and F16C. portable.h defines each operation. */

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#if !defined(LANES_NAME) /* avx512.h builds on this */
#define LANES_NAME      "avx2"
#define LANES_NAMED(id) id##_avx2
#endif
#define LANES_INLINE static inline __attribute__((always_inline))

typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef uint8_t u8x32 __attribute__((vector_size(32)));

LANES_INLINE f32x8 f32x8_load(const float *p)
{
    return (f32x8)_mm256_loadu_ps(p);
}

LANES_INLINE void f32x8_store(float *p, f32x8 v)
{
    _mm256_storeu_ps(p, (__m256)v);
}

LANES_INLINE f32x8 f32x8_splat(float x)
{
    return (f32x8)_mm256_set1_ps(x);
}

LANES_INLINE i32x8 i32x8_splat(int32_t x)
{
    return (i32x8)_mm256_set1_epi32(x);
}

LANES_INLINE f32x8 f32x8_fma(f32x8 a, f32x8 b, f32x8 c)
{
    return (f32x8)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

LANES_INLINE f32x8 f32x8_select(i32x8 mask, f32x8 a, f32x8 b)
{
    return (f32x8)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
}

LANES_INLINE f32x8 f32x8_max(f32x8 a, f32x8 b)
{
    return (f32x8)_mm256_max_ps((__m256)a, (__m256)b);
}

LANES_INLINE f32x8 f32x8_from_i32(i32x8 v)
{
    return (f32x8)_mm256_cvtepi32_ps((__m256i)v);
}

LANES_INLINE i32x8 i32x8_nearest(f32x8 v)
{
    return (i32x8)_mm256_cvtps_epi32((__m256)v);
}

LANES_INLINE i32x8 i32x8_from_u8(const uint8_t *p)
{
    return (i32x8)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

LANES_INLINE i32x8 i32x8_from_i8(const int8_t *p)
{
    return (i32x8)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

LANES_INLINE void i32x8_store_i8(int8_t *p, i32x8 v)
{
    __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi16(words, words));
}

LANES_INLINE u32x8 u32x8_from_u16(const uint16_t *p)
{
    return (u32x8)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

LANES_INLINE f32x8 f32x8_from_bf16(const uint16_t *p)
{
    return (f32x8)(u32x8_from_u16(p) << 16);
}

LANES_INLINE f32x8 f32x8_from_f16(const uint16_t *p)
{
    return (f32x8)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

#define LANES_ATTEND_HALVES 8 /* conversion is an instruction */

LANES_INLINE void f32x8_to_f16(uint16_t *p, f32x8 v)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}

LANES_INLINE u8x32 u8x32_load(const uint8_t *p)
{
    return (u8x32)_mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* There are no byte shifts: shift words and mask the bits that crossed over. */
LANES_INLINE u8x32 u8x32_left(u8x32 v, int bits)
{
    __m256i mask = _mm256_set1_epi8((char)(0xff << bits));
    return (u8x32)_mm256_and_si256(_mm256_slli_epi16((__m256i)v, bits), mask);
}

LANES_INLINE u8x32 u8x32_right(u8x32 v, int bits)
{
    __m256i mask = _mm256_set1_epi8((char)(0xff >> bits));
    return (u8x32)_mm256_and_si256(_mm256_srli_epi16((__m256i)v, bits), mask);
}

LANES_INLINE u8x32 u8x32_entries(const int8_t table[16], u8x32 v)
{
    __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
    return (u8x32)_mm256_shuffle_epi8(twice, (__m256i)v);
}

LANES_INLINE __m256i four_activations(const int8_t *x)
{
    int32_t four;
    memcpy(&four, x, sizeof four);
    return _mm256_set1_epi32(four);
}

#if !defined(LANES_VNNI) /* which multiplies bytes differently: rows_vnni.h */

/* Words duplicated in each lane, as factors for two 16-bit sums. */
LANES_INLINE __m256i words_twice(i32x8 v)
{
    return _mm256_or_si256(_mm256_slli_epi32((__m256i)v, 16),
                           _mm256_and_si256((__m256i)v, _mm256_set1_epi32(0xffff)));
}

/* factor · Σ w · x over n_chunks chunks. */
LANES_INLINE i32x8 dot_chunks(const u8x32 *w, int n_chunks, int max_weight, const int8_t *x, i32x8 factor)
{
    /* maddubs adds two products in 16 bits; `run` of its results still fit: 15 → 8, 31 → 4, 63 → 2. */
    int run = 32767 / (2 * 127 * max_weight);
    if (run > n_chunks)
        run = n_chunks;
    __m256i factors = words_twice(factor), total = _mm256_setzero_si256();
    UNROLLED
    for (int c = 0; c < n_chunks; c += run) {
        __m256i sum = _mm256_maddubs_epi16((__m256i)w[c], four_activations(x + 4 * c));
        UNROLLED
        for (int i = c + 1; i < c + run; i++)
            sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16((__m256i)w[i], four_activations(x + 4 * i)));
        total = _mm256_add_epi32(total, _mm256_madd_epi16(sum, factors));
    }
    return (i32x8)total;
}

LANES_INLINE f32x8 dot_offset(const u8x32 w[8], int max_weight, int offset, const int8_t *x,
                              const int16_t halves[2])
{
    i32x8 sum = dot_chunks(w, 8, max_weight, x, i32x8_splat(1));
    return f32x8_from_i32(sum - i32x8_splat(offset * (halves[0] + halves[1])));
}

LANES_INLINE f32x8 dot_signed(const u8x32 w[8], const int8_t *x, const int16_t halves[2])
{
    /* |w| · (x with w's sign): 128 · 127 · 2 still fits 16 bits, so -128 is a weight like any other. */
    __m256i total = _mm256_setzero_si256();
    (void)halves;
    UNROLLED
    for (int c = 0; c < 8; c++) {
        __m256i v = (__m256i)w[c];
        __m256i pairs =
            _mm256_maddubs_epi16(_mm256_abs_epi8(v), _mm256_sign_epi8(four_activations(x + 4 * c), v));
        total = _mm256_add_epi32(total, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
    return f32x8_from_i32((i32x8)total);
}

LANES_INLINE f32x8 dot_halves(const u8x32 w[8], int max_weight, int offset, const int8_t *x,
                              const int16_t halves[2], const i32x8 factors[2])
{
    i32x8 sum =
        dot_chunks(w, 4, max_weight, x, factors[0]) + dot_chunks(w + 4, 4, max_weight, x + 16, factors[1]);
    /* factors[0] · halves[0] + factors[1] · halves[1] in one instruction */
    __m256i both = _mm256_blend_epi16((__m256i)factors[0], _mm256_slli_epi32((__m256i)factors[1], 16), 0xaa);
    int32_t pair;
    memcpy(&pair, halves, sizeof pair);
    return f32x8_from_i32(sum - ((i32x8)_mm256_madd_epi16(both, _mm256_set1_epi32(pair)) * offset));
}

#endif
#endif
