/* SPDX-License-Identifier: MIT */
/* What happens to rows between products on the device, against the definitions in plain C and, where bits
 * count, against the CPU backend. */

#include "cuda/kernels/kernels.h"
#include "cuda/kernels/layout.h"
#include "tests/unit/cuda/kernels/on_device.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/activations.h"
#include "tests/unit/cpu/random_weights.h"
#include "cpu/kernels/kernels.h"

#include <errno.h>
#include <math.h>

#define ROWS 5

static float *random_floats(size_t n)
{
    float *floats = malloc(n * sizeof *floats);
    for (size_t i = 0; i < n; i++)
        floats[i] = random_float() * 3;
    return floats;
}

static struct device_activations make_out(uint32_t stride)
{
    return (struct device_activations){.values = on_device(NULL, ROWS * stride * sizeof(float)),
                                       .quants = on_device(NULL, (size_t)ROWS * stride),
                                       .scales = on_device(NULL, ROWS * stride / 32 * sizeof(float)),
                                       .sums = on_device(NULL, ROWS * stride / 32 * sizeof(float)),
                                       .stride = stride};
}

/* Quants, scales and sums are the CPU backend's, bit for bit, of the values that are there. */
static void check_rounding(const struct device_activations *x)
{
    size_t n = (size_t)ROWS * x->stride;
    struct activations cpu = {.stride = x->stride,
                              .values = from_device(x->values, n * sizeof(float)),
                              .quants = malloc(n),
                              .scales = malloc(n / 32 * sizeof(float)),
                              .sums = malloc(n / 32 * sizeof(float)),
                              .half_sums = malloc(n / 16 * sizeof(int16_t))};
    const int8_t *quants = from_device(x->quants, n);
    const float *scales = from_device(x->scales, n / 32 * sizeof(float));
    const float *sums = from_device(x->sums, n / 32 * sizeof(float));
    for (uint32_t row = 0; row < ROWS; row++) {
        kernels_by_name("portable")->quantize(&cpu, row);
        for (uint32_t k = 0; k < x->stride; k++)
            ck_assert_int_eq(quants[row * x->stride + layout_quant_place(k)],
                             cpu.quants[row * x->stride + k]);
    }
    for (size_t b = 0; b < n / 32; b++) {
        ck_assert(scales[b] == cpu.scales[b] || (isnan(scales[b]) && isnan(cpu.scales[b])));
        ck_assert(sums[b] == cpu.sums[b] || (isnan(sums[b]) && isnan(cpu.sums[b])));
    }
    free(cpu.quants);
    free(cpu.scales);
    free(cpu.sums);
    free(cpu.half_sums);
}

START_TEST(rows_are_rounded_as_the_cpu_rounds_them)
{
    static const uint32_t columns[] = {1, 33, 256, 700, 1024};
    open_device();
    for (int c = 0; c < 5; c++) {
        struct device_activations x = make_out(layout_padded(columns[c]));
        float *values = random_floats((size_t)ROWS * x.stride);
        for (uint32_t i = 0; i < ROWS * x.stride; i++)
            if (i % x.stride >= columns[c])
                values[i] = 0;
        values[0] = 1e-31f;                               /* too small for a reciprocal */
        values[x.stride] = 3e38f;                         /* as large as they come */
        values[2 * x.stride + columns[c] - 1] = NAN;      /* a block that is no number */
        values[3 * x.stride + columns[c] / 2] = INFINITY; /* and one */
        for (uint32_t k = 0; k < columns[c]; k++)
            values[4 * x.stride + k] = (float)(k % 255) - 127.0f + 0.5f * (float)(k % 2); /* ties */
        x.values = on_device(values, (size_t)ROWS * x.stride * sizeof(float));
        ck_assert_int_eq(kernels_quantize(queue, &x, columns[c], ROWS), 0);
        check_rounding(&x);
        free(values);
    }
    close_device();
}
END_TEST

