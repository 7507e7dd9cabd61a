/* SPDX-License-Identifier: MIT */
/* Mixtures of experts on the device: the experts of a row against the CPU backend's choice, the order of
 * assignments against its definition, and what they get against sums in double. */

#include "cuda/kernels/kernels.h"
#include "cuda/kernels/layout.h"
#include "tests/unit/cuda/kernels/inputs.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/random_weights.h"
#include "cpu/forward/experts.h"

#include <errno.h>
#include <math.h>

#define MOST_ROWS 150

/* ---- assignments ---- */

/* Visits of MOST_ROWS rows, on the device; what nobody has written is there first. */
static struct device_assignments make_assignments(uint32_t n_experts, uint32_t n_used)
{
    const size_t n = (size_t)MOST_ROWS * n_used;
    struct device_assignments assignments = {
        .n_experts = n_experts,
        .n_used = n_used,
        .experts = on_device(NULL, n * 4),
        .weights = on_device(NULL, n * 4),
        .by_place = on_device(NULL, n * 4),
        .rows = on_device(NULL, n * 4),
        .tiles = on_device(NULL, kernels_most_tiles(n_experts, (uint32_t)n, KERNELS_LEAST_TILE) *
                                     sizeof *assignments.tiles),
        .n_tiles = on_device(NULL, sizeof *assignments.n_tiles)};
    return assignments;
}

/* Row r is dead when r % dead_each is 3. */
static const struct step_row *make_rows(uint32_t dead_each)
{
    static struct step_row rows[MOST_ROWS];
    for (uint32_t r = 0; r < MOST_ROWS; r++)
        rows[r] = (struct step_row){.position = dead_each && r % dead_each == 3 ? ROW_DEAD : r};
    return on_device(rows, sizeof rows);
}

/* Of few values, so that many are equal; row r has a fault when r % 7 is 5. */
static float *make_scores(uint32_t n_experts, uint32_t stride)
{
    static const float faults[] = {NAN, INFINITY, -INFINITY};
    float *scores = malloc((size_t)MOST_ROWS * stride * sizeof *scores);
    for (uint32_t i = 0; i < MOST_ROWS * stride; i++)
        scores[i] = i % 3 ? random_float() : (float)(random_u32() % 5) - 2;
    for (uint32_t r = 0; r < MOST_ROWS; r++) {
        if (r % 7 == 5)
            scores[r * stride + random_u32() % n_experts] = faults[r / 7 % 3];
        if (r % 11 == 1) /* nothing but zeros of either sign */
            for (uint32_t e = 0; e < n_experts; e++)
                scores[r * stride + e] = e % 2 ? 0.0f : -0.0f;
    }
    return scores;
}

/* `scores` and scales of experts, or NULL, are the host's. */
static void check_choice(const struct device_assignments *assignments, const float *scores, uint32_t stride,
                         float factor, const float *scales, uint32_t n_rows, uint32_t dead_each)
{
    const struct experts experts = {.n = assignments->n_experts, .n_used = assignments->n_used};
    const uint32_t *chosen = from_device(assignments->experts, (size_t)n_rows * assignments->n_used * 4);
    const float *weights = from_device(assignments->weights, (size_t)n_rows * assignments->n_used * 4);
    float *row = malloc(stride * sizeof *row), expected_weights[512];
    uint32_t expected[512];
    for (uint32_t r = 0; r < n_rows; r++) {
        for (uint32_t e = 0; e < stride; e++)
            row[e] = scores[(size_t)r * stride + e] * factor;
        experts_choose(&experts, row, expected, expected_weights);
        for (uint32_t k = 0; k < assignments->n_used; k++) {
            const size_t assignment = (size_t)r * assignments->n_used + k;
            if (dead_each && r % dead_each == 3) {
                ck_assert_uint_eq(chosen[assignment], EXPERT_NONE);
                continue;
            }
            ck_assert_msg(chosen[assignment] == expected[k], "row %u assignments %u as number %u, not %u", r,
                          chosen[assignment], k, expected[k]);
            const float weight = expected_weights[k] * (scales ? scales[expected[k]] : 1);
            ck_assert_msg(isnan(weight) ? isnan(weights[assignment])
                                        : fabsf(weights[assignment] - weight) <= 2e-6f,
                          "row %u number %u: weight %g for %g", r, k, weights[assignment], weight);
        }
    }
    free(row);
}

