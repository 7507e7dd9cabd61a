/* SPDX-License-Identifier: MIT */
/* The sampler against hand cases, against a plain sorting implementation, and against chi-square. */

#include "tests/unit/run.h"
#include "engine/sampling/sampling.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct sampling plain = {.temperature = 1, SAMPLING_OFF};

/* Of a row that nothing else bears on. */
static int32_t sample_at(struct sampler *sampler, const float *logits, const struct sampling *sampling,
                         uint64_t position)
{
    return sampler_sample(sampler, sampling, &(struct sampler_row){.logits = logits, .position = position});
}

static int32_t sample(const float *logits, uint32_t n, const struct sampling *sampling, uint64_t position)
{
    struct sampler *sampler;
    ck_assert_int_eq(sampler_new(n, &sampler), 0);
    int32_t id = sample_at(sampler, logits, sampling, position);
    sampler_free(sampler);
    return id;
}

/* Which ids ever come in `draws` positions, as a bitmask over the first 32. */
static uint32_t support(const float *logits, uint32_t n, const struct sampling *sampling, uint32_t draws)
{
    struct sampler *sampler;
    uint32_t seen = 0;
    ck_assert_int_eq(sampler_new(n, &sampler), 0);
    for (uint32_t i = 0; i < draws; i++) {
        int32_t id = sample_at(sampler, logits, sampling, i);
        ck_assert(id >= 0 && id < 32);
        seen |= 1u << id;
    }
    sampler_free(sampler);
    return seen;
}

START_TEST(philox_gives_the_authors_vectors)
{
    static const uint32_t cases[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb,
         0x5001e420, 0x24126ea1}};
    for (int i = 0; i < 3; i++) {
        uint32_t random[4];
        philox4x32(cases[i], cases[i] + 4, random);
        ck_assert_mem_eq(random, cases[i] + 6, sizeof random);
    }
}
END_TEST

START_TEST(greedy_takes_the_largest_and_the_lower_of_equals)
{
    const float logits[] = {-3, 2, 5, 5, -1};
    struct sampling zero = plain, one = plain;
    zero.temperature = 0;
    one.top_k = 1;
    for (uint64_t position = 0; position < 50; position++) {
        ck_assert_int_eq(sample(logits, 5, &zero, position), 2);
        ck_assert_int_eq(sample(logits, 5, &one, position), 2);
    }
    const float zeros[] = {-1, -0.0f, 0.0f};
    ck_assert_int_eq(sample(zeros, 3, &zero, 0), 1);
}
END_TEST

START_TEST(top_k_keeps_k_and_the_lower_ids_of_equals)
{
    const float logits[] = {1, 3, 2, 2, 2, 0};
    struct sampling s = plain;
    s.top_k = 3;
    ck_assert_uint_eq(support(logits, 6, &s, 2000), 1u << 1 | 1u << 2 | 1u << 3);
    s.top_k = 6;
    ck_assert_uint_eq(support(logits, 6, &s, 5000), 0x3f);
    s.top_k = 0;
    ck_assert_uint_eq(support(logits, 6, &s, 5000), 0x3f);
}
END_TEST

START_TEST(top_p_keeps_the_shortest_prefix_that_reaches_it)
{
    const float logits[] = {logf(0.1f), logf(0.5f), logf(0.25f), logf(0.15f)};
    struct sampling s = plain;
    s.top_p = 0.45f;
    ck_assert_uint_eq(support(logits, 4, &s, 2000), 1u << 1);
    s.top_p = 0.6f;
    ck_assert_uint_eq(support(logits, 4, &s, 2000), 1u << 1 | 1u << 2);
    s.top_p = 0.8f;
    ck_assert_uint_eq(support(logits, 4, &s, 2000), 1u << 1 | 1u << 2 | 1u << 3);
    s.top_p = 1e-9f;
    ck_assert_uint_eq(support(logits, 4, &s, 2000), 1u << 1);
    /* After top-k: of {0.5, 0.25} the first alone is two thirds. */
    s.top_k = 2;
    s.top_p = 0.6f;
    ck_assert_uint_eq(support(logits, 4, &s, 2000), 1u << 1);
}
END_TEST

