/* SPDX-License-Identifier: MIT */
/* What products are made into in the same launch, against the two one after the other. */

#include "tests/unit/cuda/kernels/inputs.h"
#include "tests/unit/cuda/kernels/matrices.h"
#include "tests/unit/run.h"

#include <errno.h>

#define MOST_ROWS 5

static struct device_activations make_out(uint32_t stride)
{
    return (struct device_activations){.values = on_device(NULL, MOST_ROWS * stride * sizeof(float)),
                                       .quants = on_device(NULL, (size_t)MOST_ROWS * stride),
                                       .scales = on_device(NULL, MOST_ROWS * stride / 32 * sizeof(float)),
                                       .sums = on_device(NULL, MOST_ROWS * stride / 32 * sizeof(float)),
                                       .stride = stride};
}

static void check_same(const void *a, const void *b, size_t bytes)
{
    ck_assert_mem_eq(from_device(a, bytes), from_device(b, bytes), bytes);
}

START_TEST(products_and_their_activation_in_one_are_the_two_one_after_the_other)
{
    const bool gated = _i % 2;
    const uint32_t n_ff = (uint32_t[]){333, 768, 20}[_i / 2], stride = layout_padded(n_ff);
    open_device();
    struct weights gate = make_weights(FORMAT_Q4_K, n_ff, 512, true);
    struct weights up = make_weights(FORMAT_Q6_K, n_ff, 512, false);
    struct inputs inputs = make_inputs(512, MOST_ROWS, fill_random);
    float *zeros = calloc(stride, sizeof *zeros);
    uint32_t *tickets = on_device(zeros, stride / 32 * sizeof *tickets);
    const uint32_t each = test_is_scaled() ? 2 : 1; /* the rest with the next size */
    for (uint32_t n = 1 + (_i / 2 % 2 && each == 2); n <= 5; n += each) {
        const size_t bytes = n * stride * sizeof(float);
        struct device_product products[2] = {{&gate.matrix, on_device(NULL, bytes), stride},
                                             {&up.matrix, on_device(NULL, bytes), stride}};
        struct device_activations two = make_out(stride), one = make_out(stride);
        const struct multiply_step step = {.n_rows = n};
        ck_assert_int_eq(kernels_multiply(queue, products, 2, &inputs.x, &step), 0);
        struct activate_step activate = {
            ACTIVATION_SILU, gated ? products[0].out : NULL, products[1].out, stride, stride, n_ff, two};
        ck_assert_int_eq(kernels_activate(queue, &activate, n), 0);
        ck_assert_int_eq(device_synchronize(queue), 0);
        uint64_t launches = device_counts(device).launches;
        activate.out = one;
        ck_assert_int_eq(kernels_multiply_activate(queue, gated ? products : products + 1, &inputs.x, &step,
                                                   &activate, tickets),
                         0);
        ck_assert_uint_eq(device_counts(device).launches - launches, n <= 4 ? 1 : 2);
        check_same(one.values, two.values, bytes);
        check_same(one.quants, two.quants, bytes / 4);
        check_same(one.scales, two.scales, bytes / 32);
        check_same(one.sums, two.sums, bytes / 32);
        ck_assert_mem_eq(from_device(tickets, stride / 32 * sizeof *tickets), zeros,
                         stride / 32 * sizeof *tickets);
    }
    free(zeros);
    free_weights(&gate);
    free_weights(&up);
    free_inputs(&inputs);
    close_device();
}
END_TEST

/* What a norm has, in bits. */
enum { WITH_NORM = 1, WITH_POST = 2, WITH_LAYER = 4, CASES = 8 };

