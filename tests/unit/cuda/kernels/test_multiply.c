/* SPDX-License-Identifier: MIT */
/* Products on the device against sums in double of what format_traits says the weights are. */

#include "cuda/kernels/kernels.h"
#include "cuda/kernels/layout.h"
#include "tests/unit/cuda/kernels/inputs.h"
#include "tests/unit/cuda/kernels/matrices.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <math.h>

#define MOST_ROWS 70

/* The products, [n_rows][matrix rows + 3]; what lies beyond is still as it was. */
static float *multiply_with(const struct weights *weights, const struct device_activations *x,
                            uint32_t n_rows, bool reproducible, const struct multiply_scratch *scratch)
{
    uint32_t stride = weights->matrix.n_rows + 3;
    float *out = on_device(NULL, (size_t)n_rows * stride * sizeof(float));
    const struct device_product product = {&weights->matrix, out, stride};
    ck_assert_int_eq(device_fill(queue, out, 0x7b, (size_t)n_rows * stride * sizeof(float)), 0);
    const struct multiply_step step = {n_rows, reproducible, scratch, PRODUCT_BY_RULE};
    ck_assert_int_eq(kernels_multiply(queue, &product, 1, x, &step), 0);
    float *result = from_device(out, (size_t)n_rows * stride * sizeof(float));
    for (uint32_t i = 0; i < n_rows; i++)
        for (uint32_t beyond = stride - 3; beyond < stride; beyond++)
            ck_assert_uint_eq(format_bits_of_float(result[i * stride + beyond]), 0x7b7b7b7b);
    device_free(device, out);
    return result;
}

static float *multiply(const struct weights *weights, const struct device_activations *x, uint32_t n_rows,
                       bool reproducible)
{
    return multiply_with(weights, x, n_rows, reproducible, NULL);
}

/* The expected product, and the size that its rounding errors are to be measured by. */
static double dot(const struct weights *weights, const float *x, uint32_t row, double *ret_size)
{
    const float *w = weights->floats + (size_t)row * weights->matrix.n_columns;
    double sum = weights->bias ? weights->bias[row] : 0, size = fabs(sum);
    for (uint32_t k = 0; k < weights->matrix.n_columns; k++) {
        sum += (double)w[k] * (double)x[k];
        size += fabs((double)w[k] * (double)x[k]);
    }
    *ret_size = size;
    return sum;
}

static bool reads_floats(enum format format)
{
    return format == FORMAT_F32 || format == FORMAT_F16 || format == FORMAT_BF16;
}

/* Against what was multiplied: only rounding of floats is left. */
static void check_products(const struct weights *weights, const struct inputs *inputs, const float *out,
                           uint32_t n_rows)
{
    const float *x = reads_floats(weights->matrix.format) ? inputs->values : inputs->rounded;
    uint32_t stride = weights->matrix.n_rows + 3;
    for (uint32_t i = 0; i < n_rows; i++)
        for (uint32_t row = 0; row < weights->matrix.n_rows; row++) {
            double size, expected = dot(weights, x + (size_t)i * inputs->x.stride, row, &size);
            ck_assert_msg(fabs((double)out[i * stride + row] - expected) <= 3e-6 * size,
                          "%s %ux%u of %u rows: row %u of weights, %u of x: %g for %g",
                          format_traits(weights->matrix.format)->name, weights->matrix.n_rows,
                          weights->matrix.n_columns, n_rows, row, i, out[i * stride + row], expected);
        }
}

/* The normalized mean square error against the inputs before they were rounded. */
static double nmse(const struct weights *weights, const struct inputs *inputs, const float *out,
                   uint32_t n_rows)
{
    double error = 0, power = 0;
    for (uint32_t i = 0; i < n_rows; i++)
        for (uint32_t row = 0; row < weights->matrix.n_rows; row++) {
            double size, expected = dot(weights, inputs->values + (size_t)i * inputs->x.stride, row, &size);
            double off = (double)out[i * (weights->matrix.n_rows + 3) + row] - expected;
            error += off * off;
            power += expected * expected;
        }
    return error / power;
}

