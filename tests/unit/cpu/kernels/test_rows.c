/* SPDX-License-Identifier: MIT */
/* What happens to rows between products, on every build of the kernels. */

#include "cpu/kernels/kernels.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/activations.h"
#include "tests/unit/cpu/random_weights.h"
#include "tests/unit/cpu/tested_kernels.h"

#include <math.h>

#define N 96

START_TEST(rounding_to_8_bits_is_within_half_a_step)
{
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    float values[N], scales[3], sums[3];
    int8_t quants[N];
    int16_t half_sums[6];
    struct activations x = {.stride = N,
                            .values = values,
                            .quants = quants,
                            .scales = scales,
                            .sums = sums,
                            .half_sums = half_sums};
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
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t b = 0; b < 3; b++) {
        float values[32] = {1, 2, 3}, scale, sum;
        int8_t quants[32];
        int16_t half_sums[2];
        values[17 + b] = bad[b];
        struct activations x = {.stride = 32,
                                .values = values,
                                .quants = quants,
                                .scales = &scale,
                                .sums = &sum,
                                .half_sums = half_sums};
        kernels->quantize(&x, 0);
        ck_assert(isnan(scale) && isnan(sum));
        for (int i = 0; i < 32; i++)
            ck_assert_int_eq(quants[i], 0);
    }
}
END_TEST

START_TEST(the_norm_is_the_root_mean_square)
{
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
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
        for (uint32_t i = n; i < N; i++)
            ck_assert(isnan(out[i])); /* untouched */
        kernels->rms_norm(x, weight, n, 1e-5f, x);
        ck_assert_mem_eq(x, out, n * sizeof *x);
    }
}
END_TEST

START_TEST(the_layer_norm_takes_the_mean_off_and_adds_a_bias)
{
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    for (uint32_t n = 1; n <= N; n++) {
        float x[N], weight[N], bias[N], out[N];
        double mean = 0, squares = 0;
        for (uint32_t i = 0; i < n; i++) {
            x[i] = random_float() * 3 + 2;
            weight[i] = random_float();
            bias[i] = random_float();
            mean += (double)x[i] / n;
        }
        for (uint32_t i = 0; i < n; i++)
            squares += ((double)x[i] - mean) * ((double)x[i] - mean);
        for (int with_bias = 0; with_bias < 2; with_bias++) {
            kernels->layer_norm(x, weight, with_bias ? bias : NULL, n, 1e-5f, out);
            for (uint32_t i = 0; i < n; i++) {
                double expected = ((double)x[i] - mean) / sqrt(squares / n + 1e-5) * (double)weight[i];
                ck_assert_double_eq_tol((double)out[i], expected + (with_bias ? (double)bias[i] : 0), 1e-5);
            }
        }
    }
}
END_TEST

START_TEST(activations_are_what_their_names_say)
{
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    for (size_t a = 0; a < KINDS_OF(ACTIVATIONS); a++)
        for (float x = -30; x < 30; x += 0.37f) {
            float in[8] = {x, 0, -x, x / 7, x / 100, 1000, -1000, x}, factor[8], out[8];
            for (int i = 0; i < 8; i++)
                factor[i] = random_float();
            const enum activation activation = every_activation[a];
            kernels->activate[activation](in, NULL, 8, out);
            for (int i = 0; i < 8; i++) {
                double expected = activated(activation, (double)in[i]);
                ck_assert_double_eq_tol((double)out[i], expected,
                                        1e-6 * (fabs((double)in[i]) + expected) + 1e-30);
            }
            float plain[8];
            memcpy(plain, out, sizeof plain);
            kernels->activate[activation](in, factor, 8, out);
            for (int i = 0; i < 8; i++) {
                const float by =
                    (float)gated(activation, 1, (double)factor[i]) / (float)activated(activation, 1);
                ck_assert_double_eq_tol((double)out[i], (double)(plain[i] * by),
                                        1e-6 * fabs((double)(plain[i] * by)) + 1e-30);
            }
        }
}
END_TEST

START_TEST(a_soft_cap_bends_towards_its_limit)
{
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    for (float cap = 0.5f; cap < 100; cap *= 3)
        for (float x = -300; x < 300; x += 7.3f) {
            float in[8] = {x, -x, x / 10, x / 100, x / 1000, 1e9f, -1e9f, 0}, out[8];
            memcpy(out, in, sizeof out);
            kernels->soft_cap(out, 8, cap);
            for (int i = 0; i < 8; i++) {
                double expected = (double)cap * tanh((double)in[i] / (double)cap);
                ck_assert_double_eq_tol((double)out[i], expected, 4e-7 * (double)cap);
            }
        }
}
END_TEST

START_TEST(the_gate_is_exact_to_a_few_units_in_the_last_place)
{
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    float gate[8], up[8], out[8];
    for (float start = -100; start < 100; start += 0.01f) {
        for (int i = 0; i < 8; i++) {
            gate[i] = start + 0.001f * (float)i;
            up[i] = 1;
        }
        kernels->activate[ACTIVATION_SILU](gate, up, 8, out);
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
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    for (int round = 0; round < 1000; round++) {
        float value = random_float() * 30, gate[16], up[16], out[16];
        for (int i = 0; i < 16; i++) {
            gate[i] = value;
            up[i] = 0.7f;
        }
        kernels->activate[ACTIVATION_SILU](gate, up, 16, out);
        for (int i = 1; i < 16; i++)
            ck_assert_mem_eq(&out[i], &out[0], sizeof(float));
    }
}
END_TEST

START_TEST(every_half_precision_number_converts)
{
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
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
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
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
    while (tested_kernels((uint32_t)n))
        n++;
    tcase_add_loop_test(tests, rounding_to_8_bits_is_within_half_a_step, 0, n);
    tcase_add_loop_test(tests, what_is_not_finite_stays_visible, 0, n);
    tcase_add_loop_test(tests, the_norm_is_the_root_mean_square, 0, n);
    tcase_add_loop_test(tests, the_layer_norm_takes_the_mean_off_and_adds_a_bias, 0, n);
    tcase_add_loop_test(tests, activations_are_what_their_names_say, 0, n);
    tcase_add_loop_test(tests, a_soft_cap_bends_towards_its_limit, 0, n);
    tcase_add_loop_test(tests, the_gate_is_exact_to_a_few_units_in_the_last_place, 0, n);
    tcase_add_loop_test(tests, the_gate_gives_the_same_bits_at_every_place, 0, n);
    tcase_add_loop_test(tests, every_half_precision_number_converts, 0, n);
    tcase_add_loop_test(tests, adding_adds, 0, n);
}

int main(void)
{
    return run_tests("rows", add);
}
