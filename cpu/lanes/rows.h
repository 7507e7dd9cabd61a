/* SPDX-License-Identifier: MIT */
#ifndef CPU_LANES_ROWS_H
#define CPU_LANES_ROWS_H

/* The widest vectors of a build: eight lanes, sixteen where it defines LANES_PAIR, four on ARM
 * (rows_neon.h). In products a lane is a weight row of the tile: of one group of eight, or of two that are
 * `apart` bytes apart; loads then read both, and the lanes of the second follow those of the first. In
 * attention lanes are tokens or dimensions. Each lane computes as in a vector of eight, so the bits are the
 * same.
 *
 * Before products, weights are arranged for the dot products (rows_arrange), and sum i of a tile takes its
 * part of weights, scales and sums (rows_weights, rows_f32_of, rows_i32_of). All of these do nothing unless
 * LANES_SQUARES is defined: otherwise sum i belongs to activation row i and takes everything. */

#include "cpu/lanes/lanes.h"

#if defined(LANES_NEON)

#include "cpu/lanes/rows_neon.h"

#else

/* Groups per vector; vectors per group. */
#define LANES_GROUPS (LANES_ROWS / 8)
#define LANES_PARTS  1

#define rows_arrange(w)
#define rows_weights(w, i) (w)
#define rows_f32_of(v, i)  (v)
#define rows_i32_of(v, i)  (v)

#if defined(LANES_PAIR)

#define LANES_ROWS 16

typedef float rows_f32 __attribute__((vector_size(64)));
typedef int32_t rows_i32 __attribute__((vector_size(64)));
typedef uint8_t rows_u8 __attribute__((vector_size(64))); /* [row][4 columns], as a chunk of packing.h */

/* 8, 16 and 32 bytes of each group. */
LANES_INLINE __m128i pair_of_8(const void *p, size_t apart)
{
    return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)p),
                              _mm_loadl_epi64((const __m128i *)(const void *)((const uint8_t *)p + apart)));
}

LANES_INLINE __m256i pair_of_16(const void *p, size_t apart)
{
    __m128i second = _mm_loadu_si128((const __m128i *)(const void *)((const uint8_t *)p + apart));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p)), second, 1);
}

LANES_INLINE __m512i pair_of_32(const void *p, size_t apart)
{
    __m256i second = _mm256_loadu_si256((const __m256i *)(const void *)((const uint8_t *)p + apart));
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p)), second, 1);
}

LANES_INLINE rows_f32 rows_f32_load(const float *p, size_t apart)
{
    return (rows_f32)pair_of_32(p, apart);
}

/* As many consecutive floats as there are lanes. */
LANES_INLINE rows_f32 rows_f32_load_all(const float *p)
{
    return (rows_f32)_mm512_loadu_ps(p);
}

LANES_INLINE rows_f32 rows_f32_from_f16(const uint16_t *p, size_t apart)
{
    return (rows_f32)_mm512_cvtph_ps(pair_of_16(p, apart));
}

/* As many consecutive halves as there are lanes. */
LANES_INLINE rows_f32 rows_f32_from_f16_all(const uint16_t *p)
{
    return rows_f32_from_f16(p, 8 * sizeof *p);
}

LANES_INLINE rows_f32 rows_f32_from_bf16(const uint16_t *p, size_t apart)
{
    return (rows_f32)_mm512_slli_epi32(_mm512_cvtepu16_epi32(pair_of_16(p, apart)), 16);
}

LANES_INLINE rows_i32 rows_i32_from_u8(const uint8_t *p, size_t apart)
{
    return (rows_i32)_mm512_cvtepu8_epi32(pair_of_8(p, apart));
}

LANES_INLINE rows_i32 rows_i32_from_i8(const int8_t *p, size_t apart)
{
    return (rows_i32)_mm512_cvtepi8_epi32(pair_of_8(p, apart));
}

LANES_INLINE rows_u8 rows_u8_load(const uint8_t *p, size_t apart)
{
    return (rows_u8)pair_of_32(p, apart);
}

LANES_INLINE void rows_f32_store(float *p, rows_f32 v)
{
    _mm512_storeu_ps(p, (__m512)v);
}

/* Eight lanes each. */
LANES_INLINE void rows_f32_store_apart(float *p, size_t apart, rows_f32 v)
{
    _mm256_storeu_ps(p, _mm512_castps512_ps256((__m512)v));
    _mm256_storeu_ps((float *)(void *)((uint8_t *)p + apart), _mm512_extractf32x8_ps((__m512)v, 1));
}

LANES_INLINE rows_f32 rows_f32_splat(float x)
{
    return (rows_f32)_mm512_set1_ps(x);
}

