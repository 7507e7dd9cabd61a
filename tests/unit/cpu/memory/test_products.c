/* SPDX-License-Identifier: MIT */
/* Products through matrix.h, on every build of the kernels, against sums in double. */

#include "cpu/memory/matrix.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/random_weights.h"
#include "tests/unit/cpu/tested_kernels.h"
#include "tests/unit/cpu/memory/take_matrix.h"

#include <errno.h>
#include <math.h>

#define MAX_ROWS 33

struct case_of {
    struct memory memory;
    struct gguf_tensor tensor;
    struct model_tensor role; /* its whole */
    struct matrix matrix;
    struct activations x;
    float *out; /* [MAX_ROWS][out_stride] */
    size_t out_stride;
    uint32_t shape; /* its place among all shapes */
};

static float *floats(struct memory *memory, size_t n)
{
    void *piece;
    ck_assert_int_eq(memory_take(memory, n * sizeof(float), &piece), 0);
    return piece;
}

static void make_activations(struct case_of *c, const struct kernels *kernels)
{
    uint32_t columns = (uint32_t)c->tensor.dims[0], stride = (columns + 31) / 32 * 32;
    void *piece;
    c->x.stride = stride;
    c->x.values = floats(&c->memory, (size_t)MAX_ROWS * stride);
    c->x.scales = floats(&c->memory, (size_t)MAX_ROWS * stride / 32);
    c->x.sums = floats(&c->memory, (size_t)MAX_ROWS * stride / 32);
    ck_assert_int_eq(memory_take(&c->memory, (size_t)MAX_ROWS * stride, &piece), 0);
    c->x.quants = piece;
    if (kernels->has_tiles) {
        uint32_t rows = (MAX_ROWS + KERNELS_MANY - 1) / KERNELS_MANY * KERNELS_MANY;
        ck_assert_int_eq(memory_take(&c->memory, (size_t)rows * stride, &piece), 0);
        c->x.tiles = piece;
        c->x.tile_scales = floats(&c->memory, (size_t)rows * stride / 32);
        c->x.tile_sums = floats(&c->memory, (size_t)rows * stride / 32);
    }
    c->x.half_sums = (int16_t *)floats(&c->memory, (size_t)MAX_ROWS * stride / 32);
    for (uint32_t i = 0; i < MAX_ROWS; i++) {
        for (uint32_t k = 0; k < columns; k++)
            c->x.values[i * stride + k] = random_float();
        kernels->quantize(&c->x, i);
    }
    /* The extremes of 8 bits in one row: what would overflow, overflows here. */
    for (uint32_t k = 0; k < columns; k++)
        c->x.values[k] = k % 2 ? 1 : -1;
    for (uint32_t k = 0; k < columns; k++)
        c->x.values[stride + k] = 1;
    kernels->quantize(&c->x, 0);
    kernels->quantize(&c->x, 1);
}

static struct case_of *make_case(enum format format, uint32_t rows, uint32_t columns,
                                 const struct kernels *kernels)
{
    struct case_of *c = calloc(1, sizeof *c);
    c->tensor = (struct gguf_tensor){.n_dims = 2, .dims = {columns, rows, 1, 1}, .format = format};
    c->tensor.data = random_row(format, (size_t)rows * columns);
    c->tensor.size = format_bytes(format, (size_t)rows * columns);
    c->role = (struct model_tensor){.weight = &c->tensor, .rows = rows, .columns = columns, .count = 1};
    take_matrix(&c->matrix, &c->memory, &c->role);
    uint8_t *zeros = calloc(columns, 8);
    matrix_pack(&c->matrix, 0, c->matrix.n_groups, zeros);
    free(zeros);
    make_activations(c, kernels);
    c->out_stride = c->matrix.n_groups * 8 + 8;
    c->out = floats(&c->memory, MAX_ROWS * c->out_stride);
    return c;
}

static void free_case(struct case_of *c)
{
    free((void *)c->tensor.data);
    memory_deinit(&c->memory);
    free(c);
}

struct share {
    struct multiplier multiplier;
    const struct product *product;
    const struct activations *x;
};

static void share(void *arg, uint32_t index)
{
    const struct share *s = arg;
    multiplier_share(&s->multiplier, s->product, 1, s->x, index);
}

static void multiply(struct case_of *c, const struct kernels *kernels, uint32_t n, bool plain,
                     uint32_t n_threads)
{
    struct product product = {.matrix = &c->matrix, .out = c->out, .out_stride = c->out_stride, .n = n};
    float *scratch[4];
    for (int i = 0; i < 4; i++)
        scratch[i] = calloc(c->matrix.n_columns * 8, sizeof(float));
    struct share s = {{kernels, NULL, plain, scratch}, &product, &c->x};
    ck_assert_int_eq(threads_new(n_threads, NULL, 0, &s.multiplier.threads, NULL), 0);
    threads_run(s.multiplier.threads, share, &s);
    threads_free(s.multiplier.threads);
    for (int i = 0; i < 4; i++)
        free(scratch[i]);
}