static uint32_t columns_of(enum format format, uint32_t about)
{
    uint32_t block = format_traits(format)->block_elements;
    return (about + block - 1) / block * block;
}

static const uint32_t row_counts[] = {1, 2, 3, 4, 5, 9, 17, 33, MOST_ROWS};
#define N_ROW_COUNTS (sizeof row_counts / sizeof *row_counts)

START_TEST(products_are_those_of_the_format)
{
    enum format format = tested_formats[_i];
    const bool scaled = test_is_scaled();
    open_device();
    for (int shape = 0; shape < 4; shape++) {
        /* Where everything is slow, every other count for a format, the rest for the next. */
        const size_t first = scaled ? (size_t)(_i + shape) % 2 : 0;
        if (scaled && shape == 2)
            continue;
        uint32_t n_columns = columns_of(format, (uint32_t[]){70, 513, 1301, 2300}[shape]);
        struct weights weights =
            make_weights(format, (uint32_t[]){1, 37, 18, 71}[shape], n_columns, shape == 1);
        struct inputs inputs = make_inputs(n_columns, MOST_ROWS, fill_random);
        /* The largest shape costs most and meets two ways at least: the last counts do. */
        for (size_t n = first + (shape == 3 ? N_ROW_COUNTS - 2 : 0); n < N_ROW_COUNTS - (shape < 3);
             n += scaled ? 2 : 1) {
            float *out = multiply(&weights, &inputs.x, row_counts[n], false);
            check_products(&weights, &inputs, out, row_counts[n]);
            if (shape > 0 && row_counts[n] == 33) /* of a few outputs one may be near zero */
                ck_assert_double_le(nmse(&weights, &inputs, out, row_counts[n]),
                                    reads_floats(format) ? 1e-11 : 1e-4);
        }
        free_weights(&weights);
        free_inputs(&inputs);
    }
    close_device();
}
END_TEST

START_TEST(reproducible_rows_are_the_same_bits_in_any_number_of_rows)
{
    enum format format = tested_formats[_i];
    uint32_t n_columns = columns_of(format, 2200), n_outputs = 20;
    const bool scaled = test_is_scaled();
    open_device();
    struct weights weights = make_weights(format, n_outputs, n_columns, true);
    struct inputs inputs = make_inputs(n_columns, MOST_ROWS, fill_random);
    float *all = multiply(&weights, &inputs.x, MOST_ROWS, true);
    check_products(&weights, &inputs, all, MOST_ROWS);
    for (size_t c = scaled ? (size_t)_i % 3 : 0; c < N_ROW_COUNTS; c += scaled ? 3 : 1) {
        uint32_t n = row_counts[c];
        for (uint32_t first = 0; first + n <= MOST_ROWS; first += 37) {
            const struct device_activations x = inputs_from(&inputs, first);
            float *some = multiply(&weights, &x, n, true);
            for (uint32_t i = 0; i < n; i++)
                ck_assert_mem_eq(some + (size_t)i * (n_outputs + 3),
                                 all + (size_t)(first + i) * (n_outputs + 3), n_outputs * sizeof(float));
        }
    }
    free_weights(&weights);
    free_inputs(&inputs);
    close_device();
}
END_TEST

/* Memory of shared tiles, with anything in it, for as many multiprocessors. */
static struct multiply_scratch make_scratch(uint32_t n_multiprocessors)
{
    const size_t n = stream_k_most_divided(n_multiprocessors);
    uint32_t *zeros = calloc(n, sizeof *zeros);
    const struct multiply_scratch scratch = {.n_multiprocessors = n_multiprocessors,
                                             .rule = STREAM_K_ALWAYS,
                                             .sums =
                                                 on_device(NULL, kernels_multiply_scratch(n_multiprocessors)),
                                             .tickets = on_device(zeros, n * sizeof *zeros)};
    free(zeros);
    return scratch;
}

