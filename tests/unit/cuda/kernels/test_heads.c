/* SPDX-License-Identifier: MIT */
/* Heads are normed, turned, scaled and stored as the model's description says, in each type of keys and
 * values. */

#include "cuda/kernels/kernels.h"
#include "tests/unit/cuda/device.h"
#include "tests/unit/cuda/pool.h"
#include "engine/backend/backend.h"
#include "gguf/format.h"

#include <math.h>

#define N_ROWS   5
#define N_BLOCKS 12
#define N_LAYERS 2
#define MOST     640

static struct heads_step step;
static struct slots slots;
static struct step_row *rows;
static float *q_before, *k_before;
static double *frequencies;

/* Slot i's table names blocks 4i, 4i + 1 …; row i is of slot i % 3. */
static void set_up(int nth_type, uint32_t n_heads, uint32_t n_kv_heads, uint32_t dim, uint32_t seed)
{
    static const uint32_t positions[N_ROWS] = {0, 31, 32, 100, 63};
    open_device();
    step = (struct heads_step){.q_stride = MOST, .kv_stride = MOST, .n_heads = n_heads, .layer = 1};
    step.attention_scale = 1;
    step.kv = (struct device_kv){.type = pool_types[nth_type],
                                 .n_blocks = N_BLOCKS,
                                 .n_layers = N_LAYERS,
                                 .n_heads = n_kv_heads,
                                 .dim = dim};
    kernels_kv_lay_out(&step.kv);
    step.kv.pool = take(N_BLOCKS, step.kv.block_bytes);
    memset(step.kv.pool, 0x5a, N_BLOCKS * step.kv.block_bytes);
    step.q = take(N_ROWS * MOST, sizeof(float));
    step.k = take(N_ROWS * MOST, sizeof(float));
    float *v = take(N_ROWS * MOST, sizeof(float));
    q_before = take(N_ROWS * MOST, sizeof(float));
    k_before = take(N_ROWS * MOST, sizeof(float));
    for (uint32_t i = 0; i < N_ROWS * MOST; i++) {
        q_before[i] = step.q[i] = 3 * next_real(&seed);
        k_before[i] = step.k[i] = 3 * next_real(&seed);
        v[i] = next_real(&seed);
    }
    step.v = v;
    frequencies = take(dim, sizeof *frequencies);
    step.frequencies = frequencies;
    slots = (struct slots){.n_slots = 3, .table_size = 4};
    slots.tables = take(N_BLOCKS, sizeof *slots.tables);
    for (uint32_t i = 0; i < N_BLOCKS; i++)
        slots.tables[i] = i;
    rows = take(N_ROWS, sizeof *rows);
    for (uint32_t i = 0; i < N_ROWS; i++)
        rows[i] = (struct step_row){.slot = i % 3, .position = positions[i], .set = i};
}

static void run_heads(void)
{
    ck_assert_int_eq(kernels_heads(stream, &step, &slots, rows, N_ROWS), 0);
    run_queue();
}

/* One row alone. */
static void run_heads_of(uint32_t row)
{
    struct heads_step one = step;
    one.q += row * MOST;
    one.k += row * MOST;
    one.v += row * MOST;
    ck_assert_int_eq(kernels_heads(stream, &one, &slots, rows + row, 1), 0);
    run_queue();
}

/* ---- the plain ones ---- */

static void norm_plainly(const struct device_vector *vector, float *x, uint32_t dim)
{
    double mean = 0, squares = 0;
    for (uint32_t i = 0; i < dim && step.norm.kind == NORM_LAYER; i++)
        mean += (double)x[i] / dim;
    for (uint32_t i = 0; i < dim; i++)
        squares += ((double)x[i] - mean) * ((double)x[i] - mean) / dim;
    for (uint32_t i = 0; i < dim; i++)
        x[i] = (float)(((double)x[i] - mean) / sqrt(squares + (double)step.norm.epsilon) *
                           (double)vector->weight[i] +
                       (vector->bias ? (double)vector->bias[i] : 0));
}

