/* SPDX-License-Identifier: MIT */
/* Heads are normed, turned, scaled and stored as the model's description says; blocks are copied whole. */

#include "cuda/kernels.h"
#include "tests/unit/cuda/device.h"
#include "tests/unit/cuda/pool.h"
#include "worker/engine/backend.h"
#include "worker/gguf/format.h"

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
static void set_up(uint32_t n_heads, uint32_t n_kv_heads, uint32_t dim, uint32_t seed)
{
    static const uint32_t positions[N_ROWS] = {0, 31, 32, 100, 63};
    open_device();
    step = (struct heads_step){.q_stride = MOST, .kv_stride = MOST, .n_heads = n_heads, .layer = 1};
    step.attention_scale = 1;
    step.kv =
        (struct device_kv){.n_blocks = N_BLOCKS, .n_layers = N_LAYERS, .n_heads = n_kv_heads, .dim = dim};
    step.kv.layer_bytes = kernels_kv_layer_bytes(n_kv_heads, dim);
    step.kv.block_bytes = N_LAYERS * step.kv.layer_bytes;
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

/* ---- the plain ones ---- */

static void norm_plainly(const struct device_vector *vector, float *x, uint32_t dim)
{
    double mean = 0, squares = 0;
    if (!vector->weight)
        return;
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

static uint16_t stored_key(uint32_t row, uint32_t head, uint32_t d)
{
    return *pool_key(&step.kv, block_of(row), step.layer, head, rows[row].position % 32, d);
}

static uint16_t stored_value(uint32_t row, uint32_t head, uint32_t d)
{
    return *pool_value(&step.kv, block_of(row), step.layer, head, rows[row].position % 32, d);
}

/* One unit in the last place of a half beside the float's own error. */
static void assert_half(uint16_t found, float expected, const char *what)
{
    float x = format_f16_to_f32(found);
    ck_assert_msg(fabsf(x - expected) <= 1e-3f * fabsf(expected) + 1e-5f, "%s: %g, not %g", what, (double)x,
                  (double)expected);
}

static void assert_heads(void)
{
    const uint32_t dim = step.kv.dim;
    for (uint32_t row = 0; row < N_ROWS; row++) {
        float head[MOST];
        for (uint32_t h = 0; h < step.n_heads; h++) {
            memcpy(head, q_before + row * MOST + h * dim, dim * sizeof *head);
            norm_plainly(&step.q_norm, head, dim);
            turn_plainly(head, rows[row].position);
            for (uint32_t d = 0; d < dim; d++)
                head[d] *= step.attention_scale;
            assert_close(step.q + row * MOST + h * dim, head, dim, "q");
        }
        for (uint32_t h = 0; h < step.kv.n_heads; h++) {
            memcpy(head, k_before + row * MOST + h * dim, dim * sizeof *head);
            norm_plainly(&step.k_norm, head, dim);
            turn_plainly(head, rows[row].position);
            for (uint32_t d = 0; d < dim; d++) {
                assert_half(stored_key(row, h, d), head[d], "key");
                ck_assert_uint_eq(stored_value(row, h, d),
                                  format_f32_to_f16(step.v[row * MOST + h * dim + d]));
            }
            for (uint32_t d = dim; d % 8 != 0; d++)
                ck_assert_uint_eq(stored_key(row, h, d), 0);
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
    set_up(4, 2, 64, 1);
    set_rotary(ROTARY_PAIRS, 64);
    step.attention_scale = 0.125f;
    run_heads();
    assert_heads();
    close_device();
}
END_TEST

START_TEST(halves_turn_and_dims_beyond_stay)
{
    set_up(3, 3, 80, 2);
    set_rotary(ROTARY_HALVES, 32);
    run_heads();
    assert_heads();
    close_device();
}
END_TEST

START_TEST(heads_of_odd_sizes_are_padded_with_zeros)
{
    set_up(5, 1, 20, 3);
    set_rotary(ROTARY_PAIRS, 10);
    run_heads();
    assert_heads();
    close_device();
}
END_TEST

START_TEST(heads_are_normed_before_they_turn)
{
    set_up(2, 1, 128, 4);
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
    set_up(2, 2, 48, 7);
    step.norm = (struct norm){.kind = NORM_LAYER, .epsilon = 1e-5f};
    step.q_norm = (struct device_vector){make_weights(48, 8), make_weights(48, 9)};
    step.k_norm.weight = make_weights(48, 10);
    run_heads();
    assert_heads();
    close_device();
}
END_TEST

START_TEST(angles_stay_exact_far_out)
{
    set_up(1, 1, 64, 11);
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

START_TEST(numbers_beyond_halves_are_cut)
{
    set_up(1, 1, 32, 12);
    float *v = (float *)step.v;
    v[0] = 1e6f, v[1] = -INFINITY, v[2] = NAN;
    step.k[0] = -70000;
    run_heads();
    ck_assert_uint_eq(stored_value(0, 0, 0), 0x7bff);
    ck_assert_uint_eq(stored_value(0, 0, 1), 0xfbff);
    ck_assert(isnan(format_f16_to_f32(stored_value(0, 0, 2))));
    ck_assert_uint_eq(stored_key(0, 0, 0), 0xfbff);
    close_device();
}
END_TEST

START_TEST(dead_rows_change_nothing)
{
    set_up(2, 2, 64, 13);
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
    set_up(2, 2, 64, 14);
    size_t bytes = N_BLOCKS * step.kv.block_bytes, changed = 0;
    run_heads();
    for (size_t i = 0; i < bytes / 2; i++)
        changed += ((uint16_t *)step.kv.pool)[i] != 0x5a5a;
    ck_assert_uint_le(changed, N_ROWS * 2 * 2 * 64);
    for (uint32_t b = 0; b < N_BLOCKS; b++)
        for (size_t i = 0; i < step.kv.layer_bytes; i++)
            ck_assert_uint_eq(step.kv.pool[b * step.kv.block_bytes + i], 0x5a); /* layer 0 */
    close_device();
}
END_TEST

START_TEST(blocks_go_out_and_come_in_whole)
{
    set_up(2, 2, 64, 15);
    const uint32_t n = 3;
    uint32_t *blocks = take(n, sizeof *blocks);
    size_t bytes = step.kv.block_bytes, seen = 0;
    uint8_t *dense = take(n, bytes), *pool = take(N_BLOCKS, bytes);
    blocks[0] = 7, blocks[1] = 0, blocks[2] = 11;
    for (size_t i = 0; i < N_BLOCKS * bytes; i++)
        pool[i] = step.kv.pool[i] = (uint8_t)(i * 7 + i / 251);
    ck_assert_int_eq(kernels_copy_blocks(stream, &step.kv, blocks, n, dense, true), 0);
    run_queue();
    for (uint32_t i = 0; i < n; i++)
        ck_assert_mem_eq(dense + i * bytes, pool + blocks[i] * bytes, bytes);
    ck_assert_mem_eq(step.kv.pool, pool, N_BLOCKS * bytes);

    for (size_t i = 0; i < n * bytes; i++)
        dense[i] = (uint8_t)(i * 13 + 5);
    ck_assert_int_eq(kernels_copy_blocks(stream, &step.kv, blocks, n, dense, false), 0);
    run_queue();
    for (uint32_t b = 0; b < N_BLOCKS; b++) {
        const uint8_t *expected = pool + b * bytes;
        for (uint32_t i = 0; i < n; i++)
            if (blocks[i] == b) {
                expected = dense + i * bytes;
                seen++;
            }
        ck_assert_mem_eq(step.kv.pool + b * bytes, expected, bytes);
    }
    ck_assert_uint_eq(seen, n);
    close_device();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, pairs_turn_and_all_is_stored);
    tcase_add_test(tests, halves_turn_and_dims_beyond_stay);
    tcase_add_test(tests, heads_of_odd_sizes_are_padded_with_zeros);
    tcase_add_test(tests, heads_are_normed_before_they_turn);
    tcase_add_test(tests, a_layer_norm_takes_the_mean_off);
    tcase_add_test(tests, angles_stay_exact_far_out);
    tcase_add_test(tests, numbers_beyond_halves_are_cut);
    tcase_add_test(tests, dead_rows_change_nothing);
    tcase_add_test(tests, nothing_else_in_the_pool_is_written);
    tcase_add_test(tests, blocks_go_out_and_come_in_whole);
}

int main(void)
{
    return run_tests("heads", add);
}
