/* SPDX-License-Identifier: MIT */
/* What it costs to note a step and a token in the engine's histograms: nanoseconds on one thread.
 *
 *   build/tests/bench/measures
 *
 * `alike`: values within 20 % of one another, as steps that follow one another are. `apart`: each anywhere
 * from 0.1 ms to 10 s. The least of many rounds, and their median: the first is what a busy machine disturbs
 * least. */

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "engine/measures.h"

enum { ROUNDS = 200, VALUES = 4096 };

static uint64_t times[VALUES];
static uint32_t rows[VALUES];

static double uniform(void)
{
    return ((double)rand() + 0.5) / ((double)RAND_MAX + 1);
}

static void make_values(bool alike)
{
    for (int i = 0; i < VALUES; i++) {
        times[i] = (uint64_t)(alike ? 8e6 * (0.9 + 0.2 * uniform()) : 1e5 * pow(1e5, uniform()));
        rows[i] = (uint32_t)(alike ? 16 + 4 * uniform() : pow(2048, uniform()));
    }
}

static void note_tokens(struct measures *measures)
{
    for (int i = 0; i < VALUES; i++)
        measures_ids(measures, 1, times[i]);
}

/* As engine/steps.c notes it. */
static void note_steps(struct measures *measures)
{
    for (int i = 0; i < VALUES; i++) {
        measures_step(measures, rows[i], i % 16 == 0 ? 100 : 0, 0, times[i]);
        measures_use(measures, rows[i] % 33, 32, rows[i], 4096);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *what, void note(struct measures *measures))
{
    static struct measures measures;
    double took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t begun = clock_ns();
        note(&measures);
        took[i] = (double)(clock_ns() - begun) / VALUES;
    }
    qsort(took, ROUNDS, sizeof *took, compare);
    printf("%-16s %9.2f %9.2f\n", what, took[0], took[ROUNDS / 2]);
}

int main(void)
{
    printf("%-16s %9s %9s\n", "ns", "least", "median");
    make_values(true);
    measure("a token, alike", note_tokens);
    measure("a step, alike", note_steps);
    make_values(false);
    measure("a token, apart", note_tokens);
    measure("a step, apart", note_steps);
    return 0;
}
