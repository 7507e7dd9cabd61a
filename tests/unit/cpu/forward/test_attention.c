/* SPDX-License-Identifier: MIT */
/* Attention over the paged cache against the textbook in double, on every build of the kernels. */

#include "cpu/forward/attention.h"
#include "cpu/forward/rotary.h"
#include "model/frequencies.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/random_weights.h"
#include "tests/unit/cpu/tested_kernels.h"

#include <errno.h>
#include <math.h>

#define N_TOKENS 110
#define N_BLOCKS 8

struct scene {
    struct memory memory;
    struct kv kv;
    uint32_t group, n_heads, dim;
    uint32_t window;
    float cap;
    float keys[N_TOKENS][2 * 40], values[N_TOKENS][2 * 40]; /* as stored: rounded to half precision */
    float queries[N_TOKENS][6 * 40], out[N_TOKENS][6 * 40];
    uint32_t table[4], *tables[1];
};

static float rounded(float x)
{
    return format_f16_to_f32(format_f32_to_f16(x));
}

static struct scene *make_scene_of(const struct kernels *kernels, uint32_t dim, enum backend_kv_type type)
{
    struct scene *s = calloc(1, sizeof *s);
    struct model_params params = {.n_layers = 2, .n_heads = 6, .n_kv_heads = 2, .head_dim = dim};
    const struct model model = {.params = params};
    const struct kv_config config = {.model = &model, .type = type, .n_blocks = N_BLOCKS};
    ck_assert_int_eq(kv_init(&s->kv, &config, &s->memory, NULL), 0);
    /* What other sequences left behind: not even finite. */
    for (size_t i = 0; i < N_BLOCKS * s->kv.groups[0].block_bytes / 2; i++)
        ((uint16_t *)s->kv.pools[0])[i] = 0x7e00;
    s->tables[0] = s->table;
    s->dim = dim;
    s->group = 3;
    s->n_heads = 6;
    memcpy(s->table, (uint32_t[]){5, 0, 7, 2}, sizeof s->table);
    for (uint32_t t = 0; t < N_TOKENS; t++) {
        for (uint32_t i = 0; i < 2 * dim; i++) {
            s->keys[t][i] = rounded(random_float() * 2);
            s->values[t][i] = rounded(random_float());
        }
        for (uint32_t i = 0; i < s->n_heads * dim; i++)
            s->queries[t][i] = random_float();
        kv_store(&s->kv, kernels, s->table[t / 32], 1, t % 32, s->keys[t], s->values[t]);
    }
    return s;
}

static struct scene *make_scene(const struct kernels *kernels, uint32_t dim)
{
    return make_scene_of(kernels, dim, BACKEND_KV_F16);
}

static void free_scene(struct scene *s)
{
    memory_deinit(&s->memory);
    free(s);
}

static void attend_in_parts(struct scene *s, const struct kernels *kernels, uint32_t first, uint32_t n,
                            uint32_t together)
{
    float *scratch = malloc(attention_scratch(&s->kv.layers[1], s->group) * sizeof *scratch);
    struct attention_task task = {.tables = s->tables,
                                  .position = first,
                                  .n_rows = n,
                                  .queries = s->queries[first],
                                  .query_stride = 6 * 40,
                                  .out = s->out[first],
                                  .out_stride = 6 * 40};
    struct attention attention = {
        .kv = &s->kv, .kernels = kernels, .layer = 1, .group = s->group, .window = s->window, .cap = s->cap};
    for (uint32_t h = 0; h < 2; h++)
        for (uint32_t part = 0; part < s->group; part += together)
            attention_run(&attention, &task, h * s->group + part,
                          s->group - part < together ? s->group - part : together, scratch);
    free(scratch);
}

static void attend(struct scene *s, const struct kernels *kernels, uint32_t first, uint32_t n)
{
    attend_in_parts(s, kernels, first, n, s->group);
}

/* Numbers of a scene in double: converted once, because an emulator does it in software. */
struct textbook {
    double keys[N_TOKENS][2 * 40], values[N_TOKENS][2 * 40];
};