/* Places: expert by expert, in the order of rows; tiles: runs of them that leave out none. */
static void check_order(const struct device_assignments *assignments, uint32_t n_rows)
{
    const uint32_t n = n_rows * assignments->n_used,
                   n_tiles = *(uint32_t *)from_device(assignments->n_tiles, 4);
    const uint32_t *chosen = from_device(assignments->experts, (size_t)n * 4);
    const uint32_t *places = from_device(assignments->by_place, (size_t)n * 4);
    const uint32_t *rows = from_device(assignments->rows, (size_t)n * 4);
    const struct expert_tile *tiles = from_device(assignments->tiles, (n_tiles + 1) * sizeof *tiles);
    uint32_t at = 0, t = 0;
    ck_assert_uint_le(n_tiles, kernels_most_tiles(assignments->n_experts, n, KERNELS_LEAST_TILE));
    for (uint32_t e = 0; e < assignments->n_experts; e++) {
        const uint32_t first = at;
        for (uint32_t v = 0; v < n; v++)
            if (chosen[v] == e) {
                ck_assert_uint_eq(places[at], v);
                ck_assert_uint_eq(rows[at], v / assignments->n_used);
                at++;
            }
        for (uint32_t next = first; next < at; next += tiles[t++].n) {
            ck_assert_uint_lt(t, n_tiles);
            ck_assert(tiles[t].expert == e && tiles[t].first == next);
            ck_assert(tiles[t].n > 0 && tiles[t].n <= at - next);
        }
    }
    ck_assert_uint_eq(t, n_tiles);
}

static const struct {
    uint32_t n_experts, n_used, dead_each;
} mixtures[] = {{1, 1, 0}, {8, 2, 0}, {8, 2, 5}, {31, 31, 0}, {33, 3, 4}, {300, 8, 0}, {600, 40, 6}};

START_TEST(rows_go_to_the_experts_that_the_cpu_chooses)
{
    static const uint32_t counts[] = {1, 4, 5, 37, MOST_ROWS};
    const uint32_t n_experts = mixtures[_i].n_experts, stride = layout_padded(n_experts);
    open_device();
    struct device_assignments assignments = make_assignments(n_experts, mixtures[_i].n_used);
    const struct step_row *rows = make_rows(mixtures[_i].dead_each);
    float *scores = make_scores(n_experts, stride);
    float *scales = malloc(n_experts * sizeof *scales);
    for (uint32_t e = 0; e < n_experts; e++)
        scales[e] = random_float() * 2;
    struct router_scores router = {.scores = on_device(scores, (size_t)MOST_ROWS * stride * sizeof *scores),
                                   .stride = stride};
    const float *held = on_device(scales, n_experts * sizeof *scales);
    for (size_t c = test_is_scaled() ? (size_t)_i % 2 : 0; c < 5; c += test_is_scaled() ? 2 : 1)
        for (int reproducible = 0; reproducible < 2; reproducible++) {
            const bool scaled = (c + (size_t)reproducible) % 2;
            router.factor = scaled ? 0.37f : 1;
            router.expert_scales = scaled ? held : NULL;
            ck_assert_int_eq(kernels_choose(queue, &assignments, &router, rows, counts[c], reproducible), 0);
            check_choice(&assignments, scores, stride, router.factor, scaled ? scales : NULL, counts[c],
                         mixtures[_i].dead_each);
            if (reproducible || counts[c] > KERNELS_GEMV)
                check_order(&assignments, counts[c]);
        }
    free(scores);
    free(scales);
    close_device();
}
END_TEST

/* ---- products ---- */

#define EXPERTS 6
#define VISITED 5 /* the last one is not there */
#define USED    2
#define OUTPUTS 21

/* Matrices of experts on the device, and as floats. */
struct matrices {
    struct device_matrix matrix;
    float *floats; /* [VISITED][OUTPUTS][n_columns] */
    float *bias;   /* [VISITED][OUTPUTS], or NULL */
};

