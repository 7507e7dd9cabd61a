/* SPDX-License-Identifier: MIT */
/* Weights and rows as bfloat16, against what format_traits and format.h say they are. */

#include "cuda/kernels/kernels.h"
#include "cuda/kernels/layout.h"
#include "tests/unit/cuda/kernels/inputs.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/random_weights.h"

#include <errno.h>
#include <math.h>

static uint32_t columns_of(enum format format, uint32_t about)
{
    uint32_t block = format_traits(format)->block_elements;
    return (about + block - 1) / block * block;
}

/* Packed on the device; as floats, [n_rows][n_columns], which the caller frees. */
static struct device_matrix make_matrix(enum format format, uint32_t n_rows, uint32_t n_columns,
                                        float **ret_floats)
{
    const struct layout *layout = layout_of(format);
    size_t bytes = layout_bytes(layout, n_rows, n_columns);
    uint8_t *file = random_row(format, (size_t)n_rows * n_columns), *packed = aligned_alloc(256, bytes);
    uint8_t *planes[LAYOUT_PLANES];
    struct device_matrix matrix = {.format = format,
                                   .n_rows = n_rows,
                                   .n_columns = n_columns,
                                   .padded_columns = layout_padded(n_columns)};
    layout_place(layout, n_rows, n_columns, packed, (void **)planes);
    layout_pack(format, file, n_rows, n_columns, planes);
    layout_place(layout, n_rows, n_columns, on_device(packed, bytes), (void **)matrix.planes);
    *ret_floats = malloc((size_t)n_rows * n_columns * sizeof(float));
    for (uint32_t i = 0; i < n_rows; i++)
        format_traits(format)->to_float(file + i * format_bytes(format, n_columns),
                                        *ret_floats + (size_t)i * n_columns, n_columns);
    free(file);
    free(packed);
    return matrix;
}

/* Half a step of bfloat16, and what the last bit of a float may change before. */
static void check_weights(const struct device_matrix *matrix, const float *floats, const uint16_t *found)
{
    for (uint32_t row = 0; row < matrix->n_rows; row++) {
        const float *from = floats + (size_t)row * matrix->n_columns;
        float largest = 0;
        for (uint32_t k = 0; k < matrix->n_columns; k++)
            largest = fmaxf(largest, fabsf(from[k]));
        for (uint32_t k = 0; k < matrix->padded_columns; k++) {
            const float expected = k < matrix->n_columns ? from[k] : 0;
            const float value = format_bf16_to_f32(found[(size_t)row * matrix->padded_columns + k]);
            ck_assert_msg(fabsf(value - expected) <= 0x1.01p-8f * fabsf(expected) + 1e-6f * largest,
                          "%s: column %u of row %u is %g, not %g", format_traits(matrix->format)->name, k,
                          row, (double)value, (double)expected);
            ck_assert(k < matrix->n_columns || value == 0);
        }
    }
}

START_TEST(weights_are_those_of_the_format_rounded_once)
{
    static const uint32_t sizes[][2] = {{1, 20}, {19, 300}, {37, 768}, {5, 2200}};
    enum format format = tested_formats[_i];
    open_device();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        float *floats;
        const struct device_matrix matrix =
            make_matrix(format, sizes[i][0], columns_of(format, sizes[i][1]), &floats);
        const size_t n = (size_t)matrix.n_rows * matrix.padded_columns;
        uint16_t *out = on_device(NULL, (n + 8) * sizeof *out);
        ck_assert_int_eq(device_fill(queue, out, 0x7b, (n + 8) * sizeof *out), 0);
        ck_assert_int_eq(kernels_unpack(queue, &matrix, out), 0);
        const uint16_t *found = from_device(out, (n + 8) * sizeof *out);
        check_weights(&matrix, floats, found);
        for (size_t k = n; k < n + 8; k++)
            ck_assert_uint_eq(found[k], 0x7b7b);
        free(floats);
    }
    close_device();
}
END_TEST

START_TEST(numbers_of_16_bits_are_what_they_are)
{
    float *floats;
    open_device();
    const struct device_matrix matrix = make_matrix(FORMAT_BF16, 7, 333, &floats);
    uint16_t *out = on_device(NULL, (size_t)7 * matrix.padded_columns * sizeof *out);
    ck_assert_int_eq(kernels_unpack(queue, &matrix, out), 0);
    const uint16_t *found = from_device(out, (size_t)7 * matrix.padded_columns * sizeof *out);
    for (uint32_t i = 0; i < 7 * 333; i++)
        ck_assert_float_eq(format_bf16_to_f32(found[i / 333 * matrix.padded_columns + i % 333]), floats[i]);
    free(floats);
    close_device();
}
END_TEST

static void fill(float *row, uint32_t i, uint32_t n_columns)
{
    for (uint32_t k = 0; k < n_columns; k++)
        row[k] = random_float() * (i % 3 ? 1 : 1e30f);
    if (i == 4)
        row[n_columns - 1] = NAN;
    if (i == 5)
        row[0] = -INFINITY;
}

START_TEST(rows_are_rounded_and_what_is_not_there_is_zeros)
{
    static const uint32_t columns[] = {20, 300, 1300};
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        open_device();
        const struct inputs inputs = make_inputs(columns[c], 9, fill);
        const uint32_t stride = inputs.x.stride;
        uint16_t *out = on_device(NULL, (size_t)12 * stride * sizeof *out);
        ck_assert_int_eq(kernels_round(queue, &inputs.x, 9, 12, out), 0);
        const uint16_t *found = from_device(out, (size_t)12 * stride * sizeof *out);
        for (uint32_t i = 0; i < 12 * stride; i++)
            ck_assert_uint_eq(found[i], i < 9 * stride ? format_f32_to_bf16(inputs.values[i]) : 0);
        struct inputs mine = inputs;
        free_inputs(&mine);
        close_device();
    }
}
END_TEST

START_TEST(a_format_without_a_layout_is_refused)
{
    float *floats;
    open_device();
    struct device_matrix matrix = make_matrix(FORMAT_Q8_0, 4, 256, &floats);
    matrix.format = FORMAT_LIMIT;
    ck_assert_int_eq(kernels_unpack(queue, &matrix, on_device(NULL, 2048)), -EINVAL);
    free(floats);
    close_device();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, weights_are_those_of_the_format_rounded_once, 0, (int)N_TESTED_FORMATS);
    tcase_add_test(tests, numbers_of_16_bits_are_what_they_are);
    tcase_add_test(tests, rows_are_rounded_and_what_is_not_there_is_zeros);
    tcase_add_test(tests, a_format_without_a_layout_is_refused);
}

int main(void)
{
    return run_tests("unpack", add);
}