START_TEST(rows_are_multiplied_by_the_sigmoid_of_their_gates)
{
    static const uint32_t columns[] = {1, 33, 256, 700};
    open_device();
    for (int c = 0; c < 4; c++) {
        const uint32_t n = columns[c], stride = layout_padded(n);
        float *values = random_floats((size_t)ROWS * stride), *gate = random_floats((size_t)ROWS * stride);
        gate[0] = -200; /* e^200 is infinite, and the product 0 */
        struct device_activations x = make_out(stride);
        x.values = on_device(values, (size_t)ROWS * stride * sizeof(float));
        const struct gate_step step = {on_device(gate, (size_t)ROWS * stride * sizeof(float)), stride, n, x};
        ck_assert_int_eq(kernels_gate(queue, &step, ROWS), 0);
        const float *found = from_device(x.values, (size_t)ROWS * stride * sizeof(float));
        for (uint32_t i = 0; i < ROWS * stride; i++) {
            const double expected =
                i % stride < n ? (double)values[i] / (1 + exp(-(double)gate[i])) : 0; /* none behind them */
            ck_assert_double_eq_tol((double)found[i], expected, 1e-6);
        }
        check_rounding(&x);
        struct gate_step odd = step;
        odd.out.stride = 8;
        ck_assert_int_eq(kernels_gate(queue, &odd, ROWS), -EINVAL);
        free(values);
        free(gate);
    }
    close_device();
}
END_TEST

/* ---- norms ---- */

static void expect_norm(const struct norm *norm, const float *weight, const float *bias, double *x,
                        uint32_t n)
{
    double mean = 0, squares = 0;
    if (!weight)
        return;
    for (uint32_t k = 0; k < n && norm->kind == NORM_LAYER; k++)
        mean += x[k] / n;
    for (uint32_t k = 0; k < n; k++)
        squares += (x[k] - mean) * (x[k] - mean);
    for (uint32_t k = 0; k < n; k++)
        x[k] = (x[k] - mean) / sqrt(squares / n + (double)norm->epsilon) * (double)weight[k] +
               (bias && norm->kind == NORM_LAYER ? (double)bias[k] : 0);
}

/* What a case has, in bits. */
enum {
    WITH_NORM = 1,
    WITH_DELTA = 2,
    WITH_POST = 4,
    WITH_OUTPUTS = 8,
    WITH_LAYER = 16,
    WITH_PARTS = 32,
    CASES = 64
};

static void check_norm(int has, uint32_t n)
{
    const uint32_t stride = layout_padded(n), outputs[ROWS] = {3, 0, 0, 4, 1};
    float *stream = random_floats((size_t)ROWS * stride), *delta = random_floats((size_t)ROWS * stride);
    float *beside = random_floats((size_t)ROWS * stride);
    float *vectors[8]; /* weight and bias, and those of the delta, and of its parts */
    const float *held[8];
    for (int i = 0; i < 8; i++) {
        vectors[i] = random_floats(n);
        held[i] = on_device(vectors[i], n * sizeof(float));
    }
    struct norm_step step = {.stream = on_device(stream, ROWS * stride * sizeof(float)),
                             .delta =
                                 has & WITH_DELTA ? on_device(delta, ROWS * stride * sizeof(float)) : NULL,
                             .stride = stride,
                             .n_columns = n,
                             .norm = {has & WITH_LAYER ? NORM_LAYER : NORM_RMS, 1e-5f, 0},
                             .residual_scale = 0.7f,
                             .outputs = has & WITH_OUTPUTS ? on_device(outputs, sizeof outputs) : NULL,
                             .out = make_out(stride)};
    step.post_norm = step.norm;
    if (has & WITH_NORM)
        step.vector = (struct device_vector){held[0], held[1]};
    if (has & WITH_POST)
        step.post_vector = (struct device_vector){held[2], held[3]};
    if (has & WITH_PARTS) {
        step.beside = on_device(beside, ROWS * stride * sizeof(float));
        step.delta_vector = (struct device_vector){held[4], held[5]};
        step.beside_vector = (struct device_vector){held[6], held[7]};
    }
    ck_assert_int_eq(kernels_norm(queue, &step, ROWS), 0);

    const float *values = from_device(step.out.values, ROWS * stride * sizeof(float));
    const float *after = from_device(step.stream, ROWS * stride * sizeof(float));
    double *expected = malloc(n * sizeof *expected), *added = malloc(n * sizeof *added);
    double *other = malloc(n * sizeof *other);
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t from = step.outputs ? outputs[i] : i;
        for (uint32_t k = 0; k < n; k++) {
            expected[k] = (double)stream[from * stride + k];
            added[k] = (double)delta[from * stride + k];
            other[k] = (double)beside[from * stride + k];
        }
        if (has & WITH_PARTS) {
            expect_norm(&step.post_norm, vectors[4], vectors[5], added, n);
            expect_norm(&step.post_norm, vectors[6], vectors[7], other, n);
            for (uint32_t k = 0; k < n; k++)
                added[k] += other[k];
        }
        expect_norm(&step.post_norm, has & WITH_POST ? vectors[2] : NULL, vectors[3], added, n);
        for (uint32_t k = 0; k < n && step.delta; k++)
            expected[k] += 0.7 * added[k];
        for (uint32_t k = 0; k < n; k++)
            ck_assert_double_eq_tol((double)after[from * stride + k],
                                    step.outputs ? (double)stream[from * stride + k] : expected[k], 2e-5);
        expect_norm(&step.norm, has & WITH_NORM ? vectors[0] : NULL, vectors[1], expected, n);
        for (uint32_t k = 0; k < stride; k++)
            ck_assert_double_eq_tol((double)values[i * stride + k], k < n ? expected[k] : 0, 5e-5);
    }
    check_rounding(&step.out);
    free(expected);
    free(added);
    free(other);
    free(stream);
    free(delta);
    free(beside);
    for (int i = 0; i < 8; i++)
        free(vectors[i]);
}