static struct matrices make_matrices(enum format format, uint32_t n_columns, bool with_bias)
{
    const struct layout *layout = layout_of(format);
    const uint32_t n_rows = VISITED * OUTPUTS;
    const size_t bytes = layout_bytes(layout, n_rows, n_columns);
    uint8_t *file = random_row(format, (size_t)n_rows * n_columns), *packed = aligned_alloc(256, bytes);
    struct matrices weights = {.matrix = {.format = format,
                                          .n_rows = OUTPUTS,
                                          .n_experts = EXPERTS,
                                          .n_columns = n_columns,
                                          .padded_columns = layout_padded(n_columns)},
                               .floats = malloc((size_t)n_rows * n_columns * sizeof(float))};
    uint8_t *planes[LAYOUT_PLANES];
    layout_place(layout, n_rows, n_columns, packed, (void **)planes);
    layout_pack(format, file, n_rows, n_columns, planes);
    for (uint32_t p = 0; p < layout->n_planes; p++) /* each by itself: what is behind it is nobody's */
        weights.matrix.planes[p] = on_device(planes[p], n_rows * layout_row_bytes(layout, p, n_columns));
    for (uint32_t i = 0; i < n_rows; i++)
        format_traits(format)->to_float(file + i * format_bytes(format, n_columns),
                                        weights.floats + (size_t)i * n_columns, n_columns);
    if (with_bias) {
        weights.bias = malloc(n_rows * sizeof(float));
        for (uint32_t i = 0; i < n_rows; i++)
            weights.bias[i] = random_float() * 4;
        weights.matrix.bias = on_device(weights.bias, n_rows * sizeof(float));
    }
    free(file);
    free(packed);
    return weights;
}

static void free_matrices(struct matrices *weights)
{
    free(weights->floats);
    free(weights->bias);
}

static void fill_random(float *row, uint32_t i, uint32_t n_columns)
{
    for (uint32_t k = 0; k < n_columns; k++)
        row[k] = random_float() * (float)(1 + i % 3);
}

/* Rows go to two of the first VISITED experts; row r is dead when r % 6 is 3. */
static struct device_assignments choose(uint32_t first, uint32_t n_rows, bool reproducible)
{
    struct device_assignments assignments = make_assignments(EXPERTS, USED);
    float scores[MOST_ROWS][256];
    struct step_row rows[MOST_ROWS];
    for (uint32_t r = 0; r < n_rows; r++) {
        const uint32_t row = first + r;
        rows[r] = (struct step_row){.position = row % 6 == 3 ? ROW_DEAD : row};
        for (uint32_t e = 0; e < EXPERTS; e++)
            scores[r][e] = e == VISITED ? -9 : (float)((row * 7 + e * (1 + row % 3)) % VISITED);
    }
    const struct router_scores router = {
        .scores = on_device(scores, n_rows * sizeof scores[0]), .stride = 256, .factor = 1};
    ck_assert_int_eq(kernels_choose(queue, &assignments, &router, on_device(rows, n_rows * sizeof *rows),
                                    n_rows, reproducible),
                     0);
    return assignments;
}

#define UNTOUCHED 0x7b7b7b7b

/* The products of assignments of rows first … first + n_rows − 1: [assignments][OUTPUTS + 3]. */
static float *multiply(const struct matrices *weights, const struct inputs *inputs, bool by_row,
                       uint32_t first, uint32_t n_rows, bool reproducible,
                       struct device_assignments *ret_assignments)
{
    const uint32_t stride = OUTPUTS + 3, n_assignments = n_rows * USED;
    const size_t bytes = n_assignments * stride * 4;
    const struct device_activations x = inputs_from(inputs, first * (by_row ? 1 : USED));
    float *out = on_device(NULL, bytes);
    const struct device_product product = {&weights->matrix, out, stride};
    *ret_assignments = choose(first, n_rows, reproducible);
    ck_assert_int_eq(device_fill(queue, out, 0x7b, bytes), 0);
    const struct multiply_step step = {.n_rows = n_rows, .reproducible = reproducible};
    ck_assert_int_eq(kernels_multiply_experts(queue, &product, 1, &x, by_row, ret_assignments, &step), 0);
    return from_device(out, bytes);
}

