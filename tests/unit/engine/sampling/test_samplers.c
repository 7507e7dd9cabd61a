/* SPDX-License-Identifier: MIT */
/* DRY, XTC, typical-p, top-nσ, dynamic temperature, windows and bad words against plain implementations in
 * double, written from their definitions, and against hand cases. */

#include "tests/unit/run.h"
#include "engine/sampling/dry.h"
#include "engine/sampling/sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N 40

static const struct sampling plain = {.temperature = 1, SAMPLING_OFF};

static int32_t sample_with(const float *logits, uint32_t n, const struct sampling *sampling,
                           const struct sampler_row *row)
{
    struct sampler *sampler;
    struct sampler_row of = *row;
    ck_assert_int_eq(sampler_new(n, &sampler), 0);
    of.logits = logits;
    int32_t id = sampler_sample(sampler, sampling, &of);
    sampler_free(sampler);
    return id;
}

/* Which ids ever come in `draws` positions: none beyond 63. */
static uint64_t support(const float *logits, uint32_t n, const struct sampling *sampling, uint32_t draws)
{
    struct sampler *sampler;
    uint64_t seen = 0;
    ck_assert_int_eq(sampler_new(n, &sampler), 0);
    for (uint32_t i = 0; i < draws; i++) {
        int32_t id =
            sampler_sample(sampler, sampling, &(struct sampler_row){.logits = logits, .position = i});
        ck_assert(id >= 0 && id < 64);
        seen |= 1ull << id;
    }
    sampler_free(sampler);
    return seen;
}

/* ---- the definitions ---- */

/* p[i] of those that are left, 0 of others; `scale` divides the logits. */
static void softmax(const float *logits, const bool *left, uint32_t n, double scale, double *ret_p)
{
    double best = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        best = left[i] && (double)logits[i] > best ? (double)logits[i] : best;
    for (uint32_t i = 0; i < n; i++)
        sum += ret_p[i] = left[i] ? exp(((double)logits[i] - best) / scale) : 0;
    for (uint32_t i = 0; i < n; i++)
        ret_p[i] /= sum;
}

static double entropy_of(const double *p, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum -= p[i] > 0 ? p[i] * log(p[i]) : 0;
    return sum;
}

/* Takes ids by rising cost until their probabilities sum to `share`. */
static void take_by_cost(const double *p, const double *cost, uint32_t n, double share, bool *left)
{
    bool taken[N] = {false};
    double sum = 0;
    while (sum < share) {
        uint32_t next = n;
        for (uint32_t i = 0; i < n; i++)
            if (left[i] && !taken[i] && (next == n || cost[i] < cost[next]))
                next = i;
        if (next == n)
            break;
        taken[next] = true;
        sum += p[next];
    }
    for (uint32_t i = 0; i < n; i++)
        left[i] &= taken[i];
}