static void turn_plainly(float *x, uint32_t position)
{
    const uint32_t n_pairs = step.rotary.dims / 2;
    for (uint32_t i = 0; i < n_pairs && step.rotary.kind != ROTARY_NONE; i++) {
        uint32_t a = step.rotary.kind == ROTARY_PAIRS ? 2 * i : i;
        uint32_t b = step.rotary.kind == ROTARY_PAIRS ? a + 1 : a + n_pairs;
        double c = cos(position * frequencies[i]) * (double)step.rotary.magnitude;
        double s = sin(position * frequencies[i]) * (double)step.rotary.magnitude;
        double first = (double)x[a], second = (double)x[b];
        x[a] = (float)(first * c - second * s);
        x[b] = (float)(first * s + second * c);
    }
}

static void assert_close(const float *found, const float *expected, uint32_t n, const char *what)
{
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg(fabsf(found[i] - expected[i]) <= 4e-6f * (1 + fabsf(expected[i])), "%s %u: %g, not %g",
                      what, i, (double)found[i], (double)expected[i]);
}

static uint32_t block_of(uint32_t row)
{
    return slots.tables[rows[row].slot * slots.table_size + rows[row].position / 32];
}

static struct pool_place place(uint32_t row, uint32_t head, bool value)
{
    return (struct pool_place){&step.kv, block_of(row), step.layer, head, rows[row].position % 32, value};
}

/* Of a key: what differs by the float's own error may be rounded otherwise, by one unit in the last place of
 * a half or one step of the scale. */
static void assert_key(const struct pool_place *at, const float *expected)
{
    const bool scaled = pool_scaled(&step.kv);
    int8_t quants[32];
    float step_of_scale = 0;
    for (uint32_t d = 0; d < step.kv.dim; d++) {
        const uint32_t left = step.kv.dim - d, n = left < 32 ? left : 32;
        if (scaled && d % 32 == 0) {
            step_of_scale = format_f16_to_f32(pool_round(&step.kv, expected + d, n, quants));
            ck_assert_float_eq_tol(format_f16_to_f32(*pool_scale(at, d)), step_of_scale,
                                   1e-3f * fabsf(step_of_scale));
        }
        const float wanted = scaled ? step_of_scale * quants[d % 32] : expected[d];
        const float off = scaled ? 1.1f * fabsf(step_of_scale) : 1e-3f * fabsf(wanted) + 1e-5f;
        ck_assert_msg(fabsf(pool_number(at, d) - wanted) <= off, "key %u: %g, not %g", d,
                      (double)pool_number(at, d), (double)wanted);
    }
    for (uint32_t d = step.kv.dim; d < pool_padded(&step.kv); d++)
        ck_assert_int_eq(scaled ? pool_quant(at, d) : *pool_half(at, d), 0);
}

/* Values are as they were: to the bit. */
static void assert_value(const struct pool_place *at, const float *expected)
{
    int8_t quants[32];
    for (uint32_t d = 0; d < step.kv.dim; d++) {
        const uint32_t left = step.kv.dim - d, n = left < 32 ? left : 32;
        if (step.kv.type == BACKEND_KV_F16) {
            ck_assert_uint_eq(*pool_half(at, d), format_f32_to_f16(expected[d]));
            continue;
        }
        if (d % 32 == 0)
            ck_assert_uint_eq(*pool_scale(at, d), pool_round(&step.kv, expected + d, n, quants));
        ck_assert_int_eq(pool_quant(at, d), quants[d % 32]);
    }
}

/* A row's n heads, together or each by itself. */
static void norm_heads(const struct device_vector *vector, float *heads, uint32_t n)
{
    const uint32_t dim = step.kv.dim;
    if (!vector->weight)
        return;
    if (step.norms_row)
        norm_plainly(vector, heads, n * dim);
    for (uint32_t h = 0; h < n && !step.norms_row; h++)
        norm_plainly(vector, heads + h * dim, dim);
}

static float scale_of(uint32_t position)
{
    const uint32_t spans = step.growth.span ? position / step.growth.span : 0;
    return (float)((double)step.attention_scale * (1 + (double)step.growth.factor * log(1.0 + spans)));
}