static void check_products(const struct matrices *weights, const struct inputs *inputs, bool by_row,
                           const struct device_assignments *assignments, const float *out, uint32_t n_rows)
{
    const enum format format = weights->matrix.format;
    const bool floats = format == FORMAT_F32 || format == FORMAT_F16 || format == FORMAT_BF16;
    const uint32_t *chosen = from_device(assignments->experts, (size_t)n_rows * USED * 4);
    for (uint32_t assignment = 0; assignment < n_rows * USED; assignment++) {
        const float *x = (floats ? inputs->values : inputs->rounded) +
                         (size_t)(by_row ? assignment / USED : assignment) * inputs->x.stride;
        for (uint32_t i = 0; i < OUTPUTS + 3; i++) {
            const float found = out[assignment * (OUTPUTS + 3) + i];
            if (i >= OUTPUTS || chosen[assignment] == EXPERT_NONE) {
                ck_assert_uint_eq(format_bits_of_float(found), UNTOUCHED);
                continue;
            }
            const float *w =
                weights->floats + ((size_t)chosen[assignment] * OUTPUTS + i) * weights->matrix.n_columns;
            double sum = weights->bias ? (double)weights->bias[chosen[assignment] * OUTPUTS + i] : 0,
                   size = fabs(sum);
            for (uint32_t k = 0; k < weights->matrix.n_columns; k++) {
                sum += (double)w[k] * (double)x[k];
                size += fabs((double)w[k] * (double)x[k]);
            }
            ck_assert_msg(fabs((double)found - sum) <= 3e-6 * size,
                          "%s, %u rows: assignment %u of expert %u, output %u: %g for %g",
                          format_traits(format)->name, n_rows, assignment, chosen[assignment], i, found, sum);
        }
    }
}

START_TEST(an_assignment_gets_the_product_of_its_expert_and_row)
{
    /* Alone, in tiles of 8, in wide ones. */
    static const uint32_t counts[] = {1, 4, 23, MOST_ROWS};
    const enum format format = tested_formats[_i];
    const uint32_t n_columns = format_traits(format)->block_elements == 256 ? 512 : 288;
    open_device();
    struct matrices weights = make_matrices(format, n_columns, _i % 2);
    for (int by_row = 0; by_row < 2; by_row++) {
        struct inputs inputs = make_inputs(n_columns, MOST_ROWS * (by_row ? 1 : USED), fill_random);
        /* Where everything is slow, every other count for a format, the rest for the next. */
        const size_t first = test_is_scaled() ? (size_t)(_i + by_row + 1) % 2 : 0;
        for (size_t c = first + (by_row ? 0 : 1); c < 4; c += test_is_scaled() ? 2 : 1) {
            struct device_assignments assignments;
            float *out = multiply(&weights, &inputs, by_row, 0, counts[c], false, &assignments);
            check_products(&weights, &inputs, by_row, &assignments, out, counts[c]);
        }
        free_inputs(&inputs);
    }
    free_matrices(&weights);
    close_device();
}
END_TEST

START_TEST(an_assignments_bits_do_not_depend_on_the_others)
{
    static const enum format formats[] = {FORMAT_F16, FORMAT_Q4_K, FORMAT_Q2_K, FORMAT_IQ4_NL};
    static const uint32_t counts[] = {1, 3, 5, 40};
    const uint32_t n_columns = 512, stride = OUTPUTS + 3;
    open_device();
    struct matrices weights = make_matrices(formats[_i], n_columns, _i % 2);
    struct inputs inputs = make_inputs(n_columns, MOST_ROWS, fill_random);
    struct device_assignments assignments;
    float *all = multiply(&weights, &inputs, true, 0, MOST_ROWS, true, &assignments);
    check_products(&weights, &inputs, true, &assignments, all, MOST_ROWS);
    for (size_t c = 0; c < 4; c++)
        for (uint32_t first = 0; first + counts[c] <= MOST_ROWS; first += 53) {
            float *some = multiply(&weights, &inputs, true, first, counts[c], true, &assignments);
            ck_assert_mem_eq(some, all + (size_t)first * USED * stride, counts[c] * USED * stride * 4);
        }
    free_inputs(&inputs);
    free_matrices(&weights);
    close_device();
}
END_TEST

