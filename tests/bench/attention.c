/* SPDX-License-Identifier: MIT */
/* How fast attention over the paged cache is: billions of multiplications a second on one thread (scores and
 * values), for one row, with some of its query heads or all, and for a tile of rows after some past, by each
 * build of the kernels.
 *
 *   build/tests/bench/attention
 *
 * The best of many short runs, which a busy machine disturbs least. */

#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "tests/unit/cpu/random_weights.h"
#include "cpu/forward/attention.h"

enum { PAST = 992, GROUP = 4, RUNS = 200 };

static void *take(struct memory *memory, size_t size)
{
    void *piece;
    if (memory_take(memory, size, &piece) < 0) {
        fputs("no memory\n", stderr);
        exit(1);
    }
    return piece;
}

static double gmacs(const struct attention *attention, const struct attention_task *task, uint32_t n_heads,
                    float *scratch)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < RUNS; i++) {
        uint64_t start = clock_ns();
        attention_run(attention, task, 0, n_heads, scratch);
        uint64_t took = clock_ns() - start;
        best = took < best ? took : best;
    }
    double seen = 0;
    for (uint32_t r = 0; r < task->n_rows; r++)
        seen += task->position + r + 1;
    return seen * n_heads * attention->kv->layers[0].dim * 2 / (double)best;
}

static void measure(const struct kernels *kernels, uint32_t dim)
{
    struct memory memory = {0};
    struct kv kv = {0};
    struct error err = {0};
    struct model_params params = {.n_layers = 1, .n_heads = GROUP, .n_kv_heads = 1, .head_dim = dim};
    const uint32_t n_blocks = PAST / KERNELS_TOKENS + 2;
    const struct model model = {.params = params};
    const struct kv_config config = {.model = &model, .n_blocks = n_blocks};
    if (kv_init(&kv, &config, &memory, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    uint32_t *table = take(&memory, n_blocks * sizeof *table), *tables[] = {table};
    float *queries = take(&memory, sizeof(float) * ATTENTION_TILE * GROUP * dim);
    float *out = take(&memory, sizeof(float) * ATTENTION_TILE * GROUP * dim);
    for (uint32_t b = 0; b < n_blocks; b++)
        table[b] = b;
    for (uint32_t i = 0; i < ATTENTION_TILE * GROUP * dim; i++)
        queries[i] = random_float();
    for (uint32_t i = 0; i < n_blocks * KERNELS_TOKENS; i++)
        kv_store(&kv, kernels, i / KERNELS_TOKENS, 0, i % KERNELS_TOKENS, queries + i, queries + 2 * i);
    struct attention attention = {.kv = &kv, .kernels = kernels, .group = GROUP};
    float *scratch = take(&memory, attention_scratch(&kv.layers[0], GROUP) * sizeof *scratch);
    printf("%-10s %4u", kernels->name, dim);
    for (uint32_t rows = 1; rows <= ATTENTION_TILE; rows *= 32) {
        struct attention_task task = {tables, PAST, rows, queries, GROUP * dim, out, GROUP * dim};
        for (uint32_t n_heads = rows == 1 ? 1 : GROUP; n_heads <= GROUP; n_heads *= 2)
            printf(" %8.1f", gmacs(&attention, &task, n_heads, scratch));
    }
    putchar('\n');
    memory_deinit(&memory);
}

int main(void)
{
    printf("10^9 products a second, %d query heads to a key head, after %d ids\n"
           "                    1 row, query heads at once  32 rows\n"
           "build       dim        1        2        4        4\n",
           GROUP, PAST);
    const struct kernels *kernels;
    for (uint32_t k = 0; (kernels = kernels_at(k)); k++)
        for (uint32_t dim = 64; dim <= 256; dim *= 2)
            measure(kernels, dim);
    return 0;
}