static void assert_heads(void)
{
    const uint32_t dim = step.kv.dim;
    for (uint32_t row = 0; row < N_ROWS; row++) {
        float q[MOST], k[MOST];
        memcpy(q, q_before + row * MOST, sizeof q);
        memcpy(k, k_before + row * MOST, sizeof k);
        norm_heads(&step.q_norm, q, step.n_heads);
        norm_heads(&step.k_norm, k, step.kv.n_heads);
        for (uint32_t h = 0; h < step.n_heads; h++) {
            float *head = q + h * dim;
            turn_plainly(head, rows[row].position);
            for (uint32_t d = 0; d < dim; d++)
                head[d] *= scale_of(rows[row].position);
            assert_close(step.q + row * MOST + h * dim, head, dim, "q");
        }
        for (uint32_t h = 0; h < step.kv.n_heads; h++) {
            const struct pool_place key = place(row, h, false), value = place(row, h, true);
            turn_plainly(k + h * dim, rows[row].position);
            assert_key(&key, k + h * dim);
            assert_value(&value, step.v + row * MOST + h * dim);
        }
    }
}

static void set_rotary(enum rotary_kind kind, uint32_t dims)
{
    step.rotary = (struct rotary){.kind = kind, .dims = dims, .magnitude = 1.25f};
    for (uint32_t i = 0; i < dims / 2; i++)
        frequencies[i] = pow(10000, -2.0 * i / dims);
}

static const float *make_weights(uint32_t n, uint32_t seed)
{
    float *weights = take(n, sizeof *weights);
    for (uint32_t i = 0; i < n; i++)
        weights[i] = 1 + next_real(&seed) / 2;
    return weights;
}

START_TEST(pairs_turn_and_all_is_stored)
{
    set_up(_i, 4, 2, 64, 1);
    set_rotary(ROTARY_PAIRS, 64);
    step.attention_scale = 0.125f;
    run_heads();
    assert_heads();
    close_device();
}
END_TEST

START_TEST(halves_turn_and_dims_beyond_stay)
{
    set_up(_i, 3, 3, 80, 2);
    set_rotary(ROTARY_HALVES, 32);
    run_heads();
    assert_heads();
    close_device();
}
END_TEST

START_TEST(heads_of_odd_sizes_are_padded_with_zeros)
{
    set_up(_i, 5, 1, 20, 3);
    set_rotary(ROTARY_PAIRS, 10);
    run_heads();
    assert_heads();
    close_device();
}
END_TEST

START_TEST(heads_are_normed_before_they_turn)
{
    set_up(_i, 2, 1, 128, 4);
    set_rotary(ROTARY_HALVES, 128);
    step.norm = (struct norm){.kind = NORM_RMS, .epsilon = 1e-5f};
    step.q_norm.weight = make_weights(128, 5);
    step.k_norm.weight = make_weights(128, 6);
    run_heads();
    assert_heads();
    close_device();
}
END_TEST

START_TEST(a_layer_norm_takes_the_mean_off)
{
    set_up(_i, 2, 2, 48, 7);
    step.norm = (struct norm){.kind = NORM_LAYER, .epsilon = 1e-5f};
    step.q_norm = (struct device_vector){make_weights(48, 8), make_weights(48, 9)};
    step.k_norm.weight = make_weights(48, 10);
    run_heads();
    assert_heads();
    close_device();
}
END_TEST

/* More heads than warps, and fewer; sizes that are no multiple of four. */
START_TEST(a_norm_may_be_over_all_heads)
{
    static const struct {
        uint32_t n_heads, n_kv_heads, dim;
    } shapes[] = {{5, 1, 128}, {35, 7, 18}, {1, 1, 5}, {20, 20, 32}};
    for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const uint32_t dim = shapes[i].dim;
        set_up(_i, shapes[i].n_heads, shapes[i].n_kv_heads, dim, 17 + i);
        set_rotary(ROTARY_HALVES, dim / 2 * 2);
        step.norms_row = true;
        step.norm = (struct norm){.kind = i == 1 ? NORM_LAYER : NORM_RMS, .epsilon = 1e-5f};
        step.q_norm.weight = make_weights(shapes[i].n_heads * dim, 18);
        step.k_norm.weight = make_weights(shapes[i].n_kv_heads * dim, 19);
        if (i == 1)
            step.k_norm.bias = make_weights(shapes[i].n_kv_heads * dim, 20);
        rows[3].position = i == 0 ? ROW_DEAD : 100;
        run_heads();
        if (i == 0) { /* left as it was */
            ck_assert_mem_eq(step.q + 3 * MOST, q_before + 3 * MOST, MOST * sizeof(float));
            rows[3].position = 100;
            run_heads_of(3);
        }
        assert_heads();
        close_device();
    }
}
END_TEST