START_TEST(two_matrices_of_different_formats_share_a_launch)
{
    open_device();
    struct matrices weights[2] = {make_matrices(FORMAT_Q4_K, 512, true),
                                  make_matrices(FORMAT_F16, 500, false)};
    struct inputs inputs = make_inputs(500, MOST_ROWS, fill_random);
    for (uint32_t n = 2; n <= 32; n *= 16) {
        const struct device_assignments assignments = choose(0, n, false);
        const size_t bytes = n * USED * (OUTPUTS + 3) * 4;
        const struct device_product products[2] = {{&weights[0].matrix, on_device(NULL, bytes), OUTPUTS + 3},
                                                   {&weights[1].matrix, on_device(NULL, bytes), OUTPUTS + 3}};
        const uint64_t launches = device_counts(device).launches;
        for (int p = 0; p < 2; p++)
            ck_assert_int_eq(device_fill(queue, products[p].out, 0x7b, bytes), 0);
        ck_assert_int_eq(kernels_multiply_experts(queue, products, 2, &inputs.x, true, &assignments,
                                                  &(struct multiply_step){.n_rows = n}),
                         0);
        ck_assert_uint_eq(device_counts(device).launches, launches + 1);
        for (int p = 0; p < 2; p++)
            check_products(&weights[p], &inputs, true, &assignments, from_device(products[p].out, bytes), n);
    }
    for (int p = 0; p < 2; p++)
        free_matrices(&weights[p]);
    free_inputs(&inputs);
    close_device();
}
END_TEST

/* ---- sums ---- */

/* And what the shared one gives, where there is one, or a share of it. */
START_TEST(a_row_gets_the_weighted_sum_of_its_experts)
{
    const bool with_shared = _i >= 2, with_shares = _i >= 4;
    const uint32_t n_columns = _i % 2 ? 1030 : 33, stride = layout_padded(n_columns), n_rows = 7, n_used = 3;
    const struct device_assignments assignments = {.n_used = n_used};
    float weights[7 * 3], *got = malloc((size_t)n_rows * n_used * stride * sizeof *got);
    float *shared = malloc((size_t)n_rows * stride * sizeof *shared);
    for (uint32_t i = 0; i < n_rows * stride; i++)
        shared[i] = i % stride < n_columns ? random_float() * 3 : NAN;
    open_device();
    for (uint32_t i = 0; i < n_rows * n_used; i++)
        weights[i] = random_float();
    for (uint32_t i = 0; i < n_rows * n_used * stride; i++)
        got[i] = i % stride < n_columns ? random_float() : NAN; /* not looked at */
    struct device_assignments held = assignments;
    held.weights = on_device(weights, sizeof weights);
    float *out = on_device(NULL, n_rows * stride * sizeof *out);
    ck_assert_int_eq(device_fill(queue, out, 0x7b, n_rows * stride * sizeof *out), 0);
    static const float shares[] = {0, 0.5f, 1, 0.25f, 0.125f, 0.75f, 0.9f};
    const struct shared_part part = {.got = with_shared ? on_device(shared, n_rows * stride * sizeof *shared)
                                                        : NULL,
                                     .shares = with_shares ? on_device(shares, sizeof shares) : NULL};
    ck_assert_int_eq(kernels_combine(queue, &held, on_device(got, n_rows * n_used * stride * sizeof *got),
                                     &part, stride, n_columns, out, n_rows),
                     0);
    const float *found = from_device(out, n_rows * stride * sizeof *out);
    for (uint32_t r = 0; r < n_rows; r++)
        for (uint32_t i = 0; i < stride; i++) {
            double sum = with_shared ? (double)shared[r * stride + i] : 0;
            sum *= with_shares ? (double)shares[r] : 1;
            for (uint32_t k = 0; k < n_used && i < n_columns; k++)
                sum += (double)weights[r * n_used + k] * (double)got[(r * n_used + k) * stride + i];
            if (i < n_columns)
                ck_assert_double_eq_tol((double)found[r * stride + i], sum, 1e-6);
            else
                ck_assert_uint_eq(format_bits_of_float(found[r * stride + i]), UNTOUCHED);
        }
    free(got);
    free(shared);
    close_device();
}
END_TEST