START_TEST(norms_are_those_of_the_description)
{
    static const uint32_t columns[] = {37, 576, 5000};
    for (int has = 0; has < CASES; has++) {
        if (has & WITH_PARTS && !(has & WITH_DELTA))
            continue;
        open_device();
        check_norm(has, columns[has % 3]);
        close_device();
    }
    open_device();
    check_norm(WITH_NORM | WITH_DELTA | WITH_POST, 12288);
    check_norm(WITH_NORM | WITH_DELTA | WITH_POST | WITH_PARTS, 12288);
    close_device();
}
END_TEST

START_TEST(a_part_without_a_norm_or_a_delta_is_refused)
{
    open_device();
    float *rows = on_device(NULL, ROWS * 256 * sizeof(float));
    const struct device_vector vector = {on_device(NULL, 256 * sizeof(float)), NULL};
    const struct norm_step whole = {.stream = rows,
                                    .delta = rows,
                                    .beside = rows,
                                    .stride = 256,
                                    .n_columns = 256,
                                    .delta_vector = vector,
                                    .beside_vector = vector,
                                    .out = make_out(256)};
    struct norm_step lacking[] = {whole, whole, whole};
    lacking[0].delta = NULL;
    lacking[1].delta_vector.weight = NULL;
    lacking[2].beside_vector.weight = NULL;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(kernels_norm(queue, &lacking[i], ROWS), -EINVAL);
    close_device();
}
END_TEST

START_TEST(a_norm_writes_only_what_is_asked_for)
{
    open_device();
    float *stream = random_floats(ROWS * 256), *weight = random_floats(256);
    struct device_activations out = make_out(256);
    struct norm_step step = {.stream = on_device(stream, ROWS * 256 * sizeof(float)),
                             .stride = 256,
                             .n_columns = 256,
                             .vector = {on_device(weight, 256 * sizeof(float)), NULL},
                             .out = {.values = out.values, .stride = 256}};
    ck_assert_int_eq(kernels_norm(queue, &step, ROWS), 0);
    step.out = out;
    step.out.values = NULL;
    ck_assert_int_eq(kernels_norm(queue, &step, ROWS), 0);
    check_rounding(&out);
    free(stream);
    free(weight);
    close_device();
}
END_TEST