START_TEST(min_p_is_relative_to_the_most_likely)
{
    const float logits[] = {logf(0.05f), logf(0.5f), logf(0.25f), logf(0.2f)};
    struct sampling s = plain;
    s.min_p = 0.45f;
    ck_assert_uint_eq(support(logits, 4, &s, 2000), 1u << 1 | 1u << 2);
    s.min_p = 0.35f;
    ck_assert_uint_eq(support(logits, 4, &s, 2000), 1u << 1 | 1u << 2 | 1u << 3);
    s.min_p = 1;
    ck_assert_uint_eq(support(logits, 4, &s, 2000), 1u << 1);
    /* Temperature comes first: at 10 the ratio 0.1 becomes 0.79. */
    s.min_p = 0.7f;
    s.temperature = 10;
    ck_assert_uint_eq(support(logits, 4, &s, 2000), 0xf);
}
END_TEST

/* The greedy id of a row whose ids were used so, and the others not. */
static int32_t greedy_of(const float *logits, uint32_t n, const struct sampling *sampling,
                         const struct token_use *uses)
{
    struct sampler *sampler;
    struct sampling greedy = *sampling;
    greedy.temperature = 0;
    ck_assert_int_eq(sampler_new(n, &sampler), 0);
    int32_t id = sampler_sample(sampler, &greedy, &(struct sampler_row){.logits = logits, .uses = uses});
    sampler_free(sampler);
    return id;
}

START_TEST(the_repetition_penalty_divides_positive_and_multiplies_negative_logits)
{
    struct sampling s = plain;
    s.repetition_penalty = 2;
    const struct token_use first[] = {{.in_prompt = 1}, {0}, {0}}, third[] = {{0}, {0}, {.in_output = 9}};
    const float positive[] = {4, 3, -9}, negative[] = {-1, -1.5f, -0.8f};
    ck_assert_int_eq(greedy_of(positive, 3, &s, first), 1);
    ck_assert_int_eq(greedy_of(positive, 3, &s, third), 0);
    ck_assert_int_eq(greedy_of(negative, 3, &s, third), 0);
    s.repetition_penalty = 1;
    ck_assert_int_eq(greedy_of(positive, 3, &s, first), 0);
}
END_TEST

START_TEST(presence_and_frequency_look_at_the_output_alone)
{
    const float logits[] = {3, 2.5f, -5};
    const struct token_use in_prompt[] = {{.in_prompt = 1}, {0}, {0}}, once[] = {{.in_output = 1}, {0}, {0}},
                           often[] = {{1, 4, 0}, {.in_output = 1}, {0}};
    struct sampling presence = plain, frequency = plain, reward = plain;
    presence.presence_penalty = 0.6;
    ck_assert(sampling_needs_uses(&presence));
    ck_assert_int_eq(greedy_of(logits, 3, &presence, in_prompt), 0);
    ck_assert_int_eq(greedy_of(logits, 3, &presence, once), 1);
    ck_assert_int_eq(greedy_of(logits, 3, &presence, often), 0); /* both alike, however often */
    frequency.frequency_penalty = 0.2;
    ck_assert(sampling_needs_uses(&frequency));
    ck_assert_int_eq(greedy_of(logits, 3, &frequency, in_prompt), 0);
    ck_assert_int_eq(greedy_of(logits, 3, &frequency, once), 0);  /* 2.8 and 2.5 */
    ck_assert_int_eq(greedy_of(logits, 3, &frequency, often), 1); /* 2.2 and 2.3 */
    reward.frequency_penalty = -2;
    const struct token_use third[] = {{0}, {0}, {.in_output = 5}};
    ck_assert_int_eq(greedy_of(logits, 3, &reward, third), 2);
    ck_assert(!sampling_needs_uses(&plain));
}
END_TEST

START_TEST(a_bias_is_added_last_and_only_for_one_call)
{
    struct sampler *sampler;
    ck_assert_int_eq(sampler_new(4, &sampler), 0);
    const float logits[] = {5, 4, 3, 2};
    const struct logit_bias items[] = {{0, -100}, {2, 0.75f}, {2, 0.75f}};
    struct sampling biased = plain, none = plain;
    biased.temperature = none.temperature = 0;
    biased.logit_bias = (struct logit_bias_list){items, 1};
    ck_assert_int_eq(sample_at(sampler, logits, &biased, 0), 1);
    ck_assert_int_eq(sample_at(sampler, logits, &none, 0), 0);
    biased.logit_bias.n = 2; /* 3.75 is not above 4; twice it is */
    ck_assert_int_eq(sample_at(sampler, logits, &biased, 0), 1);
    biased.logit_bias.n = 3;
    ck_assert_int_eq(sample_at(sampler, logits, &biased, 0), 2);
    ck_assert_int_eq(sample_at(sampler, logits, &none, 0), 0);
    /* A ban holds though the penalty, here a reward, would make little of −95. */
    const struct token_use used[] = {{.in_output = 3}, {0}, {0}, {0}};
    biased.logit_bias.n = 1;
    biased.repetition_penalty = 0.01;
    ck_assert_int_eq(sampler_sample(sampler, &biased, &(struct sampler_row){.logits = logits, .uses = used}),
                     0); /* 500 − 100 */
    biased.repetition_penalty = 1.5;
    const float negative[] = {-0.1f, -9, -9, -9};
    ck_assert_int_eq(
        sampler_sample(sampler, &biased, &(struct sampler_row){.logits = negative, .uses = used}), 1);
    sampler_free(sampler);
}
END_TEST

