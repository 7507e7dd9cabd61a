/* SPDX-License-Identifier: MIT */
/* Attention against its definition in double, on the same stored numbers; and against itself: whatever a row
 * shares a step with, its bytes are the same. What no row may see is NaN in every test. All tests are run for
 * each type of keys and values. */

#include "cuda/kernels/kernels.h"
#include "tests/unit/cuda/device.h"
#include "tests/unit/cuda/pool.h"
#include "engine/backend/backend.h"
#include "gguf/format.h"

#include <math.h>

#define N_SLOTS    8
#define TABLE_SIZE 28
#define N_CONTEXT  (TABLE_SIZE * 32)
#define N_LAYERS   2
#define MAX_ROWS   96
#define OUT_OF_USE (-77.0f)
#define TOLERANCE  5e-4 /* weights are halves */

static struct attention_step step;
static struct slots slots;
static struct step_row *rows;
static float *q;
static uint32_t n_rows;

static void set_up(int nth_type, uint32_t n_heads, uint32_t n_kv_heads, uint32_t dim)
{
    uint32_t seed = n_heads * 1000 + dim;
    open_device();
    step = (struct attention_step){.q_stride = n_heads * dim};
    step.kv = (struct device_kv){.type = pool_types[nth_type],
                                 .n_blocks = N_SLOTS * TABLE_SIZE,
                                 .n_layers = N_LAYERS,
                                 .n_heads = n_kv_heads,
                                 .dim = dim};
    kernels_kv_lay_out(&step.kv);
    step.kv.pool = take(step.kv.n_blocks, step.kv.block_bytes);
    memset(step.kv.pool, 0xff, step.kv.n_blocks * step.kv.block_bytes); /* NaN */
    step.q = q = take(MAX_ROWS * step.q_stride, sizeof *q);
    for (uint32_t i = 0; i < MAX_ROWS * step.q_stride; i++)
        q[i] = 2 * next_real(&seed);
    step.out.stride = (step.q_stride + 256) / 256 * 256;
    step.out.values = take(MAX_ROWS * step.out.stride, sizeof(float));
    step.scratch = (struct attention_scratch){
        .max_rows = MAX_ROWS, .n_context = N_CONTEXT, .n_heads = n_heads, .n_blocks = step.kv.n_blocks};
    step.scratch.memory = take(1, kernels_attention_scratch(&step.kv, &step.scratch));
    slots = (struct slots){.n_slots = N_SLOTS, .table_size = TABLE_SIZE};
    slots.tables = take(N_SLOTS * TABLE_SIZE, sizeof *slots.tables);
    for (uint32_t i = 0; i < N_SLOTS * TABLE_SIZE; i++)
        slots.tables[i] = i * 5 % (N_SLOTS * TABLE_SIZE); /* 5 and 224 have no common factor */
    rows = take(MAX_ROWS, sizeof *rows);
    n_rows = 0;
}

static uint32_t block_of(const struct step_row *row, uint32_t position)
{
    return slots.tables[row->slot * TABLE_SIZE + position / 32];
}

static struct pool_place place(const struct step_row *row, uint32_t position, uint32_t layer, uint32_t head,
                               bool value)
{
    return (struct pool_place){&step.kv, block_of(row, position), layer, head, position % 32, value};
}

/* Key and value of a position: the same whenever it is filled. */
static void fill(const struct step_row *row, uint32_t position)
{
    uint32_t seed = (row->slot + 1) * 7919 + position * 104729 + 1;
    float numbers[2][256];
    for (uint32_t layer = 0; layer < N_LAYERS; layer++)
        for (uint32_t h = 0; h < step.kv.n_heads; h++) {
            for (uint32_t d = 0; d < step.kv.dim; d++)
                for (uint32_t i = 0; i < 2; i++)
                    numbers[i][d] = next_real(&seed);
            for (uint32_t i = 0; i < 2; i++) {
                const struct pool_place to = place(row, position, layer, h, i);
                pool_put(&to, numbers[i]);
            }
        }
}