START_TEST(a_row_of_faults_leaves_the_others_alone)
{
    open_device();
    float *stream = random_floats(ROWS * 512), *weight = random_floats(512);
    struct norm_step step = {.stride = 512,
                             .n_columns = 512,
                             .vector = {on_device(weight, 512 * sizeof(float)), NULL},
                             .out = make_out(512)};
    step.stream = on_device(stream, ROWS * 512 * sizeof(float));
    ck_assert_int_eq(kernels_norm(queue, &step, ROWS), 0);
    const float *clean = from_device(step.out.values, ROWS * 512 * sizeof(float));
    stream[2 * 512 + 7] = NAN;
    stream[4 * 512 + 9] = INFINITY;
    step.stream = on_device(stream, ROWS * 512 * sizeof(float));
    ck_assert_int_eq(kernels_norm(queue, &step, ROWS), 0);
    const float *faulty = from_device(step.out.values, ROWS * 512 * sizeof(float));
    for (uint32_t row = 0; row < ROWS; row++)
        if (row != 2 && row != 4)
            ck_assert_mem_eq(faulty + row * 512, clean + row * 512, 512 * sizeof(float));
    ck_assert(isnan(faulty[2 * 512]));
    ck_assert(isnan(faulty[4 * 512 + 9]));
    free(stream);
    free(weight);
    close_device();
}
END_TEST

/* ---- activations and logits ---- */

START_TEST(activations_are_those_of_the_description)
{
    open_device();
    for (size_t c = 0; c < 2 * KINDS_OF(ACTIVATIONS); c++) {
        const enum activation activation = every_activation[c / 2];
        const uint32_t n = c % 2 ? 333 : 768, in_stride = n + 3 - (n + 3) % 4, stride = layout_padded(n);
        const uint32_t up_stride = in_stride + (c % 3 == 0 ? 0 : 40);
        float *gate = random_floats((size_t)ROWS * in_stride), *up = random_floats((size_t)ROWS * up_stride);
        const float *held = on_device(gate, ROWS * in_stride * sizeof(float));
        const float *held_up = on_device(up, ROWS * up_stride * sizeof(float));
        struct device_activations out = make_out(stride);
        for (int has_gate = 0; has_gate < 2; has_gate++) {
            const struct activate_step step = {
                activation, has_gate ? held : NULL, held_up, in_stride, up_stride, n, out};
            ck_assert_int_eq(kernels_activate(queue, &step, ROWS), 0);
            const float *values = from_device(out.values, ROWS * stride * sizeof(float));
            for (uint32_t row = 0; row < ROWS; row++)
                for (uint32_t k = 0; k < stride; k++) {
                    double u = k < n ? (double)up[row * up_stride + k] : 0;
                    double g = k < n ? (double)gate[row * in_stride + k] : 0;
                    double expected = has_gate ? gated(activation, g, u) : activated(activation, u);
                    ck_assert_double_eq_tol((double)values[row * stride + k], expected,
                                            1e-6 * (1 + fabs(expected)));
                }
            check_rounding(&out);
        }
        free(gate);
        free(up);
    }
    close_device();
}
END_TEST

START_TEST(activations_of_huge_values_are_their_limits)
{
    open_device();
    float *x = calloc(ROWS * 256, sizeof *x);
    x[0] = -1e30f;
    x[1] = 1e9f;
    x[2] = -200;
    const float *held = on_device(x, ROWS * 256 * sizeof *x);
    struct device_activations out = make_out(256);
    for (size_t a = 0; a < KINDS_OF(ACTIVATIONS); a++) {
        const enum activation activation = every_activation[a];
        const struct activate_step step = {activation, NULL, held, 256, 256, 256, out};
        ck_assert_int_eq(kernels_activate(queue, &step, ROWS), 0);
        const float *values = from_device(out.values, ROWS * 256 * sizeof *x);
        ck_assert_float_eq(values[0], 0);
        ck_assert_double_eq((double)values[1], (double)(float)activated(activation, 1e9));
        ck_assert_float_eq(values[2], 0);
    }
    free(x);
    close_device();
}
END_TEST