START_TEST(only_ids_in_both_masks_are_sampled)
{
    enum { N = 71 }; /* odd on purpose: the last word is not full */
    struct sampler *sampler;
    ck_assert_int_eq(sampler_new(N, &sampler), 0);
    float logits[N];
    for (int i = 0; i < N; i++)
        logits[i] = (float)i;
    uint32_t mask[3] = {~0u, ~0u, 0x3f}, allowed[3] = {0x10, 0, 0xffffffc0};
    struct sampling s = plain;
    s.temperature = 0;
    ck_assert_int_eq(sample_at(sampler, logits, &s, 0), 70);
    ck_assert_int_eq(sampler_sample(sampler, &s, &(struct sampler_row){.logits = logits, .mask = mask}), 69);
    ck_assert_int_eq(sampler_sample(sampler, &s, &(struct sampler_row){.logits = logits, .allowed = allowed}),
                     70);
    ck_assert_int_eq(
        sampler_sample(sampler, &s,
                       &(struct sampler_row){.logits = logits, .mask = mask, .allowed = allowed}),
        4);
    allowed[0] = 0;
    ck_assert_int_eq(
        sampler_sample(sampler, &s,
                       &(struct sampler_row){.logits = logits, .mask = mask, .allowed = allowed}),
        -1);
    s.temperature = 5;
    for (uint64_t position = 0; position < 500; position++)
        ck_assert_int_lt(
            sampler_sample(sampler, &s,
                           &(struct sampler_row){.logits = logits, .position = position, .mask = mask}),
            70);
    sampler_free(sampler);
}
END_TEST

START_TEST(logits_that_are_not_finite_are_never_sampled)
{
    float logits[] = {NAN, INFINITY, 1, -INFINITY, 2, -NAN};
    ck_assert_uint_eq(support(logits, 6, &plain, 500), 1u << 2 | 1u << 4);
    struct sampling greedy = plain;
    greedy.temperature = 0;
    ck_assert_int_eq(sample(logits, 6, &greedy, 0), 4);
    logits[2] = logits[4] = NAN;
    ck_assert_int_eq(sample(logits, 6, &greedy, 0), -1);
    ck_assert_int_eq(sample(logits, 6, &plain, 0), -1);
    /* The extremes of float neither overflow nor lose the winner. */
    const float extremes[] = {-FLT_MAX, FLT_MAX, FLT_MAX / 2};
    ck_assert_int_eq(sample(extremes, 3, &plain, 7), 1);
    struct sampling cold = plain;
    cold.temperature = FLT_MIN;
    ck_assert_int_eq(sample(extremes, 3, &cold, 7), 1);
}
END_TEST

START_TEST(a_sample_depends_on_seed_and_position_alone)
{
    enum { N = 1003 };
    float logits[N];
    srand(1);
    for (int i = 0; i < N; i++)
        logits[i] = (float)rand() / (float)RAND_MAX * 4;
    struct sampler *sampler;
    ck_assert_int_eq(sampler_new(N, &sampler), 0);
    struct sampling s = plain;
    s.top_k = 200;
    s.top_p = 0.9f;
    s.seed = 0x123456789abcdef0;
    int32_t forward[64];
    for (uint64_t i = 0; i < 64; i++)
        forward[i] = sample_at(sampler, logits, &s, i);
    int distinct_from_first = 0, changed_by_seed = 0, changed_by_high_bits = 0;
    for (uint64_t i = 64; i-- > 0;) {
        ck_assert_int_eq(sample_at(sampler, logits, &s, i), forward[i]);
        distinct_from_first += forward[i] != forward[0];
        struct sampling other = s;
        other.seed ^= 1ull << 40;
        changed_by_seed += sample_at(sampler, logits, &other, i) != forward[i];
        changed_by_high_bits += sample_at(sampler, logits, &s, i | 1ull << 35) != forward[i];
    }
    ck_assert_int_gt(distinct_from_first, 50);
    ck_assert_int_gt(changed_by_seed, 50);
    ck_assert_int_gt(changed_by_high_bits, 50);
    sampler_free(sampler);
}
END_TEST