/* A set of neighbouring rows; their positions and the `filled` ones before them are filled. */
static void add_set(uint32_t slot, uint32_t position, uint32_t n, uint32_t filled)
{
    uint32_t set = n_rows ? rows[n_rows - 1].set + 1 : 0;
    for (uint32_t i = 0; i < n; i++) {
        rows[n_rows] = (struct step_row){.slot = slot, .position = position + i, .set = set};
        fill(&rows[n_rows++], position + i);
    }
    for (uint32_t i = 0; i < filled && i < position; i++)
        fill(&rows[n_rows - 1], position - 1 - i);
}

static void add_dead(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        rows[n_rows++] = (struct step_row){.position = ROW_DEAD};
}

static void attend_layer(void)
{
    for (uint32_t i = 0; i < MAX_ROWS * step.out.stride; i++)
        step.out.values[i] = OUT_OF_USE;
    ck_assert_int_eq(kernels_attention(stream, &step, &slots, rows, n_rows), 0);
    run_queue();
}

static void plan(void)
{
    ck_assert_int_eq(kernels_attention_plan(stream, &step.kv, &step.scratch, rows, n_rows), 0);
}

static void attend(void)
{
    plan();
    attend_layer();
}

/* ---- the definition ---- */

static void attend_plainly(uint32_t r, uint32_t head, double *out)
{
    const struct step_row *row = &rows[r];
    const uint32_t dim = step.kv.dim, kv_head = head / (step.scratch.n_heads / step.kv.n_heads);
    const float *query = q + (size_t)r * step.q_stride + (size_t)head * dim;
    uint32_t first = step.window && row->position + 1 > step.window ? row->position + 1 - step.window : 0;
    double scores[N_CONTEXT], largest = -INFINITY, sum = 0;
    for (uint32_t p = first; p <= row->position; p++) {
        const struct pool_place key = place(row, p, step.layer, kv_head, false);
        scores[p] = 0;
        for (uint32_t d = 0; d < dim; d++)
            scores[p] += (double)query[d] * (double)pool_number(&key, d);
        if (step.cap > 0)
            scores[p] = (double)step.cap * tanh(scores[p] / (double)step.cap);
        largest = fmax(largest, scores[p]);
    }
    if (step.sinks) {
        largest = fmax(largest, (double)step.sinks[head]);
        sum = exp((double)step.sinks[head] - largest);
    }
    for (uint32_t d = 0; d < dim; d++)
        out[d] = 0;
    for (uint32_t p = first; p <= row->position; p++) {
        const struct pool_place value = place(row, p, step.layer, kv_head, true);
        double weight = exp(scores[p] - largest);
        sum += weight;
        for (uint32_t d = 0; d < dim; d++)
            out[d] += weight * (double)pool_number(&value, d);
    }
    for (uint32_t d = 0; d < dim; d++)
        out[d] /= sum;
}

static void assert_rows(void)
{
    const uint32_t dim = step.kv.dim, n_columns = step.scratch.n_heads * dim;
    double expected[256];
    for (uint32_t r = 0; r < MAX_ROWS; r++) {
        const float *out = step.out.values + (size_t)r * step.out.stride;
        bool dead = r >= n_rows || rows[r].position == ROW_DEAD;
        for (uint32_t i = dead ? 0 : n_columns; i < step.out.stride; i++)
            ck_assert_float_eq(out[i], dead ? OUT_OF_USE : 0);
        for (uint32_t h = 0; h < step.scratch.n_heads && !dead; h++) {
            attend_plainly(r, h, expected);
            for (uint32_t d = 0; d < dim; d++)
                ck_assert_msg(fabs((double)out[h * dim + d] - expected[d]) < TOLERANCE,
                              "row %u at %u, head %u, dim %u: %g, not %g", r, rows[r].position, h, d,
                              (double)out[h * dim + d], expected[d]);
        }
    }
}