START_TEST(logits_are_scaled_and_capped)
{
    const uint32_t n_vocab = 1003, stride = 1024;
    float *logits = random_floats(ROWS * stride);
    open_device();
    for (int c = 0; c < 3; c++) {
        const float scale = c == 0 ? 1 : 0.25f, cap = c == 2 ? 1.5f : 0;
        float *held = on_device(logits, ROWS * stride * sizeof(float));
        ck_assert_int_eq(kernels_logits(queue, held, stride, n_vocab, scale, cap, ROWS), 0);
        const float *result = from_device(held, ROWS * stride * sizeof(float));
        for (uint32_t i = 0; i < ROWS * stride; i++) {
            double expected = (double)logits[i] * (double)scale;
            if (cap > 0)
                expected = (double)cap * tanh(expected / (double)cap);
            if (i % stride >= n_vocab)
                expected = (double)logits[i];
            ck_assert_double_eq_tol((double)result[i], expected, 1e-6);
        }
    }
    free(logits);
    close_device();
}
END_TEST

/* ---- embedding ---- */

#define TABLE 9

START_TEST(embeddings_are_the_rows_of_the_file)
{
    static const struct step_row rows[ROWS] = {
        {0, 0, 8, 0}, {0, 3, 0, 0}, {1, ROW_DEAD, 4, 0}, {2, 8, 3, 1}, {2, 2, TABLE, 1}};
    enum format format = tested_formats[_i];
    uint32_t block = format_traits(format)->block_elements, n = block == 1 ? 301 : 3 * block;
    uint32_t stride = layout_padded(n);
    uint8_t *file = random_row(format, (size_t)TABLE * n);
    float *table = malloc((size_t)TABLE * n * sizeof *table), *positions = random_floats((size_t)TABLE * n);
    for (uint32_t i = 0; i < TABLE; i++)
        format_traits(format)->to_float(file + i * format_bytes(format, n), table + (size_t)i * n, n);
    open_device();
    const struct step_row *held = on_device(rows, sizeof rows);
    struct device_matrix ids = {.format = format, .n_rows = TABLE, .n_columns = n, .padded_columns = stride};
    struct device_matrix places = {.n_rows = TABLE, .n_columns = n, .padded_columns = stride};
    ids.planes[0] = on_device(file, TABLE * format_bytes(format, n));
    places.planes[0] = on_device(positions, TABLE * n * sizeof(float));
    float *stream = on_device(NULL, ROWS * stride * sizeof(float));
    struct embed_step step = {&ids, NULL, 1.5f, stream, stride};
    for (int learned = 0; learned < 2; learned++) {
        step.positions = learned ? &places : NULL;
        ck_assert_int_eq(kernels_embed(queue, &step, held, ROWS), 0);
        const float *result = from_device(stream, ROWS * stride * sizeof(float));
        for (uint32_t i = 0; i < ROWS; i++)
            for (uint32_t k = 0; k < stride; k++) {
                bool there = k < n && rows[i].position != ROW_DEAD && rows[i].id < TABLE;
                float expected = there ? table[(uint32_t)rows[i].id * n + k] * 1.5f : 0;
                if (there && learned)
                    expected += positions[rows[i].position * n + k];
                ck_assert_msg(result[i * stride + k] == expected || (expected != expected),
                              "row %u column %u: %g for %g", i, k, result[i * stride + k], expected);
            }
    }
    ids.format = FORMAT_LIMIT;
    ck_assert_int_eq(kernels_embed(queue, &step, held, ROWS), -EINVAL);
    free(file);
    free(table);
    free(positions);
    close_device();
}
END_TEST

#define LAYERS 5