/* Many draws over consecutive positions; the bound is the 1 − 10⁻⁴ quantile for the degrees of freedom. */
static void check_distribution(const float *logits, const double *p, uint32_t n,
                               const struct sampling *sampling, double bound)
{
    const uint32_t draws = test_is_scaled() ? 5000 : 100000;
    uint32_t counts[32] = {0};
    struct sampler *sampler;
    ck_assert_int_eq(sampler_new(n, &sampler), 0);
    for (uint64_t i = 0; i < draws; i++)
        counts[sample_at(sampler, logits, sampling, i)]++;
    double chi = 0;
    for (uint32_t i = 0; i < n; i++) {
        double expected = p[i] * draws;
        if (expected == 0)
            ck_assert_uint_eq(counts[i], 0);
        else
            chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    ck_assert_double_lt(chi, bound);
    sampler_free(sampler);
}

START_TEST(draws_follow_the_softmax)
{
    const double p[8] = {0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.04, 0.01};
    const double filtered[8] = {0.375, 0.25, 0.25, 0.125, 0, 0, 0, 0};
    float logits[8], sharp[8];
    for (int i = 0; i < 8; i++) {
        logits[i] = logf((float)p[i]);
        sharp[i] = logits[i] * 2.5f;
    }
    struct sampling s = plain;
    s.seed = 1;
    check_distribution(logits, p, 8, &s, 29.9); /* 7 degrees of freedom */
    s.seed = 2;
    s.temperature = 2.5f;
    check_distribution(sharp, p, 8, &s, 29.9);
    s = plain;
    s.seed = 3;
    s.top_k = 4;
    check_distribution(logits, filtered, 8, &s, 21.1); /* 3 */
    s.seed = 4;
    s.top_k = 0;
    s.top_p = 0.79f;
    check_distribution(logits, filtered, 8, &s, 21.1);
}
END_TEST

/* ---- the same contract, written with sorts ---- */

struct entry {
    float logit;
    int32_t id;
};

static int by_order(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit < y->logit ? 1 : -1;
    return x->id < y->id ? -1 : 1;
}

/* The logit of id i as the header says it changes. */
static float changed(float logit, uint32_t i, const struct sampling *s, const struct token_use *use)
{
    if (use->in_prompt || use->in_output)
        logit *= logit > 0 ? 1 / (float)s->repetition_penalty : (float)s->repetition_penalty;
    if (use->in_output)
        logit -= (float)s->presence_penalty + (float)s->frequency_penalty * (float)use->in_output;
    float bias = 0;
    for (size_t j = 0; j < s->logit_bias.n; j++)
        bias += (uint32_t)s->logit_bias.items[j].id == i ? s->logit_bias.items[j].bias : 0;
    return logit + bias;
}

static int32_t sorted_sample(const float *logits, uint32_t n_vocab, const struct sampling *s,
                             const struct token_use *uses, uint64_t position)
{
    struct entry *all = calloc(n_vocab, sizeof *all);
    uint64_t *mass = calloc(n_vocab, sizeof *mass);
    float temperature = (float)s->temperature;
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_vocab; i++)
        if (isfinite(logits[i]))
            all[n++] = (struct entry){changed(logits[i], i, s, &uses[i]), (int32_t)i};
    qsort(all, n, sizeof *all, by_order);
    if (n == 0 || s->temperature == 0 || s->top_k == 1) {
        int32_t first = n ? all[0].id : -1;
        free(all);
        free(mass);
        return first;
    }
    n = s->top_k && (uint32_t)s->top_k < n ? (uint32_t)s->top_k : n;
    uint64_t total = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        total += mass[i] = (uint64_t)(expf((all[i].logit - all[0].logit) / temperature) * 0x1p40f);
    if (s->top_p < 1) {
        uint64_t target = (uint64_t)ceil((double)total * s->top_p);
        uint32_t kept = 0;
        do
            sum += mass[kept++];
        while (kept < n && sum < target);
        n = kept;
    }
    while (n > 1 && (double)mass[n - 1] < s->min_p * 0x1p40)
        n--;
    double highest = -INFINITY;
    int32_t winner = -1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t key[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)}, random[4];
        uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), (uint32_t)all[i].id / 4, 0};
        philox4x32(counter, key, random);
        double u = ((double)random[all[i].id % 4] + 0.5) / 4294967296.0;
        double score = (double)((all[i].logit - all[0].logit) / temperature) - log(-log(u));
        if (score > highest || (score == highest && all[i].id < winner)) {
            highest = score;
            winner = all[i].id;
        }
    }
    free(all);
    free(mass);
    return winner;
}

