/* SPDX-License-Identifier: MIT */
/* What it costs to choose one id, by what a request asks for: microseconds a row on one thread.
 *
 *   build/tests/bench/sampling [VOCABULARY [USED]]
 *
 * USED ids, 500 if it is not said, were used before: penalties cost by how many differ, not by how often.
 * Logits are random, normal, as wide as those of trained models are. The least of many rows, and their
 * median: the first is what a busy machine disturbs least. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "engine/sampling/sampling.h"

enum { ROWS = 60, ROWS_OF_LOGITS = 8 };

#define HISTORY 8192

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double uniform(void)
{
    return ((double)rand() + 0.5) / ((double)RAND_MAX + 1);
}

static float normal(double width)
{
    return (float)(width * sqrt(-2 * log(uniform())) * cos(2 * 3.14159265358979 * uniform()));
}

struct bench {
    struct sampler *sampler;
    uint32_t n_vocab;
    float *logits; /* [ROWS_OF_LOGITS][n_vocab] */
    struct token_use *uses;
    int32_t history[HISTORY];
};

static void print(const char *what, double took[ROWS])
{
    qsort(took, ROWS, sizeof *took, compare);
    printf("%-44s %9.1f %9.1f\n", what, took[0], took[ROWS / 2]);
}

static void measure(const struct bench *bench, const char *what, const struct sampling *sampling,
                    uint32_t n_logprobs)
{
    double took[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        const float *logits = bench->logits + (size_t)(i % ROWS_OF_LOGITS) * bench->n_vocab;
        const struct sampler_row row = {.logits = logits,
                                        .position = i,
                                        .uses = sampling_needs_uses(sampling) ? bench->uses : NULL,
                                        .history = bench->history,
                                        .n_history = HISTORY};
        struct logprob logprobs[32];
        uint64_t start = clock_ns();
        int32_t id = sampler_sample(bench->sampler, sampling, &row);
        if (n_logprobs > 0)
            sampler_logprobs(bench->sampler, logits, id, n_logprobs - 1, logprobs);
        took[i] = (double)(clock_ns() - start) / 1e3;
    }
    print(what, took);
}

/* Filters that take all candidates one by one, and what looks at ids in their order. */
static void measure_rare(const struct bench *bench, struct sampling plain)
{
    struct sampling xtc = plain, typical = plain, sigma = plain, dynamic = plain, dry = plain;
    xtc.xtc_probability = 0.5;
    xtc.min_p = 0.05;
    typical.typical_p = 0.95;
    sigma.top_n_sigma = 1;
    dynamic.dynatemp_range = 0.5;
    dynamic.top_k = 40;
    dry.dry_multiplier = 0.8;
    measure(bench, "temperature 1, XTC, min-p .05", &xtc, 0);
    measure(bench, "temperature 1, typical-p .95", &typical, 0);
    measure(bench, "temperature 1, top-n-sigma 1", &sigma, 0);
    measure(bench, "temperature 1 +- 0.5, top-k 40", &dynamic, 0);
    measure(bench, "temperature 1, DRY over 8192 ids", &dry, 0);
}

int main(int argc, char **argv)
{
    struct bench bench = {.n_vocab = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 128256};
    bench.logits = calloc((size_t)bench.n_vocab * ROWS_OF_LOGITS + 1, sizeof *bench.logits);
    bench.uses = calloc((size_t)bench.n_vocab + 1, sizeof *bench.uses);
    if (bench.n_vocab == 0 || !bench.logits || !bench.uses ||
        sampler_new(bench.n_vocab, &bench.sampler) < 0) {
        fputs("no such vocabulary, or not enough memory for it\n", stderr);
        return 1;
    }
    for (size_t i = 0; i < (size_t)bench.n_vocab * ROWS_OF_LOGITS; i++)
        bench.logits[i] = normal(2.5);
    const uint32_t n_used = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 500;
    for (uint32_t i = 0; i < n_used; i++)
        bench.uses[(uint32_t)(uniform() * bench.n_vocab)].in_output++;
    for (uint32_t i = 0; i < HISTORY; i++)
        bench.history[i] = (int32_t)(uniform() * (i % 2 ? 500 : 20)) % (int32_t)bench.n_vocab;
    const struct sampling greedy = SAMPLING_GREEDY;
    struct sampling plain = greedy, top_p, sure, by_default, penalized, all, min_p;
    plain.temperature = 1;
    top_p = min_p = penalized = by_default = plain;
    top_p.top_p = 0.95;
    sure = top_p;
    sure.temperature = 0.5;
    min_p.min_p = 0.05;
    penalized.presence_penalty = 0.5;
    by_default.top_k = 40;
    by_default.top_p = 0.95;
    by_default.min_p = 0.05;
    all = by_default;
    all.repetition_penalty = 1.1;
    all.presence_penalty = 0.5;
    all.frequency_penalty = 0.3;
    printf("one of %u ids, µs on one thread                   least    median\n", bench.n_vocab);
    measure(&bench, "greedy", &greedy, 0);
    measure(&bench, "greedy, log probabilities of 5", &greedy, 6);
    measure(&bench, "temperature 1, top-k 40, top-p .95, min-p .05", &by_default, 0);
    measure(&bench, "temperature 1", &plain, 0);
    measure(&bench, "temperature 1, top-p .95", &top_p, 0);
    measure(&bench, "temperature 0.5, top-p .95", &sure, 0);
    measure(&bench, "temperature 1, min-p .05", &min_p, 0);
    measure(&bench, "temperature 1, presence penalty", &penalized, 0);
    measure(&bench, "temperature 1, top-k and so on, all penalties", &all, 0);
    measure_rare(&bench, plain);
    sampler_free(bench.sampler);
    free(bench.logits);
    free(bench.uses);
    return 0;
}