LANES_INLINE rows_i32 rows_i32_splat(int32_t x)
{
    return (rows_i32)_mm512_set1_epi32(x);
}

LANES_INLINE rows_f32 rows_f32_fma(rows_f32 a, rows_f32 b, rows_f32 c)
{
    return (rows_f32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

LANES_INLINE rows_f32 rows_f32_from_i32(rows_i32 v)
{
    return (rows_f32)_mm512_cvtepi32_ps((__m512i)v);
}

LANES_INLINE rows_u8 rows_u8_left(rows_u8 v, int bits)
{
    return (rows_u8)_mm512_and_si512(_mm512_slli_epi16((__m512i)v, (unsigned)bits),
                                     _mm512_set1_epi8((char)(0xff << bits)));
}

LANES_INLINE rows_u8 rows_u8_right(rows_u8 v, int bits)
{
    return (rows_u8)_mm512_and_si512(_mm512_srli_epi16((__m512i)v, (unsigned)bits),
                                     _mm512_set1_epi8((char)(0xff >> bits)));
}

LANES_INLINE rows_u8 rows_u8_entries(const int8_t table[16], rows_u8 v)
{
    __m512i four_times = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)table));
    return (rows_u8)_mm512_shuffle_epi8(four_times, (__m512i)v);
}

/* sum + four products of bytes, sum + two of words. The instruction itself broadcasts the four activations;
 * compilers do not find this and load them separately. */
LANES_INLINE rows_i32 rows_add_bytes(rows_i32 sum, rows_u8 w, const int8_t x[4])
{
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*(const int8_t(*)[4])x));
    return sum;
}

LANES_INLINE rows_i32 rows_add_words(rows_i32 sum, int32_t words, const int16_t x[2])
{
    int32_t two;
    memcpy(&two, x, sizeof two);
    return (rows_i32)_mm512_dpwssd_epi32((__m512i)sum, _mm512_set1_epi32(words), _mm512_set1_epi32(two));
}

#else

#define LANES_ROWS 8

typedef f32x8 rows_f32;
typedef i32x8 rows_i32;
typedef u8x32 rows_u8;

LANES_INLINE rows_f32 rows_f32_load(const float *p, size_t apart)
{
    (void)apart;
    return f32x8_load(p);
}

LANES_INLINE rows_f32 rows_f32_from_f16(const uint16_t *p, size_t apart)
{
    (void)apart;
    return f32x8_from_f16(p);
}

LANES_INLINE rows_f32 rows_f32_from_bf16(const uint16_t *p, size_t apart)
{
    (void)apart;
    return f32x8_from_bf16(p);
}

LANES_INLINE rows_i32 rows_i32_from_u8(const uint8_t *p, size_t apart)
{
    (void)apart;
    return i32x8_from_u8(p);
}

LANES_INLINE rows_i32 rows_i32_from_i8(const int8_t *p, size_t apart)
{
    (void)apart;
    return i32x8_from_i8(p);
}

LANES_INLINE rows_u8 rows_u8_load(const uint8_t *p, size_t apart)
{
    (void)apart;
    return u8x32_load(p);
}

#define rows_f32_load_all     f32x8_load
#define rows_f32_from_f16_all f32x8_from_f16
#define rows_f32_store        f32x8_store
#define rows_f32_splat        f32x8_splat
#define rows_i32_splat        i32x8_splat
#define rows_f32_fma          f32x8_fma
#define rows_f32_from_i32     f32x8_from_i32
#define rows_u8_left          u8x32_left
#define rows_u8_right         u8x32_right
#define rows_u8_entries       u8x32_entries

#if defined(LANES_VNNI)
LANES_INLINE rows_i32 rows_add_bytes(rows_i32 sum, rows_u8 w, const int8_t x[4])
{
#if defined(LANES_AVX512)
    __asm__("vpdpbusd %2%{1to8%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*(const int8_t(*)[4])x));
    return sum;
#else
    return (rows_i32)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)w, four_activations(x));
#endif
}

LANES_INLINE rows_i32 rows_add_words(rows_i32 sum, int32_t words, const int16_t x[2])
{
    return (rows_i32)LANES_ADD_WORDS((__m256i)sum, _mm256_set1_epi32(words),
                                     four_activations((const int8_t *)x));
}
#else
#define rows_dot_scaled dot_scaled
#define rows_dot_offset dot_offset
#define rows_dot_signed dot_signed
#define rows_dot_halves dot_halves
#endif

#endif

#if defined(LANES_VNNI)
#include "cpu/lanes/rows_vnni.h"
#endif

#endif
#endif