static void check_tickets(const struct multiply_scratch *scratch)
{
    const uint32_t n = stream_k_most_divided(scratch->n_multiprocessors);
    const uint32_t *tickets = from_device(scratch->tickets, n * sizeof *tickets);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_uint_eq(tickets[i], 0);
}

/* Three tiles of 33 and 64 rows, six of 70: fewer than blocks have room for, and more, cut in different
 * places, so that a share has a part, some of a tile, and the end of one with the beginning of the next. */
START_TEST(shared_tiles_have_the_bits_of_whole_ones)
{
    static const uint32_t counts[] = {33, 64, MOST_ROWS}, multiprocessors[] = {1, 2, 4, 20};
    enum format format = tested_formats[_i];
    const uint32_t n_outputs = 130, n_columns = columns_of(format, 1100);
    const bool scaled = test_is_scaled();
    open_device();
    struct weights weights = make_weights(format, n_outputs, n_columns, true);
    struct inputs inputs = make_inputs(n_columns, MOST_ROWS, fill_random);
    for (int m = scaled ? _i % 4 : 0; m < 4; m += scaled ? 4 : 1) {
        const struct multiply_scratch scratch = make_scratch(multiprocessors[m]);
        const uint32_t n = counts[(m + _i) % 3];
        float *whole = multiply(&weights, &inputs.x, n, m % 2);
        for (int again = 0; again < 2; again++) {
            float *shared = multiply_with(&weights, &inputs.x, n, m % 2, &scratch);
            ck_assert_mem_eq(shared, whole, (size_t)n * (n_outputs + 3) * sizeof(float));
            check_tickets(&scratch);
        }
    }
    free_weights(&weights);
    free_inputs(&inputs);
    close_device();
}
END_TEST

static void fill_faults(float *row, uint32_t i, uint32_t n_columns)
{
    for (uint32_t k = 0; k < n_columns; k++)
        row[k] = i % 6 == 1 ? 0 : i % 6 == 2 ? random_float() * 1e30f : random_float();
    if (i % 6 == 3)
        row[n_columns - 1] = NAN;
    if (i % 6 == 5)
        row[n_columns / 2] = INFINITY;
}

START_TEST(a_row_that_is_not_finite_leaves_the_others_alone)
{
    enum format format = tested_formats[_i];
    uint32_t n_columns = columns_of(format, 300), n_outputs = 19;
    open_device();
    struct weights weights = make_weights(format, n_outputs, n_columns, false);
    struct inputs inputs = make_inputs(n_columns, MOST_ROWS, fill_faults);
    for (size_t c = 0; c < 2 * N_ROW_COUNTS - 2; c++) {
        uint32_t n = row_counts[c / 2];
        float *out = multiply(&weights, &inputs.x, n, c % 2);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t row = 0; row < n_outputs; row++) {
                float value = out[i * (n_outputs + 3) + row];
                double size,
                    expected = dot(&weights, inputs.values + (size_t)i * inputs.x.stride, row, &size);
                if (i % 6 == 3 || i % 6 == 5)
                    ck_assert_msg(!isfinite(value), "row %u: %g", i, value);
                else if (i % 6 == 1)
                    ck_assert_float_eq(value, 0);
                else
                    ck_assert_msg(fabs((double)value - expected) <= 0.02 * size, "row %u: %g for %g", i,
                                  value, expected);
            }
    }
    free_weights(&weights);
    free_inputs(&inputs);
    close_device();
}
END_TEST

/* The extremes of 8 bits, and weights of all ones in every bit: what would overflow, overflows here. */
static void fill_extremes(float *row, uint32_t i, uint32_t n_columns)
{
    for (uint32_t k = 0; k < n_columns; k++)
        row[k] = i % 2 && k % 2 ? -1 : 1;
}

/* Of byte i of a block, not of its scales in floating point. */
static uint8_t extreme_byte(enum format format, size_t i)
{
    switch (format) {
    case FORMAT_Q8_0:
        return 0x80;
    case FORMAT_Q6_K:
        return i >= 192 ? 0x80 : 0xff;
    case FORMAT_Q3_K: /* −32 · −4 */
    case FORMAT_IQ4_NL:
    case FORMAT_IQ4_XS: /* −32 · −127 */
        return 0;
    default:
        return 0xff;
    }
}

