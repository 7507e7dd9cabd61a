/* SPDX-License-Identifier: MIT */
/* How fast the products of the CPU backend are: billions of multiplications a second on one thread, for every
 * format and some numbers of activation rows, by each build of the kernels that this machine runs.
 *
 *   build/tests/bench/products [FORMAT…]
 *
 * The matrix (1,024 × 2,048) fits the second-level cache in the small formats: what is measured is the
 * arithmetic, not memory. The best of many short runs, which a busy machine disturbs least. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/unit/worker/cpu/random_weights.h"
#include "worker/cpu/matrix.h"

enum { ROWS = 1024, COLUMNS = 2048, MOST = 128, RUNS = 60 };

static const uint32_t numbers[] = {1, 2, 3, 4, 7, 8, 16, 64, 128};
#define N_NUMBERS (sizeof numbers / sizeof *numbers)

static void *take(struct memory *memory, size_t size)
{
    void *piece;
    if (memory_take(memory, size, &piece) < 0) {
        fputs("no memory\n", stderr);
        exit(1);
    }
    return piece;
}

struct run {
    struct multiplier multiplier;
    struct product product;
    const struct activations *x;
};

static void work(void *arg, uint32_t index)
{
    const struct run *run = arg;
    multiplier_share(&run->multiplier, &run->product, 1, run->x, index);
}

static double gmacs(struct run *run)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < RUNS; i++) {
        uint64_t start = clock_ns();
        threads_run(run->multiplier.threads, work, run);
        uint64_t took = clock_ns() - start;
        best = took < best ? took : best;
    }
    return (double)run->product.n * ROWS * COLUMNS / (double)best;
}

static void measure(enum format format, const struct kernels *kernels)
{
    struct memory memory = {0};
    struct gguf_tensor tensor = {.n_dims = 2, .dims = {COLUMNS, ROWS, 1, 1}, .format = format};
    struct model_tensor role = {.weight = &tensor, .rows = ROWS, .columns = COLUMNS, .count = 1};
    struct error err = {0};
    struct run run = {.multiplier.kernels = kernels};
    struct matrix matrix;
    uint8_t *weights = random_row(format, (size_t)ROWS * COLUMNS);
    tensor.data = weights;
    if (matrix_describe(&matrix, &role, &err) < 0 ||
        threads_new(1, NULL, 0, &run.multiplier.threads, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    matrix.groups = take(&memory, matrix.n_groups * matrix.group_bytes);
    matrix_pack(&matrix, 0, matrix.n_groups, NULL);
    struct activations x = {.stride = COLUMNS,
                            .values = take(&memory, sizeof(float) * MOST * COLUMNS),
                            .quants = take(&memory, MOST * COLUMNS),
                            .scales = take(&memory, sizeof(float) * MOST * COLUMNS / 32),
                            .sums = take(&memory, sizeof(float) * MOST * COLUMNS / 32),
                            .half_sums = take(&memory, sizeof(int16_t) * MOST * COLUMNS / 16),
                            .tiles = take(&memory, MOST * COLUMNS),
                            .tile_scales = take(&memory, sizeof(float) * MOST * COLUMNS / 32),
                            .tile_sums = take(&memory, sizeof(float) * MOST * COLUMNS / 32)};
    for (uint32_t i = 0; i < MOST * COLUMNS; i++)
        x.values[i] = random_float();
    for (uint32_t i = 0; i < MOST; i++)
        kernels->quantize(&x, i);
    run.x = &x;
    run.product = (struct product){
        .matrix = &matrix, .out = take(&memory, sizeof(float) * MOST * ROWS), .out_stride = ROWS};
    printf("%-10s %-6s", kernels->name, format_traits(format)->name);
    for (size_t i = 0; i < N_NUMBERS; i++) {
        run.product.n = numbers[i];
        printf(" %7.1f", gmacs(&run));
    }
    putchar('\n');
    threads_free(run.multiplier.threads);
    memory_deinit(&memory);
    free(weights);
}

int main(int argc, char **argv)
{
    printf("10^9 products a second, rows: ");
    for (size_t i = 0; i < N_NUMBERS; i++)
        printf(" %6u%s", numbers[i], i + 1 < N_NUMBERS ? " " : "\n");
    const struct kernels *kernels;
    for (uint32_t k = 0; (kernels = kernels_at(k)); k++)
        for (size_t f = 0; f < N_TESTED_FORMATS; f++) {
            bool wanted = argc < 2;
            for (int i = 1; i < argc; i++)
                wanted |= strcmp(argv[i], format_traits(tested_formats[f])->name) == 0 ||
                          strcmp(argv[i], kernels->name) == 0;
            if (wanted)
                measure(tested_formats[f], kernels);
        }
    return 0;
}
