/* SPDX-License-Identifier: MIT */
/* What happens to rows between products, on every kernel table. */

#include "worker/cpu/kernels.h"
#include "tests/unit/run.h"
#include "tests/unit/worker/cpu/random_weights.h"

#include <math.h>

#define N 96

START_TEST(rounding_to_8_bits_is_within_half_a_step)
{
    const struct kernels *kernels = kernels_at((uint32_t)_i);
    float values[N], scales[3], sums[3];
    int8_t quants[N];
    int16_t half_sums[6];
    struct activations x = {N, values, quants, scales, sums, half_sums};
    for (int round = 0; round < 200; round++) {
        float size = powf(10, (float)(round % 60 - 30));
        for (int i = 0; i < N; i++)
            values[i] = i < 32 && round % 5 == 0 ? 0 : random_float() * size;
        kernels->quantize(&x, 0);
        for (int i = 0; i < N; i++) {
            ck_assert_int_ge(quants[i], -127);
            ck_assert_float_le(fabsf(values[i] - scales[i / 32] * quants[i]),
                               fmaxf(scales[i / 32] * 0.501f, 2e-30f));
        }
        for (int h = 0; h < 6; h++) {
            int sum = 0;
            for (int i = 0; i < 16; i++)
                sum += quants[h * 16 + i];
            ck_assert_int_eq(half_sums[h], sum);
        }
        for (int b = 0; b < 3; b++)
            ck_assert_float_eq(sums[b], scales[b] * (float)(half_sums[2 * b] + half_sums[2 * b + 1]));
    }
}
END_TEST

START_TEST(what_is_not_finite_stays_visible)
{
    const struct kernels *kernels = kernels_at((uint32_t)_i);
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t b = 0; b < 3; b++) {
        float values[32] = {1, 2, 3}, scale, sum;
        int8_t quants[32];
        int16_t half_sums[2];
        values[17 + b] = bad[b];
        struct activations x = {32, values, quants, &scale, &sum, half_sums};
        kernels->quantize(&x, 0);
        ck_assert(isnan(scale) && isnan(sum));
        for (int i = 0; i < 32; i++)
            ck_assert_int_eq(quants[i], 0);
    }
}
END_TEST

START_TEST(the_norm_is_the_root_mean_square)
{
    const struct kernels *kernels = kernels_at((uint32_t)_i);
    for (uint32_t n = 1; n <= N; n++) {
        float x[N], weight[N], out[N];
        double squares = 0;
        for (uint32_t i = 0; i < n; i++) {
            x[i] = random_float() * 3;
            weight[i] = random_float();
            squares += (double)x[i] * x[i];
        }
        memset(out, 0xff, sizeof out);
        kernels->rms_norm(x, weight, n, 1e-5f, out);
        for (uint32_t i = 0; i < n; i++)
            ck_assert_double_eq_tol((double)out[i], x[i] / sqrt(squares / n + 1e-5) * weight[i], 1e-6);
        for (uint32_t i = n; i < (n + 31) / 32 * 32; i++)
            ck_assert_float_eq(out[i], 0);
    }
}
END_TEST

START_TEST(the_gate_is_exact_to_a_few_units_in_the_last_place)
{
    const struct kernels *kernels = kernels_at((uint32_t)_i);
    float gate[8], up[8], out[8];
    for (float start = -100; start < 100; start += 0.01f) {
        for (int i = 0; i < 8; i++) {
            gate[i] = start + 0.001f * (float)i;
            up[i] = 1;
        }
        kernels->silu_multiply(gate, up, 8, out);
        for (int i = 0; i < 8; i++) {
            double expected = gate[i] / (1 + exp(-(double)gate[i]));
            ck_assert_msg(fabs((double)out[i] - expected) <= 6e-7 * fabs(expected) + 1e-35,
                          "silu(%.9g) = %.9g, not %.9g", gate[i], out[i], expected);
        }
    }
}
END_TEST

START_TEST(the_gate_gives_the_same_bits_at_every_place)
{
    const struct kernels *kernels = kernels_at((uint32_t)_i);
    for (int round = 0; round < 1000; round++) {
        float value = random_float() * 30, gate[16], up[16], out[16];
        for (int i = 0; i < 16; i++) {
            gate[i] = value;
            up[i] = 0.7f;
        }
        kernels->silu_multiply(gate, up, 16, out);
        for (int i = 1; i < 16; i++)
            ck_assert_mem_eq(&out[i], &out[0], sizeof(float));
    }
}
END_TEST

START_TEST(every_half_precision_number_converts)
{
    const struct kernels *kernels = kernels_at((uint32_t)_i);
    for (uint32_t h = 0; h < 65536; h += 8) {
        uint16_t in[8], back[8];
        float out[8];
        for (uint32_t i = 0; i < 8; i++)
            in[i] = (uint16_t)(h + i);
        kernels->halves_to_floats(in, 8, out);
        kernels->floats_to_halves(out, 8, back);
        for (int i = 0; i < 8; i++) {
            float expected = format_f16_to_f32(in[i]);
            if (isnan(expected)) {
                ck_assert(isnan(out[i]) && isnan(format_f16_to_f32(back[i])));
                continue;
            }
            ck_assert_mem_eq(&out[i], &expected, sizeof expected);
            ck_assert_uint_eq(back[i], in[i]);
        }
    }
    for (int round = 0; round < 20000; round++) {
        float in[8];
        uint16_t out[8];
        for (int i = 0; i < 8; i++)
            in[i] = random_float() * powf(2, (float)(random_u32() % 50) - 30);
        kernels->floats_to_halves(in, 8, out);
        for (int i = 0; i < 8; i++)
            ck_assert_uint_eq(out[i], format_f32_to_f16(in[i]));
    }
}
END_TEST

START_TEST(adding_adds)
{
    const struct kernels *kernels = kernels_at((uint32_t)_i);
    float x[24], y[24], before[24];
    for (int i = 0; i < 24; i++) {
        x[i] = before[i] = random_float();
        y[i] = random_float();
    }
    kernels->add(x, y, 24);
    for (int i = 0; i < 24; i++)
        ck_assert_float_eq(x[i], before[i] + y[i]);
}
END_TEST

static void add(TCase *tests)
{
    int n = 0;
    while (kernels_at((uint32_t)n))
        n++;
    tcase_add_loop_test(tests, rounding_to_8_bits_is_within_half_a_step, 0, n);
    tcase_add_loop_test(tests, what_is_not_finite_stays_visible, 0, n);
    tcase_add_loop_test(tests, the_norm_is_the_root_mean_square, 0, n);
    tcase_add_loop_test(tests, the_gate_is_exact_to_a_few_units_in_the_last_place, 0, n);
    tcase_add_loop_test(tests, the_gate_gives_the_same_bits_at_every_place, 0, n);
    tcase_add_loop_test(tests, every_half_precision_number_converts, 0, n);
    tcase_add_loop_test(tests, adding_adds, 0, n);
}

int main(void)
{
    return run_tests("rows", add);
}