/* Decoding rows on both sides of the borders of blocks and pieces. */
static void add_ragged(void)
{
    static const uint32_t positions[N_SLOTS] = {0, 31, 32, 255, 256, 300, 511, 700};
    for (uint32_t i = 0; i < N_SLOTS; i++)
        add_set(i, positions[i], 1, N_CONTEXT);
}

START_TEST(rows_see_all_before_them)
{
    set_up(_i, 6, 2, 40);
    add_ragged();
    add_dead(3);
    attend();
    assert_rows();
    close_device();
}
END_TEST

START_TEST(heads_may_share_keys_or_not_and_be_of_any_size)
{
    static const struct {
        uint32_t n_heads, n_kv_heads, dim;
    } shapes[] = {{2, 2, 128}, {3, 1, 20}, {7, 1, 80}, {40, 2, 16}, {10, 1, 48},
                  {2, 1, 256}, {71, 1, 8}, {4, 2, 64}, {3, 3, 96},  {2, 1, 33}};
    for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        set_up(_i, shapes[i].n_heads, shapes[i].n_kv_heads, shapes[i].dim);
        add_set(3, 300, 1, N_CONTEXT);
        add_set(4, 17, 3, N_CONTEXT);
        attend();
        assert_rows();
        close_device();
    }
}
END_TEST

START_TEST(large_heads_fit_in_a_large_batch)
{
    for (uint32_t dim = 192; dim <= 256; dim += 64) {
        set_up(_i, 2, 2, dim);
        add_set(3, 30, 4, N_CONTEXT);
        add_dead(70);
        attend();
        assert_rows();
        close_device();
    }
}
END_TEST

START_TEST(a_prompt_is_causal)
{
    set_up(_i, 4, 2, 32);
    add_set(1, 0, 70, 0);
    add_dead(2);
    add_set(2, 250, 12, N_CONTEXT);
    add_set(0, 5, 1, N_CONTEXT);
    attend();
    assert_rows();
    close_device();
}
END_TEST

/* What the window has left behind was given to others: it is NaN. */
START_TEST(a_window_hides_what_is_before_it)
{
    static const uint32_t windows[] = {1, 7, 32, 40, 257};
    for (uint32_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        set_up(_i, 4, 1, 32);
        step.window = windows[i];
        add_set(0, 3, 1, windows[i] - 1);
        add_set(1, 290, 1, windows[i] - 1);
        add_set(2, 500, 20, windows[i] - 1);
        add_set(3, 767, 2, windows[i] - 1);
        attend();
        assert_rows();
        close_device();
    }
}
END_TEST

START_TEST(scores_are_capped)
{
    set_up(_i, 4, 2, 32);
    step.cap = 1.5f;
    add_ragged();
    attend();
    assert_rows();
    close_device();
}
END_TEST

/* Of all sizes: heads that see nothing else, some that do not see them. */
static void add_sinks(void)
{
    float *sinks = take(step.scratch.n_heads, sizeof *sinks);
    for (uint32_t h = 0; h < step.scratch.n_heads; h++)
        sinks[h] = (float[]){0.5f, 6, -200, 200, -INFINITY, 2}[h % 6];
    step.sinks = sinks;
}

START_TEST(a_sink_takes_its_part_of_the_softmax_once)
{
    static const uint32_t windows[] = {0, 40, 300};
    set_up(_i, 7, 1, 40);
    add_sinks();
    add_ragged();
    add_set(1, 250, 12, N_CONTEXT);
    add_dead(2);
    plan();
    for (uint32_t i = 0; i < 3; i++) {
        step.window = windows[i];
        attend_layer();
        assert_rows();
    }
    close_device();
}
END_TEST

START_TEST(sinks_are_not_capped)
{
    set_up(_i, 6, 2, 32);
    add_sinks();
    step.cap = 1.5f;
    add_ragged();
    attend();
    assert_rows();
    close_device();
}
END_TEST

START_TEST(one_plan_serves_layers_with_and_without_a_window)
{
    static const uint32_t windows[] = {0, 100, 300};
    set_up(_i, 8, 2, 32);
    add_ragged();
    plan();
    for (uint32_t i = 0; i < 3; i++) {
        step.layer = i % 2;
        step.window = windows[i];
        attend_layer();
        assert_rows();
    }
    close_device();
}
END_TEST