static void check_row(const struct scene *s, const struct textbook *textbook, uint32_t t)
{
    uint32_t from = s->window && t >= s->window ? t - s->window + 1 : 0;
    for (uint32_t h = 0; h < s->n_heads; h++) {
        uint32_t kv_at = h / s->group * s->dim;
        double query[40], sums[40] = {0}, total = 0;
        for (uint32_t d = 0; d < s->dim; d++)
            query[d] = (double)s->queries[t][h * s->dim + d];
        for (uint32_t i = from; i <= t; i++) {
            double score = 0;
            for (uint32_t d = 0; d < s->dim; d++)
                score += query[d] * textbook->keys[i][kv_at + d];
            const double weight = exp(s->cap > 0 ? s->cap * tanh(score / s->cap) : score);
            total += weight;
            for (uint32_t d = 0; d < s->dim; d++)
                sums[d] += weight * textbook->values[i][kv_at + d];
        }
        for (uint32_t d = 0; d < s->dim; d++)
            /* Scores and their exponentials are rounded to float; a cap multiplies the rounding of a tanh. */
            ck_assert_double_eq_tol((double)s->out[t][h * s->dim + d], sums[d] / total, 4e-6 + 1e-7 * s->cap);
    }
}

static void check_all(struct scene *s, const struct kernels *kernels)
{
    for (uint32_t first = 0; first < N_TOKENS; first += ATTENTION_TILE)
        attend(s, kernels, first, N_TOKENS - first < ATTENTION_TILE ? N_TOKENS - first : ATTENTION_TILE);
    struct textbook *textbook = calloc(1, sizeof *textbook);
    for (uint32_t t = 0; t < N_TOKENS; t++)
        for (uint32_t i = 0; i < 2 * s->dim; i++) {
            textbook->keys[t][i] = (double)s->keys[t][i];
            textbook->values[t][i] = (double)s->values[t][i];
        }
    for (uint32_t t = 0; t < N_TOKENS; t++)
        check_row(s, textbook, t);
    free(textbook);
}

START_TEST(attention_is_the_weighted_mean_of_what_a_row_may_see)
{
    static const struct {
        uint32_t dim, window;
        float cap;
    } cases[] = {{8, 0, 0},  {10, 0, 0},  {32, 0, 0},  {40, 0, 0}, {16, 1, 0},
                 {24, 7, 0}, {32, 32, 3}, {40, 33, 0}, {8, 75, 1}, {8, 1000, 50}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct kernels *kernels = tested_kernels((uint32_t)_i);
        struct scene *s = make_scene(kernels, cases[i].dim);
        s->window = cases[i].window;
        s->cap = cases[i].cap;
        check_all(s, kernels);
        free_scene(s);
    }
}
END_TEST

START_TEST(a_row_gives_the_same_bits_whatever_tile_it_is_in)
{
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    struct scene *s = make_scene(kernels, 40);
    s->window = _i % 2 ? 0 : 41;
    for (uint32_t t = 0; t < N_TOKENS; t++)
        attend(s, kernels, t, 1);
    struct scene *alone = malloc(sizeof *alone);
    memcpy(alone, s, sizeof *alone);
    for (uint32_t tile = 2; tile <= ATTENTION_TILE; tile += 15) {
        memset(s->out, 0, sizeof s->out);
        for (uint32_t first = 0; first < N_TOKENS; first += tile)
            attend(s, kernels, first, N_TOKENS - first < tile ? N_TOKENS - first : tile);
        ck_assert_mem_eq(s->out, alone->out, sizeof s->out);
    }
    free(alone);
    free_scene(s);
}
END_TEST

START_TEST(a_head_gives_the_same_bits_whichever_it_comes_with)
{
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    struct scene *s = make_scene(kernels, 40), *whole = malloc(sizeof *whole);
    s->window = _i % 2 ? 33 : 0;
    for (uint32_t n = 1; n <= ATTENTION_TILE; n += 31) {
        const uint32_t first = N_TOKENS - n;
        attend(s, kernels, first, n);
        memcpy(whole, s, sizeof *whole);
        for (uint32_t together = 1; together < s->group; together++) {
            memset(s->out, 0, sizeof s->out);
            attend_in_parts(s, kernels, first, n, together);
            ck_assert_mem_eq(s->out[first], whole->out[first], n * sizeof s->out[0]);
        }
    }
    free(whole);
    free_scene(s);
}
END_TEST