START_TEST(selection_agrees_with_sorting)
{
    srand(7);
    for (int round = 0, rounds = test_rounds(400); round < rounds; round++) {
        uint32_t n = 1 + (uint32_t)rand() % (round % 4 ? 300 : 9000);
        float *logits = malloc(n * sizeof *logits);
        struct token_use *uses = calloc(n, sizeof *uses);
        struct logit_bias biases[20];
        struct sampler *sampler;
        ck_assert_int_eq(sampler_new(n, &sampler), 0);
        for (uint32_t i = 0; i < n; i++) { /* every third round: few values, many ties */
            float r = (float)rand() / (float)RAND_MAX * 20 - 10;
            logits[i] = round % 3 ? r : floorf(r / 4);
            if (round % 5 == 0 && rand() % 50 == 0)
                logits[i] = rand() % 2 ? NAN : INFINITY;
            if (rand() % 4 == 0)
                uses[i] = (struct token_use){(uint32_t)rand() % 2, (uint32_t)rand() % 4, 0};
        }
        for (int i = 0; i < 20; i++)
            biases[i] = (struct logit_bias){(int32_t)((uint32_t)rand() % n), (float)(rand() % 9 - 4)};
        struct sampling s = {.temperature = 0.1f + (float)(rand() % 30) / 10,
                             .top_k = rand() % 3 ? rand() % 60 : 0,
                             .top_p = rand() % 3 ? (float)(1 + rand() % 999) / 1000 : 1,
                             .min_p = rand() % 3 ? 0 : (float)(rand() % 500) / 1000,
                             .repetition_penalty = 1,
                             SAMPLING_RARE_OFF,
                             .seed = (uint64_t)rand()};
        if (round % 7 == 0)
            s.temperature = 0;
        if (round % 4 == 1) /* powers of two, so that dividing and multiplying by the inverse are the same */
            s.repetition_penalty = rand() % 2 ? 2 : 0.5;
        if (round % 4 >= 2) {
            s.presence_penalty = (double)(rand() % 5 - 2) / 2;
            s.frequency_penalty = (double)(rand() % 5 - 2) / 4;
        }
        if (round % 4 == 3)
            s.logit_bias = (struct logit_bias_list){biases, (size_t)rand() % 21};
        for (uint64_t position = 0; position < 8; position++)
            ck_assert_int_eq(
                sampler_sample(sampler, &s,
                               &(struct sampler_row){.logits = logits, .position = position, .uses = uses}),
                sorted_sample(logits, n, &s, uses, position));
        sampler_free(sampler);
        free(uses);
        free(logits);
    }
}
END_TEST

/* Every parameter at its ends, alone and with every other at its own, on logits as large as floats can be:
 * something finite is always sampled, and nothing that may be sampled is lost on the way. */