START_TEST(dead_rows_alone_are_no_work)
{
    set_up(_i, 4, 2, 32);
    add_dead(7);
    attend();
    assert_rows();
    close_device();
}
END_TEST

/* With heads of whole blocks of 32, and with others. */
START_TEST(what_comes_out_is_quantized_too)
{
    for (uint32_t dim = 16; dim <= 32; dim += 16) {
        set_up(_i, 5, 1, dim);
        add_set(1, 40, 3, N_CONTEXT);
        add_set(2, 300, 1, N_CONTEXT);
        add_dead(1);
        size_t n = (size_t)n_rows * step.out.stride;
        struct device_activations twin = step.out;
        step.out.quants = take(n, 1);
        step.out.scales = take(n / 32, sizeof(float));
        step.out.sums = take(n / 32, sizeof(float));
        memset(step.out.scales, 0xff, n / 32 * sizeof(float));
        attend();
        twin.quants = take(n, 1);
        twin.scales = take(n / 32, sizeof(float));
        twin.sums = take(n / 32, sizeof(float));
        ck_assert_int_eq(kernels_quantize(stream, &twin, step.q_stride, n_rows), 0);
        run_queue();
        n -= step.out.stride; /* what a dead row has does not matter */
        ck_assert_mem_eq(step.out.quants, twin.quants, n);
        ck_assert_mem_eq(step.out.scales, twin.scales, n / 32 * sizeof(float));
        ck_assert_mem_eq(step.out.sums, twin.sums, n / 32 * sizeof(float));
        ck_assert_float_gt(step.out.scales[0], 0);
        close_device();
    }
}
END_TEST

/* Scores of a hundred, of which a half's eleven bits would be wrong by several hundredths. */
START_TEST(large_scores_are_as_good_as_small_ones)
{
    set_up(_i, 2, 1, 64);
    for (uint32_t i = 0; i < MAX_ROWS * step.q_stride; i++)
        q[i] *= 20;
    add_ragged();
    attend();
    assert_rows();
    close_device();
}
END_TEST

/* ---- twins ---- */

static float *alone; /* [MAX_ROWS][stride] */

/* Every row in a step of its own, with the query it has. */
static void attend_each_alone(void)
{
    struct step_row *all = rows;
    const float *queries = step.q;
    uint32_t n = n_rows;
    alone = take(MAX_ROWS * step.out.stride, sizeof *alone);
    for (uint32_t i = 0; i < n; i++) {
        rows = all + i;
        n_rows = 1;
        step.q = queries + (size_t)i * step.q_stride;
        attend();
        memcpy(alone + (size_t)i * step.out.stride, step.out.values, step.q_stride * sizeof *alone);
    }
    rows = all;
    n_rows = n;
    step.q = queries;
}

static void assert_twins(void)
{
    for (uint32_t i = 0; i < n_rows; i++)
        if (rows[i].position != ROW_DEAD)
            ck_assert_mem_eq(step.out.values + (size_t)i * step.out.stride,
                             alone + (size_t)i * step.out.stride, step.q_stride * sizeof *alone);
}

START_TEST(a_row_has_the_same_bits_in_any_batch)
{
    set_up(_i, 6, 2, 32);
    add_ragged();
    attend_each_alone();
    attend();
    assert_twins();
    add_dead(80); /* now a batch that has room for sixteen queries an item */
    attend();
    assert_twins();
    close_device();
}
END_TEST

/* In one piece and in several, by one block of threads and by many. */
START_TEST(sinks_do_not_change_what_a_row_has_in_any_batch)
{
    set_up(_i, 6, 2, 32);
    add_sinks();
    add_ragged();
    attend_each_alone();
    add_dead(80);
    attend();
    assert_twins();
    n_rows = N_SLOTS;
    step.scratch.n_blocks = 0; /* memory for a piece of each row, and one */
    step.scratch.max_rows = n_rows;
    attend();
    assert_twins();
    close_device();
}
END_TEST

