/* SPDX-License-Identifier: MIT */
/* What happens to a row of activations between products: norms, rounding to 8 bits, activations, soft caps,
 * conversions. */

#include "cpu/kernels/build.h"

LANES_INLINE f32x8 magnitude(f32x8 v)
{
    return (f32x8)((i32x8)v & 0x7fffffff);
}

/* One block of 32: quants, scale, sums. */
static void quantize_block(const float *values, int8_t *quants, float *scale, float *sum,
                           int16_t half_sums[2])
{
    f32x8 largest = f32x8_splat(0), poison = f32x8_splat(0);
    for (int i = 0; i < KERNELS_BLOCK; i += 8) {
        f32x8 v = f32x8_load(values + i);
        largest = f32x8_max(magnitude(v), largest);
        poison += v * f32x8_splat(0); /* NaN where v is not finite */
    }
    float amax = f32x8_largest(largest);
    if (f32x8_sum(poison) != 0) {
        memset(quants, 0, KERNELS_BLOCK);
        half_sums[0] = half_sums[1] = 0;
        *scale = *sum = NAN;
        return;
    }
    /* Below this the reciprocal would overflow; such a block is nothing beside any other. */
    f32x8 inverse = f32x8_splat(amax > 1e-30f ? 127.0f / amax : 0);
    for (int half = 0; half < 2; half++) {
        i32x8 total = i32x8_splat(0);
        for (int i = 16 * half; i < 16 * half + 16; i += 8) {
            i32x8 q = i32x8_nearest(f32x8_load(values + i) * inverse);
            i32x8_store_i8(quants + i, q);
            total += q;
        }
        int32_t s = 0;
        for (int i = 0; i < 8; i++)
            s += total[i];
        half_sums[half] = (int16_t)s;
    }
    *scale = amax / 127.0f;
    *sum = *scale * (float)(half_sums[0] + half_sums[1]);
}

void LANES_NAMED(quantize)(const struct activations *x, uint32_t row)
{
    const uint32_t n_blocks = x->stride / KERNELS_BLOCK;
    for (uint32_t b = 0; b < n_blocks; b++) {
        size_t block = (size_t)row * n_blocks + b;
        quantize_block(x->values + block * KERNELS_BLOCK, x->quants + block * KERNELS_BLOCK,
                       &x->scales[block], &x->sums[block], &x->half_sums[2 * block]);
    }
}

void LANES_NAMED(rms_norm)(const float *x, const float *weight, uint32_t n, float epsilon, float *out)
{
    f32x8 squares = f32x8_splat(0);
    uint32_t whole = n / 8 * 8;
    for (uint32_t i = 0; i < whole; i += 8) {
        f32x8 v = f32x8_load(x + i);
        squares = f32x8_fma(v, v, squares);
    }
    float total = f32x8_sum(squares);
    for (uint32_t i = whole; i < n; i++)
        total += x[i] * x[i];
    float factor = 1.0f / sqrtf(total / (float)n + epsilon);
    for (uint32_t i = 0; i < whole; i += 8)
        f32x8_store(out + i, f32x8_load(x + i) * f32x8_splat(factor) * f32x8_load(weight + i));
    for (uint32_t i = whole; i < n; i++)
        out[i] = x[i] * factor * weight[i];
}

/* Σ over n elements of x, or of (x − mean)². */
LANES_INLINE float total_of(const float *x, uint32_t n, float mean, const bool squared)
{
    f32x8 sums = f32x8_splat(0);
    uint32_t whole = n / 8 * 8;
    for (uint32_t i = 0; i < whole; i += 8) {
        f32x8 v = f32x8_load(x + i) - f32x8_splat(mean);
        sums = squared ? f32x8_fma(v, v, sums) : sums + v;
    }
    float total = f32x8_sum(sums);
    for (uint32_t i = whole; i < n; i++)
        total += squared ? (x[i] - mean) * (x[i] - mean) : x[i] - mean;
    return total;
}

void LANES_NAMED(layer_norm)(const float *x, const float *weight, const float *bias, uint32_t n,
                             float epsilon, float *out)
{
    float mean = total_of(x, n, 0, false) / (float)n;
    float factor = 1.0f / sqrtf(total_of(x, n, mean, true) / (float)n + epsilon);
    for (uint32_t i = 0; i < n; i++)
        out[i] = (x[i] - mean) * factor * weight[i] + (bias ? bias[i] : 0);
}

LANES_INLINE void store_product(float *out, f32x8 v, const float *factor, uint32_t i)
{
    f32x8_store(out + i, factor ? v * f32x8_load(factor + i) : v);
}

void LANES_NAMED(silu)(const float *x, const float *factor, uint32_t n, float *out)
{
    f32x8 one = f32x8_splat(1);
    for (uint32_t i = 0; i < n; i += 8) {
        f32x8 v = f32x8_load(x + i);
        store_product(out, v / (one + f32x8_exp(-v)), factor, i);
    }
}

/* x / 2 · (1 + tanh u) is x / (1 + e^−2u), with u = √(2/π) · (x + 0.044715 x³). */
void LANES_NAMED(gelu)(const float *x, const float *factor, uint32_t n, float *out)
{
    f32x8 one = f32x8_splat(1), cubic = f32x8_splat(0.044715f), outer = f32x8_splat(-2 * 0.79788456f);
    for (uint32_t i = 0; i < n; i += 8) {
        f32x8 v = f32x8_load(x + i);
        f32x8 u = f32x8_fma(v * v * v, cubic, v);
        store_product(out, v / (one + f32x8_exp(u * outer)), factor, i);
    }
}

void LANES_NAMED(relu_squared)(const float *x, const float *factor, uint32_t n, float *out)
{
    f32x8 zero = f32x8_splat(0);
    for (uint32_t i = 0; i < n; i += 8) {
        f32x8 v = f32x8_load(x + i);
        v = f32x8_select(v < zero, zero, v);
        store_product(out, v * v, factor, i);
    }
}

/* The gate clamped from above, the factor on both sides; an ungated one is its own. */
void LANES_NAMED(swiglu_clamped)(const float *x, const float *factor, uint32_t n, float *out)
{
    f32x8 one = f32x8_splat(1), limit = f32x8_splat(7), steep = f32x8_splat(-1.702f);
    for (uint32_t i = 0; i < n; i += 8) {
        f32x8 v = f32x8_load(x + i);
        v = f32x8_select(v > limit, limit, v);
        v = v / (one + f32x8_exp(v * steep));
        if (factor) {
            f32x8 up = f32x8_load(factor + i);
            up = f32x8_select(up > limit, limit, f32x8_select(up < -limit, -limit, up));
            v *= up + one;
        }
        f32x8_store(out + i, v);
    }
}

void LANES_NAMED(soft_cap)(float *x, uint32_t n, float cap)
{
    for (uint32_t i = 0; i < n; i += 8)
        f32x8_store(x + i, f32x8_soft_cap(f32x8_load(x + i), cap));
}

void LANES_NAMED(add)(float *x, const float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 8)
        f32x8_store(x + i, f32x8_load(x + i) + f32x8_load(y + i));
}

void LANES_NAMED(floats_to_halves)(const float *in, uint32_t n, uint16_t *out)
{
    for (uint32_t i = 0; i < n; i += 8)
        f32x8_to_f16(out + i, f32x8_load(in + i));
}

/* Plain loops, which compilers make vectors of: multiplications have no order. */
void LANES_NAMED(scale_each)(const int8_t *quants, const float *scales, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (float)quants[i] * scales[i];
}

void LANES_NAMED(scale_all)(const int8_t *quants, float scale, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (float)quants[i] * scale;
}