START_TEST(extremes_do_not_overflow)
{
    enum format format = tested_formats[_i];
    uint32_t n_columns = columns_of(format, 512), n_outputs = 8;
    size_t bytes = layout_bytes(layout_of(format), n_outputs, n_columns);
    if (reads_floats(format))
        return;
    open_device();
    struct weights weights = make_weights(format, n_outputs, n_columns, false);
    struct inputs inputs = make_inputs(n_columns, MOST_ROWS, fill_extremes);
    uint8_t *file = random_row(format, (size_t)n_outputs * n_columns), *packed = aligned_alloc(256, bytes);
    size_t block = format_traits(format)->block_bytes, file_bytes = format_bytes(format, n_columns);
    const struct scale_places places = scale_places(format);
    for (size_t at = 0; at < n_outputs * file_bytes; at += block) {
        for (size_t i = 0; i < block; i++)
            if (places.first < 0 ? i > 0 : i / 2 != (size_t)places.first / 2) /* else the scale */
                file[at + i] = extreme_byte(format, i);
        if (places.second >= 0)
            memset(file + at + places.second, 0, 2);
    }
    uint8_t *planes[LAYOUT_PLANES];
    layout_place(layout_of(format), n_outputs, n_columns, packed, (void **)planes);
    layout_pack(format, file, n_outputs, n_columns, planes);
    layout_place(layout_of(format), n_outputs, n_columns, on_device(packed, bytes),
                 (void **)weights.matrix.planes);
    for (uint32_t i = 0; i < n_outputs; i++)
        format_traits(format)->to_float(file + i * file_bytes, weights.floats + (size_t)i * n_columns,
                                        n_columns);
    for (int reproducible = 0; reproducible < 2; reproducible++) {
        check_products(&weights, &inputs, multiply(&weights, &inputs.x, 2, reproducible), 2);
        check_products(&weights, &inputs, multiply(&weights, &inputs.x, 16, reproducible), 16);
    }
    free(file);
    free(packed);
    free_weights(&weights);
    free_inputs(&inputs);
    close_device();
}
END_TEST

START_TEST(three_matrices_of_different_formats_share_a_launch)
{
    static const uint32_t counts[] = {1, 4, 21};
    open_device();
    struct weights weights[3] = {make_weights(FORMAT_Q4_K, 37, 768, true),
                                 make_weights(FORMAT_F16, 5, 700, false),
                                 make_weights(FORMAT_Q6_K, 16, 768, false)};
    struct inputs inputs = make_inputs(700, MOST_ROWS, fill_random);
    for (int c = 0; c < 6; c++) {
        struct device_product products[3];
        uint64_t launches = device_counts(device).launches;
        for (int i = 0; i < 3; i++) {
            uint32_t stride = weights[i].matrix.n_rows + 3;
            products[i] = (struct device_product){
                &weights[i].matrix, on_device(NULL, MOST_ROWS * stride * sizeof(float)), stride};
        }
        ck_assert_int_eq(
            kernels_multiply(queue, products, 3, &inputs.x,
                             &(struct multiply_step){counts[c / 2], c % 2, NULL, PRODUCT_BY_RULE}),
            0);
        ck_assert_uint_eq(device_counts(device).launches, launches + 1);
        for (int i = 0; i < 3; i++)
            check_products(
                &weights[i], &inputs,
                from_device(products[i].out, counts[c / 2] * products[i].out_stride * sizeof(float)),
                counts[c / 2]);
    }
    for (int i = 0; i < 3; i++)
        free_weights(&weights[i]);
    free_inputs(&inputs);
    close_device();
}
END_TEST

