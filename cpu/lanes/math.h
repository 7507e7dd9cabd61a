/* SPDX-License-Identifier: MIT */
#ifndef CPU_LANES_MATH_H
#define CPU_LANES_MATH_H

/* Functions over eight lanes, built from the operations of lanes.h.
 *
 * Each lane's result depends on that lane alone: a value gives the same bits anywhere in a vector. */

#include "cpu/lanes/lanes.h"

#include <math.h>

/* e^x within 2 units in the last place; 0 below -87, infinity above 88.7; NaN stays NaN. */
LANES_INLINE f32x8 f32x8_exp(f32x8 x)
{
    f32x8 low = f32x8_splat(-87.0f), high = f32x8_splat(88.7f);
    f32x8 y = f32x8_select(x > low, x, low);
    y = f32x8_select(y < high, y, high);
    i32x8 n = i32x8_nearest(y * f32x8_splat(1.44269504f));
    f32x8 whole = f32x8_from_i32(n);
    /* y - n · ln 2, with ln 2 in two parts so that the first product is exact. */
    f32x8 r = f32x8_fma(whole, f32x8_splat(-0.693359375f), y);
    r = f32x8_fma(whole, f32x8_splat(2.12194440e-4f), r);
    /* The Taylor series to r^7 / 5040; |r| ≤ 0.347 leaves an error below 6e-9. */
    f32x8 p = f32x8_splat(1.0f / 5040);
    p = f32x8_fma(p, r, f32x8_splat(1.0f / 720));
    p = f32x8_fma(p, r, f32x8_splat(1.0f / 120));
    p = f32x8_fma(p, r, f32x8_splat(1.0f / 24));
    p = f32x8_fma(p, r, f32x8_splat(1.0f / 6));
    p = f32x8_fma(p, r, f32x8_splat(0.5f));
    p = f32x8_fma(p, r, f32x8_splat(1.0f));
    p = f32x8_fma(p, r, f32x8_splat(1.0f));
    /* 2^n in two halves: n = 128 alone would overflow the exponent. */
    i32x8 half = n >> 1;
    f32x8 result = p * (f32x8)((half + 127) << 23) * (f32x8)((n - half + 127) << 23);
    result = f32x8_select(x < low, f32x8_splat(0), result);
    result = f32x8_select(x > high, f32x8_splat(INFINITY), result);
    return f32x8_select(x == x, result, x);
}

/* cap · tanh(x / cap), by tanh y = 1 − 2 / (e^2y + 1), with an error of at most cap · 2^−23. */
LANES_INLINE f32x8 f32x8_soft_cap(f32x8 x, float cap)
{
    f32x8 one = f32x8_splat(1);
    f32x8 e = f32x8_exp(x * f32x8_splat(2 / cap));
    return f32x8_splat(cap) * (one - f32x8_splat(2) / (e + one));
}

/* Sums and maxima across lanes, in one fixed order. */
LANES_INLINE float f32x8_sum(f32x8 v)
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

LANES_INLINE float f32x8_largest(f32x8 v)
{
    float largest = v[0];
    for (int i = 1; i < 8; i++)
        largest = v[i] > largest ? v[i] : largest;
    return largest;
}

#endif
