/* SPDX-License-Identifier: MIT */
/* Passes over a row of logits, against plain loops. */

#include "tests/unit/run.h"
#include "engine/sampling/logits.h"
#include "engine/sampling/sampling.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST 5000

static float logits[MOST];

/* Of n logits, some of which may be no numbers. */
static void fill(uint32_t n, double width, bool with_odd_ones)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, -0.0f, 0.0f, 1e-42f};
    for (uint32_t i = 0; i < n; i++) {
        logits[i] = (float)(((double)rand() / RAND_MAX * 2 - 1) * width);
        if (with_odd_ones && rand() % 40 == 0)
            logits[i] = odd[(uint32_t)rand() % (sizeof odd / sizeof *odd)];
    }
}

static uint32_t any_size(int round)
{
    return round < 40 ? (uint32_t)round : (uint32_t)rand() % MOST;
}

START_TEST(the_best_is_the_largest_finite_one_and_is_found_first)
{
    srand(3);
    for (int round = 0, rounds = test_rounds(400); round < rounds; round++) {
        const uint32_t n = any_size(round);
        float best = -INFINITY;
        uint32_t at = n;
        fill(n, 30, round % 2);
        for (uint32_t i = 0; i < n; i++)
            if (isfinite(logits[i]) && logits[i] > best)
                best = logits[i];
        for (uint32_t i = n; i-- > 0;)
            at = logits[i] == best ? i : at;
        ck_assert(logits_best(logits, n) == best);
        if (best > -INFINITY)
            ck_assert_uint_eq(logits_find(logits, n, best), at);
        ck_assert_uint_eq(logits_find(logits, n, 31), n);
    }
}
END_TEST

START_TEST(a_sum_of_exponentials_is_right_to_seven_digits)
{
    srand(4);
    for (int round = 0, rounds = test_rounds(300); round < rounds; round++) {
        const uint32_t n = any_size(round) + 1;
        double sum = 0;
        fill(n, round % 3 == 0 ? 0.01 : round % 3 == 1 ? 12 : 300, false);
        if (round % 2)
            logits[(uint32_t)rand() % n] = NAN;
        if (round % 5 == 0)
            logits[(uint32_t)rand() % n] = INFINITY;
        const float best = logits_best(logits, n);
        for (uint32_t i = 0; i < n; i++)
            sum += isfinite(logits[i]) ? exp((double)logits[i] - (double)best) : 0;
        if (best > -INFINITY)
            ck_assert_double_eq_tol(logits_sum_exp(logits, n, best) / sum, 1, 5e-7);
        else
            ck_assert_uint_le(n, 2);
    }
}
END_TEST

static double score_of(const struct contest *contest, float logit, uint32_t id)
{
    const uint32_t counter[4] = {(uint32_t)contest->position, (uint32_t)(contest->position >> 32), id / 4, 0},
                   seed[2] = {(uint32_t)contest->seed, (uint32_t)(contest->seed >> 32)};
    uint32_t random[4];
    philox4x32(counter, seed, random);
    return (double)((logit - contest->best) / contest->temperature) -
           log(-log(((double)random[id % 4] + 0.5) * 0x1p-32));
}

/* Whatever the highest score so far. Of those that could not, one in a hundred at most is let through. */
START_TEST(nobody_who_may_win_is_kept_from_the_contest)
{
    static const float temperatures[] = {1, 0.7f, 0.01f, 30, 1e-30f, 1e-42f};
    uint64_t n_let = 0, n_winners = 0, n_all = 0;
    srand(5);
    for (int round = 0; round < 600; round++) {
        const uint32_t n = round < 20 ? (uint32_t)round + 1 : 1 + (uint32_t)rand() % LOGITS_PIECE;
        const uint32_t first = (uint32_t)rand() % 50000 * 4;
        uint8_t may[LOGITS_PIECE];
        fill(n, round % 4 ? 12 : 0.5, round % 3 == 0);
        struct contest contest = {.seed = (uint64_t)rand() << 32 | (uint32_t)rand(),
                                  .position = (uint64_t)rand() << (round % 2 * 20),
                                  .best = logits_best(logits, n),
                                  .temperature = temperatures[round % 6],
                                  .least = round % 7 ? -FLT_MAX : 0.25f};
        if (contest.best == -INFINITY)
            continue;
        const double highest = (double)(rand() % 1000) / 50 - 4;
        contest.odds = exp(-highest);
        logits_contenders(logits, first, n, &contest, may);
        for (uint32_t i = 0; i < LOGITS_PIECE; i++) {
            const bool real = i < n && isfinite(logits[i]) && !(logits[i] < contest.least);
            const bool wins = real && score_of(&contest, logits[i], first + i) >= highest;
            ck_assert_msg(real || !may[i], "%u of %u is no candidate", i, n);
            ck_assert_msg(!wins || may[i], "id %u, %g, is kept out", first + i, (double)logits[i]);
            n_let += may[i];
            n_winners += wins;
            n_all += real;
        }
    }
    ck_assert_uint_gt(n_winners, 1000);
    ck_assert_msg(n_let < n_winners * 2 + n_all / 100, "%llu of %llu for %llu winners",
                  (unsigned long long)n_let, (unsigned long long)n_all, (unsigned long long)n_winners);
}
END_TEST

