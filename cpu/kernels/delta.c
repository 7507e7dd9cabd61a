/* SPDX-License-Identifier: MIT */
/* Gated delta nets (struct delta_net in model/description.h): the convolution, unit vectors, the recurrence,
 * and gates.
 *
 * Eight rows of S, one a lane, do not depend on the others: they stay in the first cache while all rows of a
 * sequence go by. Sums over a key run in four chains, for one would wait for each addition, and are added up
 * in one order. */

#include "cpu/kernels/build.h"

#define CHAINS 4

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

LANES_INLINE f32x8 total(const f32x8 chains[CHAINS])
{
    return (chains[0] + chains[1]) + (chains[2] + chains[3]);
}

/* S k. */
LANES_INLINE f32x8 recall(const float *state, const float *key, uint32_t key_dim)
{
    f32x8 sums[CHAINS] = {f32x8_splat(0), f32x8_splat(0), f32x8_splat(0), f32x8_splat(0)};
    for (uint32_t i = 0; i < key_dim; i += CHAINS) {
        UNROLLED
        for (uint32_t c = 0; c < CHAINS; c++)
            sums[c] = f32x8_fma(f32x8_load(state + 8 * (i + c)), f32x8_splat(key[i + c]), sums[c]);
    }
    return total(sums);
}

/* S ← α S + d kᵀ; S q. */
LANES_INLINE f32x8 update(float *state, f32x8 decay, f32x8 delta, const float *key, const float *query,
                          uint32_t key_dim)
{
    f32x8 sums[CHAINS] = {f32x8_splat(0), f32x8_splat(0), f32x8_splat(0), f32x8_splat(0)};
    for (uint32_t i = 0; i < key_dim; i += CHAINS) {
        UNROLLED
        for (uint32_t c = 0; c < CHAINS; c++) {
            float *at = state + 8 * (i + c);
            f32x8 s = f32x8_fma(f32x8_splat(key[i + c]), delta, decay * f32x8_load(at));
            f32x8_store(at, s);
            sums[c] = f32x8_fma(s, f32x8_splat(query[i + c]), sums[c]);
        }
    }
    return total(sums);
}

void LANES_NAMED(delta_rule)(const struct delta_rows *rows, float *state)
{
    for (uint32_t r = 0; r < rows->n; r++) {
        const float *key = rows->keys + r * rows->key_stride, *query = rows->queries + r * rows->key_stride;
        float *value = rows->values + r * rows->value_stride;
        const f32x8 decay = f32x8_splat(rows->decays[r * rows->gate_stride]);
        const f32x8 beta = f32x8_splat(rows->betas[r * rows->gate_stride]);
        const f32x8 delta = beta * (f32x8_load(value) - decay * recall(state, key, rows->key_dim));
        f32x8_store(value, update(state, decay, delta, key, query, rows->key_dim));
    }
}