START_TEST(no_legal_value_makes_an_infinity_or_loses_an_id)
{
    enum { N = 40 };
    static const struct {
        double low, high;
    } ends[] = {
#define ENDS(name, least, most, ...) {least, most},
        SAMPLING_PARAMETERS(ENDS, ENDS)};
    enum { N_PARAMETERS = sizeof ends / sizeof *ends };
    float logits[N];
    struct token_use uses[N];
    struct logit_bias items[N];
    struct sampler *sampler;
    ck_assert_int_eq(sampler_new(N, &sampler), 0);
    for (int i = 0; i < N; i++) {
        static const float values[] = {FLT_MAX, -FLT_MAX, 1e30f, -1e30f, FLT_MIN, 0, 1, -1};
        logits[i] = values[i % 8];
        uses[i] = (struct token_use){(uint32_t)i / 8 % 2, i % 3 ? TOKEN_USE_MOST : 0, 0};
        items[i] = (struct logit_bias){i, i % 2 ? SAMPLING_MAX_BIAS : -SAMPLING_MAX_BIAS};
    }
    int32_t history[3] = {7, 8, 7};
    srand(17);
    for (unsigned round = 0, rounds = 2000; round < rounds; round++) {
        const unsigned corner = round < 2 ? -round : (unsigned)rand();
        struct sampling s = {.logit_bias = {items, corner % 3 ? N : 0}};
        unsigned i = 0;
#define PICK_REAL(name, ...)  s.name = corner >> i & 1 ? ends[i].high : ends[i].low, i++;
#define PICK_COUNT(name, ...) s.name = (int32_t)(corner >> i & 1 ? ends[i].high : ends[i].low), i++;
        SAMPLING_PARAMETERS(PICK_REAL, PICK_COUNT)
        ck_assert_int_eq(sampling_check(&s, N, NULL), 0);
        for (uint64_t position = 0; position < 4; position++) {
            int32_t id = sampler_sample(sampler, &s,
                                        &(struct sampler_row){.logits = logits,
                                                              .position = position,
                                                              .uses = uses,
                                                              .history = history,
                                                              .n_history = 3});
            ck_assert_msg(id >= 0 && id < N, "corner %x", corner);
        }
        /* The one id that is allowed comes, whatever becomes of its logit. */
        for (int32_t only = 0; only < 8; only++) {
            uint32_t allowed[2] = {1u << only, 0};
            ck_assert_msg(sampler_sample(sampler, &s,
                                         &(struct sampler_row){.logits = logits,
                                                               .position = 9,
                                                               .uses = uses,
                                                               .history = history,
                                                               .n_history = 3,
                                                               .allowed = allowed}) == only,
                          "corner %x", corner);
        }
    }
    sampler_free(sampler);
}
END_TEST

START_TEST(logprobs_are_of_the_whole_softmax_and_the_likely_come_in_order)
{
    const float logits[] = {logf(0.1f), logf(0.4f), NAN, logf(0.1f), logf(0.4f)};
    struct sampler *sampler;
    ck_assert_int_eq(sampler_new(5, &sampler), 0);
    struct logprob out[7];
    sampler_logprobs(sampler, logits, 3, 3, out);
    const int32_t ids[] = {3, 1, 4, 0};
    const double p[] = {0.1, 0.4, 0.4, 0.1};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(out[i].id, ids[i]);
        ck_assert_double_eq_tol(exp((double)out[i].logprob), p[i], 1e-6);
    }
    sampler_logprobs(sampler, logits, 2, 6, out); /* more than there are, and one that cannot be */
    ck_assert(isinf(out[0].logprob) && out[0].logprob < 0);
    ck_assert_int_eq(out[4].id, 3);
    ck_assert_int_eq(out[5].id, -1);
    sampler_logprobs(sampler, logits, 1, 0, out);
    ck_assert_double_eq_tol(exp((double)out[0].logprob), 0.4, 1e-6);
    sampler_free(sampler);
}
END_TEST

START_TEST(a_vocabulary_of_any_size_is_sampled_to_its_last_id)
{
    for (uint32_t n = 1; n < 140; n++) {
        float logits[140];
        for (uint32_t i = 0; i < n; i++)
            logits[i] = i + 1 == n ? 30 : -30;
        ck_assert_int_eq(sample(logits, n, &plain, n), (int32_t)n - 1);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240); /* 400,000 draws, on a machine that has other things to do */
    tcase_add_test(tests, philox_gives_the_authors_vectors);
    tcase_add_test(tests, greedy_takes_the_largest_and_the_lower_of_equals);
    tcase_add_test(tests, top_k_keeps_k_and_the_lower_ids_of_equals);
    tcase_add_test(tests, top_p_keeps_the_shortest_prefix_that_reaches_it);
    tcase_add_test(tests, min_p_is_relative_to_the_most_likely);
    tcase_add_test(tests, the_repetition_penalty_divides_positive_and_multiplies_negative_logits);
    tcase_add_test(tests, presence_and_frequency_look_at_the_output_alone);
    tcase_add_test(tests, a_bias_is_added_last_and_only_for_one_call);
    tcase_add_test(tests, only_ids_in_both_masks_are_sampled);
    tcase_add_test(tests, logits_that_are_not_finite_are_never_sampled);
    tcase_add_test(tests, a_sample_depends_on_seed_and_position_alone);
    tcase_add_test(tests, draws_follow_the_softmax);
    tcase_add_test(tests, selection_agrees_with_sorting);
    tcase_add_test(tests, no_legal_value_makes_an_infinity_or_loses_an_id);
    tcase_add_test(tests, logprobs_are_of_the_whole_softmax_and_the_likely_come_in_order);
    tcase_add_test(tests, a_vocabulary_of_any_size_is_sampled_to_its_last_id);
}

int main(void)
{
    return run_tests("sampling", add);
}
