/* SPDX-License-Identifier: MIT */
/* Passes over a row of logits, against plain loops. */

#include "tests/unit/run.h"
#include "worker/engine/logits.h"
#include "worker/engine/sampling.h"

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
    for (int round = 0; round < 400; round++) {
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
    for (int round = 0; round < 300; round++) {
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
                                  .temperature = temperatures[round % 6]};
        if (contest.best == -INFINITY)
            continue;
        const double highest = (double)(rand() % 1000) / 50 - 4;
        contest.odds = exp(-highest);
        logits_contenders(logits, first, n, &contest, may);
        for (uint32_t i = 0; i < LOGITS_PIECE; i++) {
            const bool real = i < n && isfinite(logits[i]);
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
    for (int round = 0; round < 200; round++) {
        const uint32_t n = any_size(round) + 1;
        fill(n, round % 4 ? 8 : 0.1, round % 5 == 0);
        for (uint32_t i = 0; i <= n / 32; i++)
            mask[i] = round % 3 ? UINT32_MAX : (uint32_t)rand() * 2654435761u;
        for (uint32_t i = 0; i < n; i++)
            uses[i] = (struct token_use){(uint32_t)rand() % 2, (uint32_t)rand() % 50 == 0};
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

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_best_is_the_largest_finite_one_and_is_found_first);
    tcase_add_test(tests, a_sum_of_exponentials_is_right_to_seven_digits);
    tcase_add_test(tests, nobody_who_may_win_is_kept_from_the_contest);
    tcase_add_test(tests, a_filter_that_keeps_all_changes_nothing);
}

int main(void)
{
    return run_tests("logits", add);
}