static void leave_sigma(const float *logits, uint32_t n, double n_sigma, bool *left)
{
    double sum = 0, squares = 0, best = -INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        sum += (double)logits[i];
        best = fmax(best, (double)logits[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        squares += pow((double)logits[i] - sum / n, 2);
    for (uint32_t i = 0; i < n; i++)
        left[i] &= (double)logits[i] >= best - n_sigma * sqrt(squares / n);
}

static void leave_xtc(const double *p, uint32_t n, double threshold, bool *left)
{
    uint32_t last = n, above = 0;
    for (uint32_t i = 0; i < n; i++)
        if (left[i] && p[i] >= threshold) {
            above++;
            last = last == n || p[i] < p[last] ? i : last;
        }
    for (uint32_t i = 0; i < n && above > 1; i++)
        left[i] &= p[i] < threshold || i == last;
}

/* The temperature of a dynamic one. */
static double temperature_of(const float *logits, const bool *left, uint32_t n, const struct sampling *s)
{
    double p[N], low = fmax(0, s->temperature - s->dynatemp_range);
    uint32_t size = 0;
    softmax(logits, left, n, 1, p);
    for (uint32_t i = 0; i < n; i++)
        size += left[i];
    if (s->dynatemp_range <= 0 || size < 2)
        return s->temperature;
    return low + (s->temperature + s->dynatemp_range - low) *
                     pow(entropy_of(p, n) / log(size), s->dynatemp_exponent);
}

/* What all filters leave, XTC included, and with which probabilities. */
static void leave_plainly(const float *logits, uint32_t n, const struct sampling *s, double *ret_p)
{
    bool left[N];
    double p[N], cost[N];
    memset(left, true, sizeof left);
    if (s->top_n_sigma > 0)
        leave_sigma(logits, n, s->top_n_sigma, left);
    for (uint32_t i = 0; i < n; i++)
        cost[i] = -(double)logits[i];
    for (uint32_t i = 0; i < n; i++)
        p[i] = 1;
    if (s->top_k > 0)
        take_by_cost(p, cost, n, s->top_k, left);
    const double scale = temperature_of(logits, left, n, s);
    softmax(logits, left, n, scale, p);
    if (s->typical_p < 1) {
        double typical[N];
        for (uint32_t i = 0; i < n; i++)
            typical[i] = left[i] ? fabs(-log(p[i]) - entropy_of(p, n)) : 0;
        take_by_cost(p, typical, n, s->typical_p, left);
        softmax(logits, left, n, scale, p);
    }
    if (s->top_p < 1)
        take_by_cost(p, cost, n, s->top_p, left);
    softmax(logits, left, n, scale, p);
    double most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = fmax(most, p[i]);
    for (uint32_t i = 0; i < n; i++)
        left[i] &= p[i] >= s->min_p * most;
    softmax(logits, left, n, scale, p);
    if (s->xtc_probability >= 1)
        leave_xtc(p, n, s->xtc_threshold, left);
    softmax(logits, left, n, scale, ret_p);
}

static double share(void)
{
    return 0.05 + rand() % 90 / 100.0;
}

/* Counts of draws from random parameters lie within six standard deviations of the definitions'
 * probabilities, and what these leave out never comes. */
START_TEST(filters_leave_what_their_definitions_say)
{
    enum { DRAWS = 3000 };
    srand(23);
    for (int round = 0, rounds = test_rounds(300); round < rounds; round++) {
        float logits[N];
        double p[N];
        uint32_t counts[N] = {0};
        const uint32_t n = 2 + (uint32_t)rand() % (N - 1);
        for (uint32_t i = 0; i < n; i++)
            logits[i] = (float)rand() / (float)RAND_MAX * 8;
        struct sampling s = plain;
        s.seed = (uint64_t)rand();
        s.temperature = 0.3 + rand() % 20 / 10.0;
        s.top_n_sigma = rand() % 3 ? 0 : 0.3 + rand() % 20 / 10.0;
        s.top_k = rand() % 3 ? 0 : 2 + rand() % N;
        s.dynatemp_range = rand() % 3 ? 0 : 0.05 + rand() % 20 / 10.0;
        s.dynatemp_exponent = rand() % 2 ? 1 : 0.5 + rand() % 3;
        s.typical_p = rand() % 2 ? 1 : share();
        s.top_p = rand() % 3 ? 1 : share();
        s.min_p = rand() % 3 ? 0 : share() / 4;
        s.xtc_probability = rand() % 2;
        s.xtc_threshold = share() / 3;
        leave_plainly(logits, n, &s, p);
        struct sampler *sampler;
        ck_assert_int_eq(sampler_new(n, &sampler), 0);
        for (uint64_t i = 0; i < DRAWS; i++)
            counts[sampler_sample(sampler, &s, &(struct sampler_row){.logits = logits, .position = i})]++;
        for (uint32_t i = 0; i < n; i++) {
            const double expected = DRAWS * p[i], apart = fabs(counts[i] - expected);
            ck_assert_msg(p[i] > 0 ? apart <= 6 * sqrt(expected * (1 - p[i])) + 6 : counts[i] == 0,
                          "round %d: id %u came %u times, not %g", round, i, counts[i], expected);
        }
        sampler_free(sampler);
    }
}
END_TEST

START_TEST(xtc_happens_as_often_as_it_is_asked_for_and_depends_on_seed_and_position)
{
    const float logits[] = {logf(0.6f), logf(0.3f), logf(0.1f)};
    struct sampling s = plain;
    s.xtc_probability = 0.25;
    s.xtc_threshold = 0.2; /* 0.6 goes when it happens, and 0.3 stays */
    unsigned excluded = 0, by_seed = 0;
    struct sampling cold = s;
    cold.temperature = 0.2;
    cold.xtc_threshold = 0.001;
    for (uint64_t i = 0; i < 8000; i++) {
        const struct sampler_row row = {.position = i};
        const int32_t id = sample_with(logits, 3, &s, &row);
        ck_assert_int_eq(sample_with(logits, 3, &s, &row), id);
        excluded += id != 0;
        struct sampling other = s;
        other.seed = 77;
        by_seed += sample_with(logits, 3, &other, &row) != id;
    }
    /* 0.75 · 0.4 + 0.25 · 1 of the draws are another; 6 σ are 267 */
    ck_assert_uint_gt(excluded, 4400 - 267);
    ck_assert_uint_lt(excluded, 4400 + 267);
    ck_assert_uint_gt(by_seed, 2000);
    /* Of several above the threshold only the least likely stays. */
    cold.xtc_probability = 1;
    cold.xtc_threshold = 0.0001;
    ck_assert_uint_eq(support(logits, 3, &cold, 300), 1u << 2);
}
END_TEST

/* Top-k or min-p alone find their candidates without a look at the others, where the vocabulary is large. */
START_TEST(the_deviation_is_that_of_all_logits_whatever_filter_comes_next)
{
    enum { LARGE = 4096 };
    static float logits[LARGE];
    for (uint32_t i = 0; i < LARGE; i++)
        logits[i] = i < 64 ? 7 : i % 2 ? 4 : -4; /* a deviation of 4; of the first 64 alone, of 0.5 */
    logits[0] = 10;
    logits[32] = 9;
    const uint64_t both = 1ull << 32 | 1, best = 1;
    struct sampling s = plain;
    s.top_n_sigma = 1;
    s.top_k = 2;
    ck_assert_uint_eq(support(logits, LARGE, &s, 300), both);
    s.top_n_sigma = 0.2;
    ck_assert_uint_eq(support(logits, LARGE, &s, 300), best);
    s = plain;
    s.top_n_sigma = 1;
    s.temperature = 0.5;
    s.min_p = 0.01;
    ck_assert_uint_eq(support(logits, LARGE, &s, 300), both);
    s.top_n_sigma = 0.2;
    ck_assert_uint_eq(support(logits, LARGE, &s, 300), best);
}
END_TEST

START_TEST(greedy_takes_the_likeliest_whatever_filters_are_on)
{
    const float logits[] = {1, 3, 2};
    struct sampling s = plain;
    s.temperature = 0;
    s.xtc_probability = 1;
    s.xtc_threshold = 0;
    s.typical_p = 0.1;
    s.dynatemp_range = 1;
    ck_assert_int_eq(sample_with(logits, 3, &s, &(struct sampler_row){.position = 1}), 1);
    s.temperature = 1;
    s.top_k = 1;
    ck_assert_int_eq(sample_with(logits, 3, &s, &(struct sampler_row){.position = 1}), 1);
}
END_TEST

/* ---- DRY ---- */

/* The longest repeat that `id` would continue, by its definition: the largest L such that the last L ids
 * stand earlier too, before an id; within the last `window`, and behind the last breaker. */
static uint32_t repeat_of(const int32_t *ids, uint32_t n, uint32_t window, uint32_t breaker, int32_t id)
{
    uint32_t longest = 0, first = n > window ? n - window : 0, most = 0;
    while (most < DRY_LONGEST && most < n - first && (uint32_t)ids[n - 1 - most] != breaker)
        most++;
    for (uint32_t at = first + 1; at < n; at++) { /* ids[at] would be continued with */
        uint32_t length = 0;
        if (ids[at] != id)
            continue;
        while (length < most && at - length > first && ids[at - 1 - length] == ids[n - 1 - length])
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

START_TEST(dry_penalizes_what_continues_a_repeat_by_its_length)
{
    enum { IDS = 6 };
    srand(31);
    for (int round = 0, rounds = test_rounds(500); round < rounds; round++) {
        int32_t ids[80];
        uint16_t lengths[IDS] = {0};
        const uint32_t n = 1 + (uint32_t)rand() % 80, breaker = round % 2 ? 0 : 99;
        const uint32_t windows[] = {1, 2, 9, 40, 1000}, window = windows[rand() % 5];
        const uint32_t mask = 1u << 0;
        for (uint32_t i = 0; i < n; i++)
            ids[i] = rand() % 5 ? (int32_t)i % 4 : rand() % IDS;
        struct sampling s = plain;
        s.dry_multiplier = 0.8;
        s.dry_base = 1.5;
        s.dry_allowed_length = 1 + rand() % 4;
        s.dry_penalty_last_n = rand() % 4 ? (int32_t)window : -1;
        if (breaker == 0)
            s.dry_breakers = (struct dry_breakers){.mask = &mask, .n_words = 1};
        const struct ids_view history = {ids, n};
        bool any = dry_mark(&s, history, IDS, lengths), found = false;
        for (int32_t id = 0; id < IDS; id++) {
            uint32_t expected = repeat_of(ids, n, s.dry_penalty_last_n < 0 ? 1000 : window, breaker, id);
            expected = expected >= (uint32_t)s.dry_allowed_length ? expected : 0;
            found |= expected > 0;
            ck_assert_msg(lengths[id] == expected, "round %d: id %d: %u, not %u", round, id, lengths[id],
                          expected);
            if (expected > 0)
                ck_assert_double_eq_tol((double)dry_penalty(&s, lengths[id]),
                                        0.8 * pow(1.5, (double)expected - s.dry_allowed_length),
                                        1e-6 * pow(1.5, expected));
        }
        ck_assert(any == found);
        dry_clear(&s, history, IDS, lengths);
        for (int32_t id = 0; id < IDS; id++)
            ck_assert_uint_eq(lengths[id], 0);
    }
}
END_TEST

/* Beyond the most that counts, which repeats of repeats reach too. */
START_TEST(dry_counts_long_repeats_as_its_definition_does)
{
    enum { IDS = 3, MOST = 4000 };
    static int32_t ids[MOST];
    struct sampling s = plain;
    s.dry_multiplier = 1;
    srand(32);
    for (int round = 0; round < 12; round++) {
        const uint32_t n = MOST - (uint32_t)rand() % 1500, period = 1 + (uint32_t)round % 4 * 300;
        uint16_t lengths[IDS] = {0};
        for (uint32_t i = 0; i < n; i++)
            ids[i] = i < period ? rand() % IDS : ids[i - period];
        for (int changes = round % 3; changes > 0; changes--)
            ids[(uint32_t)rand() % n] = rand() % IDS;
        dry_mark(&s, (struct ids_view){ids, n}, IDS, lengths);
        for (int32_t id = 0; id < IDS; id++) {
            const uint32_t expected = repeat_of(ids, n, MOST, 99, id);
            ck_assert_uint_eq(lengths[id], expected >= (uint32_t)s.dry_allowed_length ? expected : 0);
        }
    }
}
END_TEST

static double seconds_of_mark(const struct sampling *sampling, struct ids_view history)
{
    uint16_t lengths[4] = {0};
    struct timespec from, to;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (int round = 0; round < 5; round++)
        dry_mark(sampling, history, 4, lengths);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
}

/* Where each place was followed back as far as it agrees, one long repeat took a hundred times as long. */
START_TEST(dry_takes_no_longer_where_all_repeats)
{
    enum { HISTORY = 200000 };
    static int32_t ids[HISTORY];
    struct sampling s = plain;
    s.dry_multiplier = 1;
    srand(33);
    for (uint32_t i = 0; i < HISTORY; i++)
        ids[i] = rand() % 4;
    const double random = seconds_of_mark(&s, (struct ids_view){ids, HISTORY});
    memset(ids, 0, sizeof ids);
    const double equal = seconds_of_mark(&s, (struct ids_view){ids, HISTORY});
    ck_assert_msg(equal < 10 * random, "%g s, and %g s of random ids", equal, random);
}
END_TEST

START_TEST(dry_breakers_of_several_ids_end_a_repeat)
{
    const int32_t ids[] = {1, 2, 3, 4, 1, 2, 3}, sequence[] = {2, 1, 2}, words[] = {3, 9, 1, 2};
    uint16_t lengths[8] = {0};
    struct sampling s = plain;
    s.dry_multiplier = 1;
    const struct ids_view history = {ids, 7};
    ck_assert(dry_mark(&s, history, 8, lengths));
    ck_assert_uint_eq(lengths[4], 3);
    dry_clear(&s, history, 8, lengths);
    s.dry_breakers.sequences = (struct id_sequences){words, 4, 1};
    ck_assert(dry_mark(&s, history, 8, lengths)); /* 9, 1, 2 stands nowhere */
    ck_assert_uint_eq(lengths[4], 3);
    dry_clear(&s, history, 8, lengths);
    s.dry_breakers.sequences = (struct id_sequences){sequence, 3, 1};
    ck_assert(!dry_mark(&s, history, 8, lengths)); /* only the 3 is behind it */
    s.dry_allowed_length = 1;
    ck_assert(dry_mark(&s, history, 8, lengths));
    ck_assert_uint_eq(lengths[4], 1);
    ck_assert_float_eq(dry_penalty(&s, 1), 1);
}
END_TEST

START_TEST(a_penalty_of_dry_is_bounded_and_off_means_off)
{
    struct sampling s = plain;
    s.dry_multiplier = 100;
    s.dry_base = 100;
    ck_assert_float_eq(dry_penalty(&s, DRY_LONGEST), DRY_MOST);
    ck_assert(dry_is_on(&s) && sampling_needs_history(&s) && !sampling_needs_uses(&s));
    s.dry_base = 0.5;
    ck_assert(!dry_is_on(&s));
    s.dry_base = 2;
    s.dry_penalty_last_n = 0;
    ck_assert(!dry_is_on(&s) && !sampling_needs_history(&s));
    /* An id with the smallest logit there is comes yet if it is the only one. */
    const int32_t ids[] = {0, 0, 0, 0};
    const float logits[] = {-3.4e38f};
    s.dry_penalty_last_n = -1;
    s.dry_base = 100;
    ck_assert_int_eq(sample_with(logits, 1, &s, &(struct sampler_row){.history = ids, .n_history = 4}), 0);
}
END_TEST

START_TEST(dry_bears_on_what_is_sampled)
{
    const float logits[] = {0, 0, 0, 0.5f, 1};
    const int32_t ids[] = {1, 2, 4, 3, 1, 2};
    struct sampling s = plain;
    s.temperature = 0;
    ck_assert_int_eq(sample_with(logits, 5, &s, &(struct sampler_row){.history = ids, .n_history = 6}), 4);
    s.dry_multiplier = 0.6;
    ck_assert_int_eq(sample_with(logits, 5, &s, &(struct sampler_row){.history = ids, .n_history = 6}), 3);
    /* A bias is added behind it. */
    const struct logit_bias bias = {4, 0.2f};
    s.logit_bias = (struct logit_bias_list){&bias, 1};
    ck_assert_int_eq(sample_with(logits, 5, &s, &(struct sampler_row){.history = ids, .n_history = 6}), 4);
}
END_TEST

/* ---- windows and words ---- */

START_TEST(penalties_look_at_the_last_ids_alone)
{
    const float logits[] = {1, 0.9f, 0.8f};
    const int32_t ids[] = {0, 0, 1, 2};
    const struct sampler_row row = {.history = ids, .n_history = 4, .n_prompt = 2};
    struct sampling s = plain;
    s.temperature = 0;
    s.repetition_penalty = 2;
    s.repeat_last_n = 2; /* 1 and 2 */
    ck_assert_int_eq(sample_with(logits, 3, &s, &row), 0);
    s.repeat_last_n = 3; /* and the last 0: all alike */
    ck_assert_int_eq(sample_with(logits, 3, &s, &row), 0);
    const float first[] = {1, 0.9f, 0.45f, 0.6f};
    ck_assert_int_eq(sample_with(first, 4, &s, &row), 3);
    s.repeat_last_n = 1; /* 2 */
    ck_assert_int_eq(sample_with(first, 4, &s, &row), 0);
    s.repeat_last_n = 0;
    ck_assert(!sampling_needs_history(&s) && !sampling_needs_uses(&s));
    ck_assert_int_eq(sample_with(first, 4, &s, &row), 0);
    /* The prompt does not count for presence and frequency, in a window either. */
    s.repetition_penalty = 1;
    s.frequency_penalty = 1;
    s.repeat_last_n = 4;
    ck_assert_int_eq(sample_with(first, 4, &s, &row), 0);
    struct sampler_row made = row;
    made.n_prompt = 0;
    ck_assert_int_eq(sample_with(first, 4, &s, &made), 3);
    s.repeat_last_n = -1;
    ck_assert(!sampling_needs_history(&s) && sampling_needs_uses(&s));
}
END_TEST

START_TEST(a_bad_word_is_not_completed)
{
    const float logits[] = {1, 2, 3, 4};
    const int32_t words[] = {2, 1, 3, 1, 2, 3, 0, 1, 1}, before[] = {0, 1};
    struct sampling s = plain;
    s.temperature = 0;
    s.bad_words = (struct id_sequences){words, 9, 3};
    struct sampler_row row = {.history = before, .n_history = 0};
    ck_assert(sampling_needs_history(&s));
    ck_assert_int_eq(sample_with(logits, 4, &s, &row), 3); /* nothing stands before it */
    row.n_history = 1;
    ck_assert_int_eq(sample_with(logits, 4, &s, &row), 3);
    row.n_history = 2; /* behind 1 no 3, behind 0, 1 no 1, and never 2 */
    ck_assert_int_eq(sample_with(logits, 4, &s, &row), 0);
    s.temperature = 50;
    for (row.position = 0; row.position < 100; row.position++)
        ck_assert_int_eq(sample_with(logits, 4, &s, &row), 0);
    s.bad_words = (struct id_sequences){0};
    s.temperature = 0;
    ck_assert_int_eq(sample_with(logits, 4, &s, &row), 3);
    /* A bias of −∞ is for ever, whatever is added to it. */
    const struct logit_bias never[] = {{3, -INFINITY}, {3, 100}};
    s.logit_bias = (struct logit_bias_list){never, 2};
    ck_assert_int_eq(sample_with(logits, 4, &s, &row), 2);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, filters_leave_what_their_definitions_say);
    tcase_add_test(tests, xtc_happens_as_often_as_it_is_asked_for_and_depends_on_seed_and_position);
    tcase_add_test(tests, the_deviation_is_that_of_all_logits_whatever_filter_comes_next);
    tcase_add_test(tests, greedy_takes_the_likeliest_whatever_filters_are_on);
    tcase_add_test(tests, dry_penalizes_what_continues_a_repeat_by_its_length);
    tcase_add_test(tests, dry_counts_long_repeats_as_its_definition_does);
    tcase_add_test(tests, dry_takes_no_longer_where_all_repeats);
    tcase_add_test(tests, dry_breakers_of_several_ids_end_a_repeat);
    tcase_add_test(tests, a_penalty_of_dry_is_bounded_and_off_means_off);
    tcase_add_test(tests, dry_bears_on_what_is_sampled);
    tcase_add_test(tests, penalties_look_at_the_last_ids_alone);
    tcase_add_test(tests, a_bad_word_is_not_completed);
}

int main(void)
{
    return run_tests("samplers", add);
}