/* Of every output what it should be, and the sum of the sizes of what it adds up. */
struct expected {
    struct {
        double sum, size;
    } * of; /* [n_rows][MAX_ROWS] */
};

/* Sums in double over what the kernel is given: floats, or rounded values. Conversions are done once, because
 * an emulator computes each in software. */
static struct expected expect_sums(const struct case_of *c, bool plain)
{
    const uint32_t columns = c->matrix.n_columns;
    const bool rounded = c->matrix.packing->quantized && !plain;
    struct expected expected = {calloc((size_t)c->matrix.n_rows * MAX_ROWS, sizeof *expected.of)};
    float *weights = calloc(columns, sizeof *weights);
    double *w = calloc(columns, sizeof *w), *x = calloc((size_t)MAX_ROWS * columns, sizeof *x);
    for (uint32_t i = 0; i < MAX_ROWS; i++)
        for (uint32_t k = 0; k < columns; k++) {
            const size_t at = (size_t)i * c->x.stride + k;
            x[i * columns + k] =
                rounded ? (double)c->x.scales[at / 32] * c->x.quants[at] : (double)c->x.values[at];
        }
    for (uint32_t row = 0; row < c->matrix.n_rows; row++) {
        const uint8_t *data = (const uint8_t *)c->tensor.data + row * matrix_row_bytes(&c->tensor);
        format_traits(c->tensor.format)->to_float(data, weights, columns);
        for (uint32_t k = 0; k < columns; k++)
            w[k] = (double)weights[k];
        for (uint32_t i = 0; i < MAX_ROWS; i++) {
            double sum = 0, size = 0;
            for (uint32_t k = 0; k < columns; k++) {
                const double part = w[k] * x[i * columns + k];
                sum += part;
                size += fabs(part);
            }
            expected.of[row * MAX_ROWS + i].sum = sum;
            expected.of[row * MAX_ROWS + i].size = size;
        }
    }
    free(weights);
    free(w);
    free(x);
    return expected;
}

/* Compares every output of the first `n` rows of activations. */
static void check(const struct case_of *c, uint32_t n, const struct expected *expected)
{
    for (uint32_t row = 0; row < c->matrix.n_rows; row++) {
        for (uint32_t i = 0; i < n; i++) {
            const double sum = expected->of[row * MAX_ROWS + i].sum;
            const double size = expected->of[row * MAX_ROWS + i].size;
            const double got = (double)c->out[i * c->out_stride + row];
            if (fabs(got - sum) <= 1e-5 * size)
                continue;
            ck_abort_msg("%s %u×%u, output %u of row %u: %.9g, not %.9g",
                         format_traits(c->tensor.format)->name, c->matrix.n_rows, c->matrix.n_columns, row, i,
                         got, sum);
        }
    }
}

static void for_all_shapes(enum format format, void (*test)(struct case_of *, const struct kernels *))
{
    static const uint32_t all_rows[] = {1, 7, 8, 9, 15, 16, 17, 24}; /* around groups and pairs of them */
    uint32_t block = format_traits(format)->block_elements;
    const struct kernels *kernels;
    for (uint32_t i = 0; (kernels = tested_kernels(i)); i++) {
        for (size_t r = 0; r < sizeof all_rows / sizeof *all_rows; r++) {
            const uint32_t rows = all_rows[r];
            uint32_t columns = block == 1 ? 1 + random_u32() % 300 : block * (1 + random_u32() % 5);
            struct case_of *c = make_case(format, rows, columns, kernels);
            c->shape = (uint32_t)r;
            test(c, kernels);
            free_case(c);
        }
    }
}

static void test_sums(struct case_of *c, const struct kernels *kernels)
{
    struct expected expected = expect_sums(c, false);
    for (uint32_t n = 1; n <= MAX_ROWS; n++) {
        /* Up to 16, numbers of rows differ in code; beyond, in how often it runs: a quarter of these for each
         * shape. */
        if (n > 16 && n % 4 != c->shape % 4)
            continue;
        multiply(c, kernels, n, false, 1);
        check(c, n, &expected);
    }
    free(expected.of);
    expected = expect_sums(c, true);
    multiply(c, kernels, MAX_ROWS, true, 1);
    check(c, MAX_ROWS, &expected);
    free(expected.of);
}

START_TEST(products_are_the_sums_they_stand_for)
{
    for_all_shapes(tested_formats[_i], test_sums);
}
END_TEST