START_TEST(heads_are_divided_where_threads_would_have_nothing_to_do)
{
    static const struct {
        uint32_t group, n, n_threads, together;
    } cases[] = {
        {4, 8, 1, 4},  {4, 8, 2, 4}, {4, 8, 8, 4},   {4, 1, 2, 2},    {4, 1, 16, 1},
        {6, 2, 16, 1}, {6, 2, 4, 3}, {4, 8, 16, 2},  {4, 8, 12, 4},   {4, 8, 64, 1},
        {1, 8, 64, 1}, {3, 1, 2, 2}, {4, 64, 16, 4}, {4, 1000, 7, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(attention_heads_together(cases[i].group, cases[i].n, cases[i].n_threads) ==
                          cases[i].together,
                      "%u of %u, %u tasks on %u threads",
                      attention_heads_together(cases[i].group, cases[i].n, cases[i].n_threads),
                      cases[i].group, cases[i].n, cases[i].n_threads);
}
END_TEST

START_TEST(pairs_turn_by_their_frequency)
{
    struct rotary rotary = {.kind = _i ? ROTARY_HALVES : ROTARY_PAIRS,
                            .dims = 6,
                            .base = 10000,
                            .scaling = ROTARY_LINEAR,
                            .factor = 2,
                            .magnitude = 1.5f};
    const float factors[] = {1, 4, 0.5f};
    double frequencies[3];
    float cos_sin[6], heads[2][8], before[2][8];
    rotary_frequencies(&rotary, factors, frequencies);
    rotary_angles(&rotary, frequencies, 1234, cos_sin);
    for (int i = 0; i < 16; i++)
        heads[i / 8][i % 8] = before[i / 8][i % 8] = random_float();
    rotary_turn(&rotary, heads[0], 2, 8, cos_sin);
    for (int h = 0; h < 2; h++) {
        for (int i = 0; i < 3; i++) {
            int a = _i ? i : 2 * i, b = _i ? i + 3 : 2 * i + 1;
            double angle = 1234 / 2.0 / (double)factors[i] * pow(10000, -2.0 * i / 6);
            double x = (double)before[h][a], y = (double)before[h][b];
            ck_assert_double_eq_tol((double)heads[h][a], 1.5 * (x * cos(angle) - y * sin(angle)), 1e-6);
            ck_assert_double_eq_tol((double)heads[h][b], 1.5 * (x * sin(angle) + y * cos(angle)), 1e-6);
        }
        ck_assert_float_eq(heads[h][6], before[h][6]);
        ck_assert_float_eq(heads[h][7], before[h][7]);
    }
}
END_TEST

/* What was read back becomes what the textbook is told. */
static void read_back(struct scene *s, const struct kernels *kernels)
{
    float keys[40 * 32], values[32 * 40];
    for (uint32_t first = 0; first < N_TOKENS; first += 32)
        for (uint32_t h = 0; h < 2; h++) {
            kv_load(&s->kv, kernels, s->table[first / 32], 1, h, keys, values);
            for (uint32_t t = first; t < N_TOKENS && t < first + 32; t++)
                for (uint32_t d = 0; d < s->dim; d++) {
                    s->keys[t][h * s->dim + d] = keys[d * 32 + t % 32];
                    s->values[t][h * s->dim + d] = values[t % 32 * s->kv.layers[1].value_dim + d];
                }
        }
}

START_TEST(numbers_in_8_bits_are_within_half_a_step)
{
    static const uint32_t dims[] = {8, 10, 32, 33, 40};
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        struct scene *s = make_scene_of(kernels, dims[i], BACKEND_KV_Q8), *before = malloc(sizeof *before);
        memcpy(before, s, sizeof *s);
        read_back(s, kernels);
        for (uint32_t t = 0; t < N_TOKENS; t++)
            for (uint32_t d = 0; d < 2 * dims[i]; d++) { /* the largest are below 2 and 1 */
                ck_assert_float_eq_tol(s->keys[t][d], before->keys[t][d], 2.01f / 127 / 2);
                ck_assert_float_eq_tol(s->values[t][d], before->values[t][d], 1.01f / 127 / 2);
            }
        check_all(s, kernels);
        free(before);
        free_scene(s);
    }
}
END_TEST

START_TEST(floats_come_back_as_they_were_and_bfloats_rounded)
{
    static const uint32_t dims[] = {8, 10, 40};
    static const enum backend_kv_type types[] = {BACKEND_KV_F32, BACKEND_KV_BF16};
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    for (size_t i = 0; i < sizeof dims / sizeof *dims * 2; i++) {
        const uint32_t dim = dims[i / 2];
        const bool rounds = types[i % 2] == BACKEND_KV_BF16;
        struct scene *s = make_scene_of(kernels, dim, types[i % 2]), *before = malloc(sizeof *before);
        for (uint32_t t = 0; t < N_TOKENS; t++) { /* numbers that half precision has not */
            for (uint32_t d = 0; d < 2 * dim; d++) {
                s->keys[t][d] = random_float() * 2;
                s->values[t][d] = random_float() * 1e-6f;
            }
            kv_store(&s->kv, kernels, s->table[t / 32], 1, t % 32, s->keys[t], s->values[t]);
        }
        memcpy(before, s, sizeof *s);
        read_back(s, kernels);
        for (uint32_t t = 0; t < N_TOKENS; t++)
            for (uint32_t d = 0; d < 2 * dim; d++) {
                const float key = before->keys[t][d], value = before->values[t][d];
                ck_assert_float_eq(s->keys[t][d], rounds ? format_bf16_to_f32(format_f32_to_bf16(key)) : key);
                ck_assert_float_eq(s->values[t][d],
                                   rounds ? format_bf16_to_f32(format_f32_to_bf16(value)) : value);
            }
        check_all(s, kernels);
        free(before);
        free_scene(s);
    }
}
END_TEST

/* Of 16 steps eight are below zero and seven above, or the other way round: what is as far from zero as the
 * farthest, but on the other side, is a whole step off. */
START_TEST(numbers_in_4_bits_are_within_half_a_step_or_one_at_the_end)
{
    static const uint32_t dims[] = {8, 10, 32, 33, 40};
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        struct scene *s = make_scene_of(kernels, dims[i], BACKEND_KV_Q4), *before = malloc(sizeof *before);
        memcpy(before, s, sizeof *s);
        read_back(s, kernels);
        for (uint32_t t = 0; t < N_TOKENS; t++)
            for (uint32_t d = 0; d < 2 * dims[i]; d++) { /* the largest are below 2 and 1 */
                const float key = before->keys[t][d], value = before->values[t][d];
                ck_assert_float_eq_tol(s->keys[t][d], key, 2.02f / 8 / (fabsf(key) < 0.9f ? 2 : 1));
                ck_assert_float_eq_tol(s->values[t][d], value, 1.01f / 8 / (fabsf(value) < 0.45f ? 2 : 1));
            }
        check_all(s, kernels);
        free(before);
        free_scene(s);
    }
}
END_TEST