/* Where keys and values are another layer's, these are looked at nowhere. */
START_TEST(queries_may_be_alone)
{
    for (int of_row = 0; of_row < 2; of_row++) {
        set_up(_i, 5, 1, 20, 22);
        set_rotary(ROTARY_HALVES, 20);
        const size_t bytes = N_BLOCKS * step.kv.block_bytes;
        uint8_t *pool = take(1, bytes);
        memcpy(pool, step.kv.pool, bytes);
        step.norms_row = of_row;
        step.norm = (struct norm){.kind = NORM_RMS, .epsilon = 1e-5f};
        step.q_norm.weight = make_weights(of_row ? 5 * 20 : 20, 23);
        step.k_norm.weight = make_weights(20, 24);
        run_heads(); /* with keys and values first: the same queries */
        float *with = take(N_ROWS * MOST, sizeof *with);
        memcpy(with, step.q, N_ROWS * MOST * sizeof *with);
        memcpy(step.q, q_before, N_ROWS * MOST * sizeof *with);
        memcpy(step.kv.pool, pool, bytes);
        step.only_queries = true;
        step.k = step.v = NULL;
        run_heads();
        ck_assert_mem_eq(step.q, with, N_ROWS * MOST * sizeof *with);
        ck_assert_mem_ne(step.q, q_before, N_ROWS * MOST * sizeof *with);
        ck_assert_mem_eq(step.kv.pool, pool, bytes);
        close_device();
    }
}
END_TEST

START_TEST(queries_grow_with_their_position)
{
    set_up(_i, 3, 1, 40, 21);
    set_rotary(ROTARY_PAIRS, 40);
    step.attention_scale = 0.3f;
    step.growth = (struct query_growth){.factor = 0.7f, .span = 32}; /* positions on both sides of it */
    run_heads();
    assert_heads();
    ck_assert_float_ne(scale_of(31), scale_of(32));
    close_device();
}
END_TEST

START_TEST(angles_stay_exact_far_out)
{
    set_up(_i, 1, 1, 64, 11);
    set_rotary(ROTARY_HALVES, 64);
    slots.table_size = 4000;
    slots.tables = take(3 * 4000, sizeof *slots.tables);
    for (uint32_t i = 0; i < N_ROWS; i++) {
        rows[i].position = 120000 + 32 * i;
        slots.tables[rows[i].slot * 4000 + rows[i].position / 32] = i;
    }
    run_heads();
    assert_heads();
    close_device();
}
END_TEST

/* In 8 bits the largest scale is the largest of which 127 are a half, in 4 bits that of which −8 are. */
START_TEST(numbers_beyond_halves_are_cut)
{
    set_up(_i, 1, 1, 64, 12);
    float *v = (float *)step.v;
    v[0] = 1e6f, v[1] = -INFINITY, v[2] = 5, v[34] = NAN;
    step.k[0] = -70000;
    run_heads();
    const struct pool_place key = place(0, 0, false), value = place(0, 0, true);
    if (pool_scaled(&step.kv)) {
        const bool q8 = step.kv.type == BACKEND_KV_Q8;
        ck_assert_float_eq(format_f16_to_f32(*pool_scale(&value, 0)), q8 ? 515.5f : -8188);
        ck_assert_int_eq(pool_quant(&value, 0), q8 ? 127 : -8);
        ck_assert_int_eq(pool_quant(&value, 1), q8 ? -127 : 7);
        ck_assert_int_eq(pool_quant(&value, 2), 0);
        ck_assert(isnan(format_f16_to_f32(*pool_scale(&value, 34))));
        ck_assert_int_eq(pool_quant(&key, 0), q8 ? -127 : -8);
        ck_assert(!isnan(format_f16_to_f32(*pool_scale(&key, 34))));
    } else {
        ck_assert_uint_eq(*pool_half(&value, 0), 0x7bff);
        ck_assert_uint_eq(*pool_half(&value, 1), 0xfbff);
        ck_assert(isnan(format_f16_to_f32(*pool_half(&value, 34))));
        ck_assert_uint_eq(*pool_half(&key, 0), 0xfbff);
    }
    close_device();
}
END_TEST