static void test_bits(struct case_of *c, const struct kernels *kernels)
{
    size_t bytes = MAX_ROWS * c->out_stride * sizeof(float);
    for (int plain = 0; plain <= c->matrix.packing->quantized; plain++) {
        multiply(c, kernels, MAX_ROWS, plain, 2);
        float *together = malloc(bytes);
        memcpy(together, c->out, bytes);
        struct activations all = c->x;
        /* With float activations each call unpacks all weights, which takes longer than the product: an
         * eighth of the rows, other ones for each shape. */
        for (uint32_t i = plain ? c->shape % 8 : 0; i < MAX_ROWS; i += plain ? 8 : 1) {
            /* Row i alone, as decoding would see it. */
            size_t at = (size_t)i * all.stride;
            c->x = (struct activations){.stride = all.stride,
                                        .values = all.values + at,
                                        .quants = all.quants + at,
                                        .scales = all.scales + at / 32,
                                        .sums = all.sums + at / 32,
                                        .half_sums = all.half_sums + at / 16};
            multiply(c, kernels, 1, plain, 1);
            ck_assert_mem_eq(c->out, together + i * c->out_stride, c->matrix.n_rows * sizeof(float));
        }
        c->x = all;
        free(together);
    }
}

START_TEST(a_row_alone_gives_the_same_bits_as_in_a_batch)
{
    for_all_shapes(tested_formats[_i], test_bits);
}
END_TEST

START_TEST(a_bias_is_added_to_every_row)
{
    const struct kernels *kernels = tested_kernels(0);
    struct case_of *c = make_case(FORMAT_F32, 9, 12, kernels);
    multiply(c, kernels, 5, false, 1);
    float plain = c->out[4 * c->out_stride + 8];
    float bias_values[9] = {0, 0, 0, 0, 0, 0, 0, 0, 2.5f};
    struct gguf_tensor bias = {.n_dims = 1, .dims = {9, 1, 1, 1}, .format = FORMAT_F32, .data = bias_values};
    uint8_t *groups = c->matrix.groups;
    c->role.bias = &bias;
    take_matrix(&c->matrix, &c->memory, &c->role);
    c->matrix.groups = groups;
    multiply(c, kernels, 5, false, 1);
    ck_assert_float_eq(c->out[4 * c->out_stride + 8], plain + 2.5f);
    free_case(c);
}
END_TEST

START_TEST(a_slice_of_a_tensor_multiplies_as_its_rows_do)
{
    const struct kernels *kernels = tested_kernels(0);
    struct case_of *c = make_case(tested_formats[_i], 33, 256, kernels);
    multiply(c, kernels, 3, false, 1);
    float whole[3][33], *zeros = calloc(256, 8);
    for (int i = 0; i < 3; i++)
        memcpy(whole[i], c->out + (size_t)i * c->out_stride, sizeof whole[i]);
    float bias_values[33];
    for (int i = 0; i < 33; i++)
        bias_values[i] = (float)i;
    struct gguf_tensor bias = {.n_dims = 1, .dims = {33, 1, 1, 1}, .format = FORMAT_F32, .data = bias_values};
    c->role.bias = &bias;
    c->role.first_row = 13;
    c->role.rows = 11;
    take_matrix(&c->matrix, &c->memory, &c->role);
    matrix_pack(&c->matrix, 0, c->matrix.n_groups, (uint8_t *)zeros);
    multiply(c, kernels, 3, false, 1);
    for (int i = 0; i < 3; i++)
        for (int r = 0; r < 11; r++)
            ck_assert_float_eq(c->out[(size_t)i * c->out_stride + (size_t)r],
                               whole[i][13 + r] + (float)(13 + r));
    free(zeros);
    free_case(c);
}
END_TEST

START_TEST(a_format_that_cannot_be_multiplied_is_named)
{
    struct matrix matrix;
    struct error err = {0};
    struct gguf_tensor tensor = {.name = BYTES_LITERAL("blk.3.ffn_up.weight"),
                                 .n_dims = 2,
                                 .dims = {256, 8, 1, 1},
                                 .format = (enum format)19};
    struct model_tensor role = {.weight = &tensor, .rows = 8, .columns = 256, .count = 1};
    ck_assert_int_eq(matrix_describe(&matrix, &role, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "blk.3.ffn_up.weight"));
    ck_assert_ptr_nonnull(strstr(err.text, "IQ1_S"));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, products_are_the_sums_they_stand_for, 0, (int)N_TESTED_FORMATS);
    tcase_add_loop_test(tests, a_row_alone_gives_the_same_bits_as_in_a_batch, 0, (int)N_TESTED_FORMATS);
    tcase_add_test(tests, a_bias_is_added_to_every_row);
    tcase_add_loop_test(tests, a_slice_of_a_tensor_multiplies_as_its_rows_do, 0, (int)N_TESTED_FORMATS);
    tcase_add_test(tests, a_format_that_cannot_be_multiplied_is_named);
}

int main(void)
{
    return run_tests("products", add);
}