/* Steps that the numbers have already: nothing is rounded, whichever sign the farthest has. */
START_TEST(numbers_that_are_steps_in_4_bits_come_back)
{
    const struct kernels *kernels = tested_kernels((uint32_t)_i);
    struct scene *s = make_scene_of(kernels, 40, BACKEND_KV_Q4);
    float keys[40 * 32], values[32 * 40], row[2 * 40];
    for (int sign = -1; sign < 2; sign += 2)
        for (uint32_t t = 0; t < 32; t++) {
            for (int d = 0; d < 80; d++)
                row[d] = (float)(sign * ((d + (int)t) % 16 - 8)) * 0.25f;
            row[32] = row[72] = (float)(sign * -8) * 0.25f; /* the last eight of a head have a scale too */
            kv_store(&s->kv, kernels, 0, 0, t, row, row);
            kv_load(&s->kv, kernels, 0, 0, 1, keys, values);
            for (uint32_t d = 0; d < 40; d++) {
                ck_assert_float_eq(keys[d * 32 + t], row[40 + d]);
                ck_assert_float_eq(values[t * 40 + d], row[40 + d]);
            }
        }
    free_scene(s);
}
END_TEST

static void check_neighbours_stay(const struct kernels *kernels, enum backend_kv_type type, float off)
{
    struct scene *one = make_scene_of(kernels, 40, type);
    float keys[2][40 * 32], values[2][32 * 40], large[2 * 40];
    kv_load(&one->kv, kernels, one->table[1], 1, 1, keys[0], values[0]);
    for (int i = 0; i < 80; i++)
        large[i] = 1e4f * random_float();
    kv_store(&one->kv, kernels, one->table[1], 1, 6, large, large);
    kv_load(&one->kv, kernels, one->table[1], 1, 1, keys[1], values[1]);
    for (uint32_t t = 0; t < 32; t++)
        for (uint32_t d = 0; d < 40 && t != 6; d++) {
            ck_assert_float_eq(keys[0][d * 32 + t], keys[1][d * 32 + t]);
            ck_assert_float_eq(values[0][t * 40 + d], values[1][t * 40 + d]);
        }
    ck_assert_float_eq_tol(keys[1][6], large[40], off); /* the second head */
    free_scene(one);
}

START_TEST(a_token_in_few_bits_is_the_same_whatever_is_beside_it)
{
    check_neighbours_stay(tested_kernels((uint32_t)_i), BACKEND_KV_Q8, 1e4f / 127 / 2 + 3);
    check_neighbours_stay(tested_kernels((uint32_t)_i), BACKEND_KV_Q4, 1e4f / 8 + 3);
}
END_TEST

