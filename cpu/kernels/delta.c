/* SPDX-License-Identifier: MIT */
/* Gated delta nets (struct delta_net in model/description.h): the convolution, unit vectors and gates. The
 * recurrence is in delta_rule.c. */

#include "cpu/kernels/build.h"

void LANES_NAMED(sigmoid)(const float *x, const float *factor, uint32_t n, float *out)
{
    f32x8 one = f32x8_splat(1);
    for (uint32_t i = 0; i < n; i += 8) {
        f32x8 v = f32x8_load(x + i);
        f32x8_store(out + i, f32x8_load(factor + i) / (one + f32x8_exp(-v)));
    }
}

void LANES_NAMED(unit)(const float *x, uint32_t n, float epsilon, float scale, float *out)
{
    f32x8 squares = f32x8_splat(0);
    const uint32_t whole = n / 8 * 8;
    for (uint32_t i = 0; i < whole; i += 8) {
        f32x8 v = f32x8_load(x + i);
        squares = f32x8_fma(v, v, squares);
    }
    float total = f32x8_sum(squares);
    for (uint32_t i = whole; i < n; i++)
        total += x[i] * x[i];
    const float factor = scale / sqrtf(total + epsilon);
    for (uint32_t i = 0; i < whole; i += 8)
        f32x8_store(out + i, f32x8_load(x + i) * f32x8_splat(factor));
    for (uint32_t i = whole; i < n; i++)
        out[i] = x[i] * factor;
    for (uint32_t i = n; i % 8 != 0; i++)
        out[i] = 0;
}

void LANES_NAMED(convolve)(const float *const *rows, const float *taps, uint32_t n_taps, size_t tap_stride,
                           uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i += 8) {
        f32x8 sum = f32x8_load(rows[0] + i) * f32x8_load(taps + i);
        for (uint32_t t = 1; t < n_taps; t++)
            sum = f32x8_fma(f32x8_load(rows[t] + i), f32x8_load(taps + t * tap_stride + i), sum);
        f32x8_store(out + i, sum);
    }
}