/* A row of which a filter keeps everything goes the way of rows with filters, id by id. */
START_TEST(a_filter_that_keeps_all_changes_nothing)
{
    struct sampler *sampler;
    uint32_t mask[MOST / 32 + 1];
    static struct token_use uses[MOST];
    srand(6);
    for (int round = 0, rounds = test_rounds(200); round < rounds; round++) {
        const uint32_t n = any_size(round) + 1;
        fill(n, round % 4 ? 8 : 0.1, round % 5 == 0);
        for (uint32_t i = 0; i <= n / 32; i++)
            mask[i] = round % 3 ? UINT32_MAX : (uint32_t)rand() * 2654435761u;
        for (uint32_t i = 0; i < n; i++)
            uses[i] = (struct token_use){(uint32_t)rand() % 2, (uint32_t)rand() % 50 == 0, 0};
        struct sampling without = SAMPLING_GREEDY;
        without.temperature = 0.05 + (double)(rand() % 40) / 10;
        without.seed = (uint64_t)rand();
        without.presence_penalty = round % 2 ? 0.5 : 0;
        struct sampling with = without, with_min = without;
        with.top_k = INT32_MAX;
        with_min.min_p = 0.2;
        struct sampling both = with_min;
        both.top_k = INT32_MAX;
        ck_assert_int_eq(sampler_new(n, &sampler), 0);
        for (uint64_t position = 0; position < 20; position++) {
            const struct sampler_row row = {
                .logits = logits, .position = position, .uses = uses, .mask = round % 3 ? NULL : mask};
            ck_assert_int_eq(sampler_sample(sampler, &without, &row), sampler_sample(sampler, &with, &row));
            ck_assert_int_eq(sampler_sample(sampler, &with_min, &row), sampler_sample(sampler, &both, &row));
        }
        sampler_free(sampler);
    }
}
END_TEST

/* Of all floats that a row of logits can make of itself, the likely ones more often. */
START_TEST(masses_are_what_expf_makes_of_every_logit)
{
    static float masses[MOST];
    static const float temperatures[] = {1, 0.7f, 30, 0.05f, 1e-30f, 1e-42f};
    srand(8);
    for (int round = 0, rounds = test_rounds(2000); round < rounds; round++) {
        const uint32_t n = any_size(round) + 1;
        const float temperature = temperatures[round % 6];
        uint64_t sum = 0;
        fill(n, round % 3 == 0 ? 14 * (double)temperature : round % 3 == 1 ? 1e-3 : 12, round % 4 == 0);
        const float best = logits_best(logits, n);
        if (best == -INFINITY)
            continue;
        const uint64_t total = logits_masses(logits, n, best, temperature, masses);
        for (uint32_t i = 0; i < n; i++) {
            const float x = (logits[i] - best) / temperature;
            const uint64_t mass = isfinite(logits[i]) ? (uint64_t)(expf(x) * 0x1p40f) : 0;
            ck_assert_msg((uint64_t)masses[i] == mass, "e^%a is %llu, not %a", (double)x,
                          (unsigned long long)mass, (double)masses[i]);
            sum += mass;
        }
        ck_assert_uint_eq(total, sum);
    }
}
END_TEST