/* Tiles of three matrices, one after the other, of two groups of rows of x: shares go across all borders. */
START_TEST(matrices_of_a_launch_are_shared_together)
{
    open_device();
    struct weights weights[3] = {make_weights(FORMAT_Q4_K, 140, 768, true),
                                 make_weights(FORMAT_F16, 5, 700, false),
                                 make_weights(FORMAT_Q6_K, 64, 768, false)};
    struct inputs inputs = make_inputs(700, MOST_ROWS, fill_random);
    for (uint32_t n_multiprocessors = 1; n_multiprocessors < 9;
         n_multiprocessors += test_is_scaled() ? 3 : 1) {
        const struct multiply_scratch scratch = make_scratch(n_multiprocessors);
        struct device_product products[3];
        uint64_t launches;
        for (int i = 0; i < 3; i++) {
            uint32_t stride = weights[i].matrix.n_rows;
            products[i] = (struct device_product){
                &weights[i].matrix, on_device(NULL, MOST_ROWS * stride * sizeof(float)), stride};
        }
        launches = device_counts(device).launches;
        ck_assert_int_eq(
            kernels_multiply(queue, products, 3, &inputs.x,
                             &(struct multiply_step){MOST_ROWS, false, &scratch, PRODUCT_BY_RULE}),
            0);
        ck_assert_uint_eq(device_counts(device).launches, launches + 1);
        check_tickets(&scratch);
        for (int i = 0; i < 3; i++) {
            const size_t bytes = MOST_ROWS * products[i].out_stride * sizeof(float);
            const float *shared = from_device(products[i].out, bytes);
            ck_assert_int_eq(device_fill(queue, products[i].out, 0x7b, bytes), 0);
            ck_assert_int_eq(
                kernels_multiply(queue, &products[i], 1, &inputs.x,
                                 &(struct multiply_step){MOST_ROWS, false, NULL, PRODUCT_BY_RULE}),
                0);
            ck_assert_mem_eq(shared, from_device(products[i].out, bytes), bytes);
        }
    }
    for (int i = 0; i < 3; i++)
        free_weights(&weights[i]);
    free_inputs(&inputs);
    close_device();
}
END_TEST

START_TEST(what_cannot_be_multiplied_is_refused)
{
    open_device();
    struct weights weights = make_weights(FORMAT_Q8_0, 4, 512, false);
    struct inputs inputs = make_inputs(256, MOST_ROWS, fill_random);
    float *out = on_device(NULL, 64);
    struct device_product product = {&weights.matrix, out, 4};
    ck_assert_int_eq(kernels_multiply(queue, &product, 1, &inputs.x,
                                      &(struct multiply_step){1, false, NULL, PRODUCT_BY_RULE}),
                     -EINVAL);
    weights.matrix.padded_columns = 256;
    weights.matrix.format = FORMAT_LIMIT;
    ck_assert_int_eq(kernels_multiply(queue, &product, 1, &inputs.x,
                                      &(struct multiply_step){1, false, NULL, PRODUCT_BY_RULE}),
                     -EINVAL);
    free_weights(&weights);
    free_inputs(&inputs);
    close_device();
}
END_TEST

/* $QUERN_RACES_ONLY: who looks for races sees all there are in the first of these and, of shared tiles, in
 * that of three matrices; those in between launch the same kernels with other numbers. */
static void add(TCase *tests)
{
    const int n = test_is_for_races() ? 1 : (int)N_TESTED_FORMATS;
    tcase_add_loop_test(tests, products_are_those_of_the_format, 0, (int)N_TESTED_FORMATS);
    tcase_add_loop_test(tests, reproducible_rows_are_the_same_bits_in_any_number_of_rows, 0, n);
    tcase_add_loop_test(tests, shared_tiles_have_the_bits_of_whole_ones, 0, n);
    tcase_add_test(tests, matrices_of_a_launch_are_shared_together);
    tcase_add_loop_test(tests, a_row_that_is_not_finite_leaves_the_others_alone, 0, n);
    tcase_add_loop_test(tests, extremes_do_not_overflow, 0, n);
    tcase_add_test(tests, three_matrices_of_different_formats_share_a_launch);
    tcase_add_test(tests, what_cannot_be_multiplied_is_refused);
}

int main(void)
{
    return run_tests("multiply", add);
}