/* Not even of nothing, and not of numbers whose scale is too small for a half. */
START_TEST(what_is_as_good_as_nothing_becomes_zeros)
{
    set_up(_i, 1, 1, 64, 16);
    float *v = (float *)step.v;
    for (uint32_t d = 0; d < 64; d++)
        v[d] = d < 32 ? 0 : 1e-9f;
    run_heads();
    const struct pool_place value = place(0, 0, true);
    for (uint32_t d = 0; d < 64; d++)
        ck_assert_float_eq(pool_number(&value, d), 0);
    close_device();
}
END_TEST

START_TEST(dead_rows_change_nothing)
{
    set_up(_i, 2, 2, 64, 13);
    set_rotary(ROTARY_PAIRS, 64);
    size_t bytes = N_BLOCKS * step.kv.block_bytes;
    uint8_t *pool = take(1, bytes);
    memcpy(pool, step.kv.pool, bytes);
    for (uint32_t i = 0; i < N_ROWS; i++)
        rows[i].position = ROW_DEAD;
    run_heads();
    ck_assert_mem_eq(step.kv.pool, pool, bytes);
    ck_assert_mem_eq(step.q, q_before, N_ROWS * MOST * sizeof(float));
    close_device();
}
END_TEST

/* Of the pool, only the stored positions of the layer. */
START_TEST(nothing_else_in_the_pool_is_written)
{
    set_up(_i, 2, 2, 64, 14);
    size_t bytes = N_BLOCKS * step.kv.block_bytes, changed = 0;
    run_heads();
    for (size_t i = 0; i < bytes; i++)
        changed += step.kv.pool[i] != 0x5a;
    /* Keys and values of two heads: what a position has of a part. */
    ck_assert_uint_le(changed, N_ROWS * 2 * 2 * (pool_numbers(&step.kv) + pool_scales(&step.kv)) / 32);
    for (uint32_t b = 0; b < N_BLOCKS; b++)
        for (size_t i = 0; i < step.kv.layer_bytes; i++)
            ck_assert_uint_eq(step.kv.pool[b * step.kv.block_bytes + i], 0x5a); /* layer 0 */
    close_device();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, pairs_turn_and_all_is_stored, 0, POOL_TYPES);
    tcase_add_loop_test(tests, halves_turn_and_dims_beyond_stay, 0, POOL_TYPES);
    tcase_add_loop_test(tests, heads_of_odd_sizes_are_padded_with_zeros, 0, POOL_TYPES);
    tcase_add_loop_test(tests, heads_are_normed_before_they_turn, 0, POOL_TYPES);
    tcase_add_loop_test(tests, a_layer_norm_takes_the_mean_off, 0, POOL_TYPES);
    tcase_add_loop_test(tests, a_norm_may_be_over_all_heads, 0, POOL_TYPES);
    tcase_add_loop_test(tests, queries_may_be_alone, 0, POOL_TYPES);
    tcase_add_loop_test(tests, queries_grow_with_their_position, 0, POOL_TYPES);
    tcase_add_loop_test(tests, angles_stay_exact_far_out, 0, POOL_TYPES);
    tcase_add_loop_test(tests, numbers_beyond_halves_are_cut, 0, POOL_TYPES);
    tcase_add_loop_test(tests, what_is_as_good_as_nothing_becomes_zeros, 0, POOL_TYPES);
    tcase_add_loop_test(tests, dead_rows_change_nothing, 0, POOL_TYPES);
    tcase_add_loop_test(tests, nothing_else_in_the_pool_is_written, 0, POOL_TYPES);
}

int main(void)
{
    return run_tests("heads", add);
}