/* Of a table with a layer more than there are, parts that are no multiple of four, and two kinds of norms. */
START_TEST(layers_get_the_normed_projection_and_their_part_of_the_tokens_row)
{
    static const struct step_row rows[ROWS] = {
        {0, 0, 8, 0}, {0, 3, 0, 0}, {1, ROW_DEAD, 4, 0}, {2, 8, 3, 1}, {2, 2, TABLE, 1}};
    const enum format format = tested_formats[_i];
    const uint32_t block = format_traits(format)->block_elements;
    const uint32_t n = block == 1 ? 37 : block, part = (n + 3) / 4 * 4, columns = (LAYERS + 1) * n;
    const uint32_t projected_stride = LAYERS * n + 5, stride = LAYERS * part + 4;
    uint8_t *file = random_row(format, (size_t)TABLE * columns);
    float *table = malloc((size_t)TABLE * columns * sizeof *table), *weight = random_floats(n);
    float *projected = random_floats((size_t)ROWS * projected_stride), *bias = random_floats(n);
    for (uint32_t i = 0; i < TABLE; i++)
        format_traits(format)->to_float(file + i * format_bytes(format, columns), table + (size_t)i * columns,
                                        columns);
    open_device();
    const struct step_row *held = on_device(rows, sizeof rows);
    struct device_matrix ids = {.format = format, .n_rows = TABLE, .n_columns = columns};
    ids.planes[0] = on_device(file, TABLE * format_bytes(format, columns));
    struct layer_inputs_step step = {
        .table = &ids,
        .projected = on_device(projected, (size_t)ROWS * projected_stride * sizeof(float)),
        .projected_stride = projected_stride,
        .n_layers = LAYERS,
        .n = n,
        .factor = 0.2f,
        .norm = {_i % 2 ? NORM_LAYER : NORM_RMS, 1e-3f, 0},
        .vector = {on_device(weight, n * sizeof(float)), on_device(bias, n * sizeof(float))},
        .out = on_device(NULL, (size_t)ROWS * stride * sizeof(float)),
        .stride = stride,
        .part = part};
    ck_assert_int_eq(kernels_layer_inputs(queue, &step, held, ROWS), 0);
    const float *found = from_device(step.out, (size_t)ROWS * stride * sizeof(float));
    double *expected = malloc(n * sizeof *expected);
    for (uint32_t i = 0; i < ROWS * LAYERS; i++) {
        const uint32_t row = i / LAYERS, l = i % LAYERS;
        const bool there = rows[row].position != ROW_DEAD && rows[row].id < TABLE;
        for (uint32_t k = 0; k < n; k++)
            expected[k] = 0.2 * (double)projected[row * projected_stride + l * n + k];
        expect_norm(&step.norm, weight, bias, expected, n);
        for (uint32_t k = 0; k < n; k++) {
            if (there)
                expected[k] += sqrt(n) * (double)table[(size_t)rows[row].id * columns + (size_t)l * n + k];
            ck_assert_double_eq_tol((double)found[row * stride + l * part + k], expected[k] * M_SQRT1_2,
                                    1e-5 * (1 + fabs(expected[k])));
        }
    }
    ids.n_columns = LAYERS * n - 1;
    ck_assert_int_eq(kernels_layer_inputs(queue, &step, held, ROWS), -EINVAL);
    ids.n_columns = columns;
    ids.format = FORMAT_LIMIT;
    ck_assert_int_eq(kernels_layer_inputs(queue, &step, held, ROWS), -EINVAL);
    free(file);
    free(table);
    free(projected);
    free(expected);
    free(weight);
    free(bias);
    close_device();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, rows_are_rounded_as_the_cpu_rounds_them);
    tcase_add_test(tests, rows_are_multiplied_by_the_sigmoid_of_their_gates);
    tcase_add_test(tests, norms_are_those_of_the_description);
    tcase_add_test(tests, a_part_without_a_norm_or_a_delta_is_refused);
    tcase_add_test(tests, a_norm_writes_only_what_is_asked_for);
    tcase_add_test(tests, a_row_of_faults_leaves_the_others_alone);
    tcase_add_test(tests, activations_are_those_of_the_description);
    tcase_add_test(tests, activations_of_huge_values_are_their_limits);
    tcase_add_test(tests, logits_are_scaled_and_capped);
    tcase_add_loop_test(tests, embeddings_are_the_rows_of_the_file, 0, (int)N_TESTED_FORMATS);
    tcase_add_loop_test(tests, layers_get_the_normed_projection_and_their_part_of_the_tokens_row, 0,
                        (int)N_TESTED_FORMATS);
}

int main(void)
{
    return run_tests("rows", add);
}