START_TEST(a_share_is_the_sigmoid_of_a_rows_score)
{
    const uint32_t n_columns = _i ? 1030 : 33, stride = layout_padded(n_columns), n_rows = 7;
    float *x = malloc((size_t)n_rows * stride * sizeof *x), weight[1032] = {0};
    for (uint32_t i = 0; i < n_rows * stride; i++)
        x[i] = i % stride < n_columns ? random_float() : NAN; /* not looked at */
    for (uint32_t i = 0; i < n_columns; i++)
        weight[i] = random_float();
    open_device();
    const struct device_activations rows = {.values = on_device(x, n_rows * stride * sizeof *x),
                                            .stride = stride};
    float *shares = on_device(NULL, n_rows * sizeof *shares);
    ck_assert_int_eq(kernels_share(queue, &rows, on_device(weight, sizeof weight), n_columns, shares, n_rows),
                     0);
    const float *found = from_device(shares, n_rows * sizeof *shares);
    for (uint32_t r = 0; r < n_rows; r++) {
        double score = 0;
        for (uint32_t i = 0; i < n_columns; i++)
            score += (double)weight[i] * (double)x[r * stride + i];
        ck_assert_double_eq_tol((double)found[r], 1 / (1 + exp(-score)), 1e-5);
    }
    free(x);
    close_device();
}
END_TEST

START_TEST(what_does_not_fit_together_is_refused)
{
    open_device();
    struct matrices weights = make_matrices(FORMAT_Q8_0, 512, false);
    struct inputs inputs = make_inputs(256, 1, fill_random);
    struct device_assignments assignments = make_assignments(EXPERTS, USED);
    struct device_product product = {&weights.matrix, on_device(NULL, 4096), OUTPUTS + 3};
    const float *scores = on_device(NULL, 4096);
    const struct step_row *rows = make_rows(0);
    const struct multiply_step one_row = {.n_rows = 1};
    ck_assert_int_eq(kernels_multiply_experts(queue, &product, 1, &inputs.x, true, &assignments, &one_row),
                     -EINVAL); /* columns */
    weights.matrix.padded_columns = 256;
    weights.matrix.n_experts = EXPERTS - 1;
    ck_assert_int_eq(kernels_multiply_experts(queue, &product, 1, &inputs.x, true, &assignments, &one_row),
                     -EINVAL);
    struct router_scores router = {.scores = scores, .stride = EXPERTS - 1, .factor = 1};
    ck_assert_int_eq(kernels_choose(queue, &assignments, &router, rows, 1, false), -EINVAL);
    router.stride = 256;
    assignments.n_used = EXPERTS + 1;
    ck_assert_int_eq(kernels_choose(queue, &assignments, &router, rows, 1, false), -EINVAL);
    const struct shared_part none = {NULL, NULL};
    ck_assert_int_eq(kernels_combine(queue, &assignments, scores, &none, 33, 33, product.out, 1), -EINVAL);
    ck_assert_int_eq(kernels_share(queue, &inputs.x, scores, 257, product.out, 1), -EINVAL);
    free_matrices(&weights);
    free_inputs(&inputs);
    close_device();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, rows_go_to_the_experts_that_the_cpu_chooses, 0,
                        sizeof mixtures / sizeof *mixtures);
    tcase_add_loop_test(tests, an_assignment_gets_the_product_of_its_expert_and_row, 0,
                        (int)N_TESTED_FORMATS);
    tcase_add_loop_test(tests, an_assignments_bits_do_not_depend_on_the_others, 0, test_is_scaled() ? 2 : 4);
    tcase_add_test(tests, two_matrices_of_different_formats_share_a_launch);
    tcase_add_loop_test(tests, a_row_gets_the_weighted_sum_of_its_experts, 0, 6);
    tcase_add_loop_test(tests, a_share_is_the_sigmoid_of_a_rows_score, 0, 2);
    tcase_add_test(tests, what_does_not_fit_together_is_refused);
}

int main(void)
{
    return run_tests("cuda experts", add);
}
