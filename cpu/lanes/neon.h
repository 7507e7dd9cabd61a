/* SPDX-License-Identifier: MIT */
#ifndef CPU_LANES_NEON_H
#define CPU_LANES_NEON_H

/* Eight lanes on 64-bit ARM, two registers of four. portable.h defines each operation.
 *
 * These serve rows of activations; products and attention use vectors of one register (rows_neon.h), because
 * compilers keep wider ones in memory across a loop. */

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#if defined(LANES_SQUARES) /* a part of the i8mm build: products of many rows */
#define LANES_NAME      "i8mm"
#define LANES_NAMED(id) id##_i8mm
#elif defined(LANES_DOTPROD)
#define LANES_NAME      "dotprod"
#define LANES_NAMED(id) id##_dotprod
#else
#define LANES_NAME      "neon"
#define LANES_NAMED(id) id##_neon
#endif
#define LANES_INLINE static inline __attribute__((always_inline))

typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));

LANES_INLINE f32x8 f32x8_join(float32x4_t low, float32x4_t high)
{
    const float32x4_t parts[2] = {low, high};
    f32x8 v;
    memcpy(&v, parts, sizeof v);
    return v;
}

LANES_INLINE i32x8 i32x8_join(int32x4_t low, int32x4_t high)
{
    const int32x4_t parts[2] = {low, high};
    i32x8 v;
    memcpy(&v, parts, sizeof v);
    return v;
}

/* Lanes 0 to 3, or 4 to 7. */
LANES_INLINE float32x4_t f32x8_part(f32x8 v, const int part)
{
    float32x4_t parts[2];
    memcpy(parts, &v, sizeof v);
    return parts[part];
}

LANES_INLINE int32x4_t i32x8_part(i32x8 v, const int part)
{
    int32x4_t parts[2];
    memcpy(parts, &v, sizeof v);
    return parts[part];
}

LANES_INLINE f32x8 f32x8_load(const float *p)
{
    return f32x8_join(vld1q_f32(p), vld1q_f32(p + 4));
}

LANES_INLINE void f32x8_store(float *p, f32x8 v)
{
    vst1q_f32(p, f32x8_part(v, 0));
    vst1q_f32(p + 4, f32x8_part(v, 1));
}

LANES_INLINE f32x8 f32x8_splat(float x)
{
    return f32x8_join(vdupq_n_f32(x), vdupq_n_f32(x));
}

LANES_INLINE i32x8 i32x8_splat(int32_t x)
{
    return i32x8_join(vdupq_n_s32(x), vdupq_n_s32(x));
}

LANES_INLINE f32x8 f32x8_fma(f32x8 a, f32x8 b, f32x8 c)
{
    return f32x8_join(vfmaq_f32(f32x8_part(c, 0), f32x8_part(a, 0), f32x8_part(b, 0)),
                      vfmaq_f32(f32x8_part(c, 1), f32x8_part(a, 1), f32x8_part(b, 1)));
}

LANES_INLINE f32x8 f32x8_select(i32x8 mask, f32x8 a, f32x8 b)
{
    return f32x8_join(
        vbslq_f32(vreinterpretq_u32_s32(i32x8_part(mask, 0)), f32x8_part(a, 0), f32x8_part(b, 0)),
        vbslq_f32(vreinterpretq_u32_s32(i32x8_part(mask, 1)), f32x8_part(a, 1), f32x8_part(b, 1)));
}

/* Not FMAX, which returns NaN for every pair that contains one. */
LANES_INLINE f32x8 f32x8_max(f32x8 a, f32x8 b)
{
    return f32x8_select(a > b, a, b);
}

LANES_INLINE f32x8 f32x8_from_i32(i32x8 v)
{
    return f32x8_join(vcvtq_f32_s32(i32x8_part(v, 0)), vcvtq_f32_s32(i32x8_part(v, 1)));
}

LANES_INLINE i32x8 i32x8_nearest(f32x8 v)
{
    return i32x8_join(vcvtnq_s32_f32(f32x8_part(v, 0)), vcvtnq_s32_f32(f32x8_part(v, 1)));
}

LANES_INLINE void i32x8_store_i8(int8_t *p, i32x8 v)
{
    int16x8_t words = vcombine_s16(vmovn_s32(i32x8_part(v, 0)), vmovn_s32(i32x8_part(v, 1)));
    vst1_s8(p, vmovn_s16(words));
}

LANES_INLINE f32x8 f32x8_from_f16(const uint16_t *p)
{
    float16x8_t halves = vreinterpretq_f16_u16(vld1q_u16(p));
    return f32x8_join(vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves));
}

#define LANES_ATTEND_HALVES 8 /* conversion is an instruction */

LANES_INLINE void f32x8_to_f16(uint16_t *p, f32x8 v)
{
    float16x4_t low = vcvt_f16_f32(f32x8_part(v, 0));
    vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(low, f32x8_part(v, 1))));
}

#endif