START_TEST(parts_of_a_row_are_counted_summed_and_listed)
{
    static float masses[MOST];
    static uint32_t indices[MOST];
    srand(9);
    for (int round = 0, rounds = test_rounds(400); round < rounds; round++) {
        const uint32_t n = any_size(round) + 1;
        fill(n, round % 5 ? 12 : 0.01, round % 3 == 0);
        const float best = logits_best(logits, n);
        if (best == -INFINITY)
            continue;
        logits_masses(logits, n, best, 2, masses);
        const float any = logits[(uint32_t)rand() % n], other = logits[(uint32_t)rand() % n];
        const float least = isfinite(any) ? any : -FLT_MAX, below = other <= FLT_MAX ? other : INFINITY;
        uint32_t n_from = 0, n_between = 0;
        uint64_t mass = 0;
        const uint32_t n_listed = logits_between(logits, n, least, below, indices);
        for (uint32_t i = 0; i < n; i++) {
            const bool is_in = isfinite(logits[i]) && logits[i] >= least;
            n_from += is_in;
            mass += is_in ? (uint64_t)masses[i] : 0;
            if (is_in && logits[i] < below) {
                ck_assert_uint_lt(n_between, n_listed);
                ck_assert_uint_eq(indices[n_between++], i);
            }
        }
        ck_assert_uint_eq(n_listed, n_between);
        const struct logits_part part = logits_from(logits, masses, n, least);
        ck_assert_uint_eq(part.n, n_from);
        ck_assert_uint_eq(part.mass, mass);
    }
}
END_TEST

/* A top-k that keeps all sends a row the way of those that have one: every candidate in a list, and the
 * border found among all of them. */
static void compare_ways(struct sampler *sampler, const struct sampling *sampling,
                         const struct sampler_row *row)
{
    struct sampling listed = *sampling;
    listed.top_k = INT32_MAX;
    ck_assert_int_eq(sampler_sample(sampler, sampling, row), sampler_sample(sampler, &listed, row));
}

START_TEST(top_p_of_a_whole_row_is_that_of_a_list)
{
    enum { N = 20011 };
    static float row[N];
    static struct token_use uses[N];
    static uint32_t mask[N / 32 + 1];
    struct sampler *sampler;
    srand(10);
    ck_assert_int_eq(sampler_new(N, &sampler), 0);
    for (int round = 0, rounds = test_rounds(240); round < rounds; round++) {
        static const double widths[] = {0, 1e-6, 0.5, 3, 12, 60, 1e38};
        const double width = widths[round % 7];
        for (uint32_t i = 0; i < N; i++) {
            const double x = ((double)rand() / RAND_MAX * 2 - 1) * width;
            row[i] = (float)(round % 2 ? x : rint(x * 2) / 2); /* many ties, and none */
        }
        if (round % 3 == 0)
            row[(uint32_t)rand() % N] = (float)(width + 8); /* nearly all of the mass */
        if (round % 5 == 0)
            row[(uint32_t)rand() % N] = round % 2 ? NAN : INFINITY;
        for (uint32_t i = 0; i < N; i++)
            uses[i] = (struct token_use){(uint32_t)rand() % 2, (uint32_t)rand() % 50 == 0, 0};
        for (uint32_t i = 0; i <= N / 32; i++)
            mask[i] = (uint32_t)rand() * 2654435761u;
        struct sampling sampling = SAMPLING_GREEDY;
        static const double top_ps[] = {0.95, 0.5, 1e-9, 0.999999, 0.9999999999999999};
        sampling.temperature = (double[]){1, 0.3, 4, 1e-30}[rand() % 4];
        sampling.top_p = top_ps[rand() % 5];
        sampling.min_p = round % 4 ? 0 : 0.1;
        sampling.presence_penalty = round % 6 ? 0 : 0.5;
        for (uint64_t position = 0; position < 8; position++) {
            sampling.seed = (uint64_t)rand();
            compare_ways(
                sampler, &sampling,
                &(struct sampler_row){
                    .logits = row, .position = position, .uses = uses, .mask = round % 8 == 7 ? mask : NULL});
        }
    }
    sampler_free(sampler);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_best_is_the_largest_finite_one_and_is_found_first);
    tcase_add_test(tests, a_sum_of_exponentials_is_right_to_seven_digits);
    tcase_add_test(tests, nobody_who_may_win_is_kept_from_the_contest);
    tcase_add_test(tests, a_filter_that_keeps_all_changes_nothing);
    tcase_add_test(tests, masses_are_what_expf_makes_of_every_logit);
    tcase_add_test(tests, parts_of_a_row_are_counted_summed_and_listed);
    tcase_add_test(tests, top_p_of_a_whole_row_is_that_of_a_list);
}

int main(void)
{
    return run_tests("logits", add);
}