START_TEST(a_product_and_its_norm_in_one_are_the_two_one_after_the_other)
{
    const uint32_t n = _i % 2 ? 700 : 1030, stride = layout_padded(n);
    open_device();
    struct weights weights = make_weights(FORMAT_Q5_0, n, 512, true);
    struct inputs inputs = make_inputs(512, MOST_ROWS, fill_random);
    float *floats = calloc(5 * stride, sizeof *floats);
    for (uint32_t i = 0; i < 5 * stride; i++)
        floats[i] = i % stride < n ? random_float() : 0;
    const float *vectors = on_device(floats, 4 * stride * sizeof(float));
    const uint32_t zero = 0;
    uint32_t *ticket = on_device(&zero, sizeof zero);
    const bool scaled = test_is_scaled();
    for (uint32_t rows = scaled ? 1 + (uint32_t)(_i / 2) % 2 : 1; rows <= 2; rows += scaled ? 2 : 1) {
        float *deltas = on_device(NULL, rows * stride * sizeof(float)), *streams[2];
        struct device_product product = {&weights.matrix, deltas, stride};
        const struct multiply_step multiply = {.n_rows = rows};
        struct device_activations outs[2];
        for (int one = 0; one < 2; one++) {
            streams[one] = on_device(floats + 3 * stride, rows * stride * sizeof(float));
            outs[one] = make_out(stride);
            struct norm_step step = {.stream = streams[one],
                                     .delta = deltas,
                                     .stride = stride,
                                     .n_columns = n,
                                     .norm = {_i & WITH_LAYER ? NORM_LAYER : NORM_RMS, 1e-5f, 0},
                                     .residual_scale = 0.5f,
                                     .out = outs[one]};
            step.post_norm = step.norm;
            if (_i & WITH_NORM)
                step.vector = (struct device_vector){vectors, vectors + stride};
            if (_i & WITH_POST)
                step.post_vector = (struct device_vector){vectors + 2 * stride, vectors + 3 * stride};
            if (one) {
                uint64_t launches = device_counts(device).launches;
                ck_assert_int_eq(kernels_multiply_norm(queue, &product, &inputs.x, &multiply, &step, ticket),
                                 0);
                ck_assert_uint_eq(device_counts(device).launches - launches, rows);
            } else {
                ck_assert_int_eq(kernels_multiply(queue, &product, 1, &inputs.x, &multiply), 0);
                ck_assert_int_eq(kernels_norm(queue, &step, rows), 0);
            }
        }
        /* Sums of another order: the last bits may differ. */
        const float *a = from_device(outs[0].values, rows * stride * sizeof(float));
        const float *b = from_device(outs[1].values, rows * stride * sizeof(float));
        const float *stream_a = from_device(streams[0], rows * stride * sizeof(float));
        const float *stream_b = from_device(streams[1], rows * stride * sizeof(float));
        const float *scales_a = from_device(outs[0].scales, rows * stride / 32 * sizeof(float));
        const float *scales_b = from_device(outs[1].scales, rows * stride / 32 * sizeof(float));
        const int8_t *quants_a = from_device(outs[0].quants, (size_t)rows * stride);
        const int8_t *quants_b = from_device(outs[1].quants, (size_t)rows * stride);
        for (uint32_t i = 0; i < rows * stride; i++) {
            ck_assert_float_eq_tol(stream_b[i], stream_a[i], 1e-5f * (1 + fabsf(stream_a[i])));
            ck_assert_float_eq_tol(b[i], a[i], 1e-5f * (1 + fabsf(a[i])));
            ck_assert_float_eq_tol(scales_b[i / 32], scales_a[i / 32], 1e-5f * (1 + scales_a[i / 32]));
            ck_assert_int_le(abs(quants_b[i] - quants_a[i]), 1);
        }
        ck_assert_uint_eq(*(uint32_t *)from_device(ticket, sizeof *ticket), 0);
    }
    free(floats);
    free_weights(&weights);
    free_inputs(&inputs);
    close_device();
}
END_TEST

/* An activation takes what its products make, and nothing else. */
START_TEST(an_activation_of_other_outputs_is_refused)
{
    open_device();
    struct weights weights = make_weights(FORMAT_Q8_0, 256, 256, false);
    struct inputs inputs = make_inputs(256, 1, fill_random);
    const uint32_t zeros[8] = {0};
    uint32_t *tickets = on_device(zeros, sizeof zeros);
    float *outs = on_device(NULL, 2 * 256 * sizeof *outs);
    const struct device_product products[] = {{&weights.matrix, outs, 256},
                                              {&weights.matrix, outs + 256, 256}};
    const struct multiply_step step = {.n_rows = 1};
    const struct activate_step fits = {ACTIVATION_SILU, outs, outs + 256, 256, 256, 256, make_out(256)};
    struct activate_step others[] = {fits, fits, fits, fits, fits};
    others[0].stride = 512;
    others[1].n_columns = 255;
    others[2].up = outs;
    others[3].gate = outs + 256;
    others[4].up_stride = 512;
    ck_assert_int_eq(kernels_multiply_activate(queue, products, &inputs.x, &step, &fits, tickets), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_int_eq(kernels_multiply_activate(queue, products, &inputs.x, &step, &others[i], tickets),
                         -EINVAL);
    free_weights(&weights);
    free_inputs(&inputs);
    close_device();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, products_and_their_activation_in_one_are_the_two_one_after_the_other, 0, 6);
    tcase_add_loop_test(tests, a_product_and_its_norm_in_one_are_the_two_one_after_the_other, 0, CASES);
    tcase_add_test(tests, an_activation_of_other_outputs_is_refused);
}

int main(void)
{
    return run_tests("following", add);
}