static void check_faults_stay(const struct kernels *kernels, enum backend_kv_type type)
{
    static const float faults[] = {INFINITY, -INFINITY, NAN, 3e38f};
    struct scene *s = make_scene_of(kernels, 40, type);
    float keys[40 * 32], values[32 * 40], row[2 * 40] = {0};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        row[3] = faults[i];
        kv_store(&s->kv, kernels, 0, 0, 5, row, row);
        kv_load(&s->kv, kernels, 0, 0, 0, keys, values);
        ck_assert(isnan(keys[3 * 32 + 5]) && isnan(values[5 * 40 + 3]));
        ck_assert_float_eq(keys[33 * 32 + 5], 0); /* of another scale */
    }
    free_scene(s);
}

START_TEST(what_is_not_finite_stays_visible_in_few_bits)
{
    check_faults_stay(tested_kernels((uint32_t)_i), BACKEND_KV_Q8);
    check_faults_stay(tested_kernels((uint32_t)_i), BACKEND_KV_Q4);
}
END_TEST

/* Blocks as asked, or else what so many slots of a block each want. */
static int take(struct kv *kv, const struct model_params *params, uint32_t n_blocks, uint32_t n_slots,
                struct memory *memory, struct error *err)
{
    const struct model model = {.params = *params};
    const struct kv_config config = {
        .model = &model, .n_blocks = n_blocks, .n_slots = n_slots, .n_context = 32, .max_rows = 32};
    return kv_init(kv, &config, memory, err);
}

START_TEST(a_pool_beyond_memory_is_refused_with_both_numbers)
{
    struct model_params params = {.n_layers = 1000, .n_heads = 64, .n_kv_heads = 64, .head_dim = 128};
    struct memory memory = {0};
    struct kv kv;
    struct error err = {0};
    ck_assert_int_eq(take(&kv, &params, 4000000000u, 0, &memory, &err), -E2BIG);
    ck_assert_ptr_nonnull(strstr(err.text, "4000000000 KV blocks of 1000 MiB"));
    memory.n_sharers = 4000000; /* each would have a block, all together not */
    ck_assert_int_eq(take(&kv, &params, 1, 0, &memory, &err), -ENOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "each of 4000000 workers"));
    struct available available; /* the other's weights need as much as these */
    ck_assert_int_eq(available_read("", &available), 0);
    memory = (struct memory){.total = available.total / 2, .n_sharers = 2};
    params.n_layers = 1;
    ck_assert_int_eq(take(&kv, &params, 1, 0, &memory, &err), -ENOMEM);
    params.n_layers = 1000;
    memory = (struct memory){0};
    ck_assert_int_eq(take(&kv, &params, 0, 4000000000u, &memory, &err), 0);
    ck_assert_uint_ge(kv.groups[0].n_blocks, 1);
    ck_assert_uint_lt(kv.groups[0].n_blocks, 4000000000u);
    memory_deinit(&memory);
}
END_TEST

static void add(TCase *tests)
{
    int n = 0;
    while (tested_kernels((uint32_t)n))
        n++;
    tcase_add_loop_test(tests, attention_is_the_weighted_mean_of_what_a_row_may_see, 0, n);
    tcase_add_loop_test(tests, a_row_gives_the_same_bits_whatever_tile_it_is_in, 0, n);
    tcase_add_loop_test(tests, a_head_gives_the_same_bits_whichever_it_comes_with, 0, n);
    tcase_add_test(tests, heads_are_divided_where_threads_would_have_nothing_to_do);
    tcase_add_loop_test(tests, numbers_in_8_bits_are_within_half_a_step, 0, n);
    tcase_add_loop_test(tests, floats_come_back_as_they_were_and_bfloats_rounded, 0, n);
    tcase_add_loop_test(tests, numbers_in_4_bits_are_within_half_a_step_or_one_at_the_end, 0, n);
    tcase_add_loop_test(tests, numbers_that_are_steps_in_4_bits_come_back, 0, n);
    tcase_add_loop_test(tests, a_token_in_few_bits_is_the_same_whatever_is_beside_it, 0, n);
    tcase_add_loop_test(tests, what_is_not_finite_stays_visible_in_few_bits, 0, n);
    tcase_add_loop_test(tests, pairs_turn_by_their_frequency, 0, 2);
    tcase_add_test(tests, a_pool_beyond_memory_is_refused_with_both_numbers);
}

int main(void)
{
    return run_tests("attention", add);
}