START_TEST(a_row_of_a_prompt_has_the_bits_that_it_has_alone)
{
    for (uint32_t window = 0; window <= 60; window += 60) {
        set_up(_i, 4, 2, 32);
        step.window = window;
        add_set(1, 250, 13, N_CONTEXT);
        add_set(2, 0, 17, 0);
        attend_each_alone();
        attend();
        assert_twins();
        close_device();
    }
}
END_TEST

START_TEST(without_memory_for_partial_results_the_bits_are_the_same)
{
    set_up(_i, 4, 2, 32);
    add_ragged();
    attend_each_alone();
    step.scratch.n_blocks = 0; /* memory for a piece of each row, and one */
    step.scratch.max_rows = n_rows;
    attend();
    assert_twins();
    close_device();
}
END_TEST

/* A value of f16 spoils its own dim, a scale all that it is for. */
START_TEST(a_value_that_is_no_number_spoils_its_own_sequence_only)
{
    set_up(_i, 4, 2, 64);
    add_ragged();
    const bool scaled = pool_scaled(&step.kv);
    const struct pool_place value = place(&rows[5], 290, 0, 1, true), key = place(&rows[6], 10, 0, 0, false);
    *(scaled ? pool_scale(&value, 4) : pool_half(&value, 4)) = 0x7e00;
    *(scaled ? pool_scale(&key, 4) : pool_half(&key, 4)) = 0x7e00;
    attend();
    for (uint32_t r = 0; r < n_rows; r++) {
        uint32_t wrong = 0;
        for (uint32_t i = 0; i < step.q_stride; i++)
            wrong += isnan(step.out.values[r * step.out.stride + i]) != 0;
        ck_assert_uint_eq(wrong, r == 5 ? (scaled ? 2 * 32 : 2) : r == 6 ? 2 * 64 : 0);
    }
    close_device();
}
END_TEST

/* Where everything is slow, one type is enough for what launches no other kernels than those above it do. */
#define ADD_IN_A_TYPE(test, type)                                                                            \
    tcase_add_loop_test(tests, test, test_is_scaled() ? (type) : 0,                                          \
                        test_is_scaled() ? (type) + 1 : POOL_TYPES)

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, rows_see_all_before_them, 0, POOL_TYPES);
    tcase_add_loop_test(tests, heads_may_share_keys_or_not_and_be_of_any_size, 0, POOL_TYPES);
    tcase_add_loop_test(tests, large_heads_fit_in_a_large_batch, 0, POOL_TYPES);
    tcase_add_loop_test(tests, a_prompt_is_causal, 0, POOL_TYPES);
    tcase_add_loop_test(tests, a_window_hides_what_is_before_it, 0, POOL_TYPES);
    ADD_IN_A_TYPE(scores_are_capped, 0);
    ADD_IN_A_TYPE(a_sink_takes_its_part_of_the_softmax_once, 1);
    ADD_IN_A_TYPE(sinks_are_not_capped, 2);
    ADD_IN_A_TYPE(one_plan_serves_layers_with_and_without_a_window, 0);
    ADD_IN_A_TYPE(dead_rows_alone_are_no_work, 1);
    tcase_add_loop_test(tests, what_comes_out_is_quantized_too, 0, POOL_TYPES);
    ADD_IN_A_TYPE(large_scores_are_as_good_as_small_ones, 2);
    ADD_IN_A_TYPE(a_row_has_the_same_bits_in_any_batch, 0);
    ADD_IN_A_TYPE(sinks_do_not_change_what_a_row_has_in_any_batch, 1);
    ADD_IN_A_TYPE(a_row_of_a_prompt_has_the_bits_that_it_has_alone, 2);
    tcase_add_loop_test(tests, without_memory_for_partial_results_the_bits_are_the_same, 0, POOL_TYPES);
    ADD_IN_A_TYPE(a_value_that_is_no_number_spoils_its_own_sequence_only, 0);
}

int main(void)
{
    return run_tests("attention", add);
}
