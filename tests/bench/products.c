/* SPDX-License-Identifier: MIT */
/* How fast the products of the CPU backend are: billions of multiplications a second on one thread, for every
 * format and some numbers of activation rows, by each build of the kernels that this machine runs.
 *
 *   build/tests/bench/products [FORMAT | BUILD]…
 *   build/tests/bench/products --memory [FORMAT | BUILD]…
 *
 * The matrix (1,024 × 2,048) fits the second-level cache in the small formats: what is measured is the
 * arithmetic, not memory. With --memory it is repeated to 128 MB, more than caches hold, and met by a few
 * rows, as decoded ids meet weights: billions of bytes of them a second on one thread and, for one row, on
 * all, beside what comes when memory is merely read. The best of many short runs, which a busy machine
 * disturbs least. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/unit/cpu/random_weights.h"
#include "cpu/memory/matrix.h"

enum { ROWS = 1024, COLUMNS = 2048, MOST = 128, RUNS = 60, FROM_MEMORY = 128 << 20, FEW = 8 };

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

/* Nanoseconds of the fastest run. */
static double best_ns(const struct run *run, threads_work *each)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < RUNS; i++) {
        uint64_t start = clock_ns();
        threads_run(run->multiplier.threads, each, (void *)(uintptr_t)run);
        uint64_t took = clock_ns() - start;
        best = took < best ? took : best;
    }
    return (double)best;
}

static void make_threads(struct run *run, uint32_t n)
{
    struct error err = {0};
    if (threads_new(n, NULL, 0, &run->multiplier.threads, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
}

/* ROWS rows, as often one behind the other as `bytes` have room for, but once at least. */
static void make_matrix(enum format format, size_t bytes, struct memory *memory, struct gguf_tensor *tensor,
                        struct matrix *ret_matrix)
{
    struct error err = {0};
    uint8_t *weights = random_row(format, (size_t)ROWS * COLUMNS);
    *tensor =
        (struct gguf_tensor){.n_dims = 2, .dims = {COLUMNS, ROWS, 1, 1}, .format = format, .data = weights};
    const struct model_tensor role = {.weight = tensor, .rows = ROWS, .columns = COLUMNS, .count = 1};
    if (matrix_describe(ret_matrix, &role, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    const size_t once = ret_matrix->n_groups * ret_matrix->group_bytes;
    const uint32_t times = bytes > once ? (uint32_t)(bytes / once) : 1;
    ret_matrix->groups = take(memory, times * once);
    matrix_pack(ret_matrix, 0, ret_matrix->n_groups, NULL);
    for (uint32_t i = 1; i < times; i++)
        memcpy(ret_matrix->groups + i * once, ret_matrix->groups, once);
    ret_matrix->n_rows *= times;
    ret_matrix->n_groups *= times;
    free(weights);
}

static void make_activations(const struct kernels *kernels, uint32_t n_rows, struct memory *memory,
                             struct activations *ret_x)
{
    const size_t n = (size_t)n_rows * COLUMNS, tiled = (size_t)MOST * COLUMNS;
    *ret_x = (struct activations){.stride = COLUMNS,
                                  .values = take(memory, sizeof(float) * n),
                                  .quants = take(memory, n),
                                  .scales = take(memory, sizeof(float) * n / 32),
                                  .sums = take(memory, sizeof(float) * n / 32),
                                  .half_sums = take(memory, sizeof(int16_t) * n / 16),
                                  .tiles = take(memory, tiled),
                                  .tile_scales = take(memory, sizeof(float) * tiled / 32),
                                  .tile_sums = take(memory, sizeof(float) * tiled / 32)};
    for (size_t i = 0; i < n; i++)
        ret_x->values[i] = random_float();
    for (uint32_t i = 0; i < n_rows; i++)
        kernels->quantize(ret_x, i);
}

static void measure(enum format format, const struct kernels *kernels)
{
    struct memory memory = {0};
    struct gguf_tensor tensor;
    struct matrix matrix;
    struct activations x;
    struct run run = {.multiplier.kernels = kernels, .x = &x};
    make_threads(&run, 1);
    make_matrix(format, 0, &memory, &tensor, &matrix);
    make_activations(kernels, MOST, &memory, &x);
    run.product = (struct product){
        .matrix = &matrix, .out = take(&memory, sizeof(float) * MOST * ROWS), .out_stride = ROWS};
    printf("%-10s %-6s", kernels->name, format_traits(format)->name);
    for (size_t i = 0; i < N_NUMBERS; i++) {
        run.product.n = numbers[i];
        printf(" %7.1f", (double)run.product.n * ROWS * COLUMNS / best_ns(&run, work));
    }
    putchar('\n');
    threads_free(run.multiplier.threads);
    memory_deinit(&memory);
}

static void measure_from_memory(enum format format, const struct kernels *kernels)
{
    struct memory memory = {0};
    struct gguf_tensor tensor;
    struct matrix matrix;
    struct activations x;
    struct run run = {.multiplier.kernels = kernels, .x = &x};
    make_matrix(format, FROM_MEMORY, &memory, &tensor, &matrix);
    make_activations(kernels, FEW, &memory, &x);
    run.product = (struct product){.matrix = &matrix,
                                   .out = take(&memory, sizeof(float) * FEW * matrix.n_rows),
                                   .out_stride = matrix.n_rows};
    const double bytes = (double)matrix.n_groups * (double)matrix.group_bytes;
    printf("%-10s %-6s", kernels->name, format_traits(format)->name);
    make_threads(&run, 1);
    for (run.product.n = 1; run.product.n <= FEW; run.product.n *= 2)
        printf(" %7.1f", bytes / best_ns(&run, work));
    threads_free(run.multiplier.threads);
    make_threads(&run, 0);
    run.product.n = 1;
    printf(" %9.1f\n", bytes / best_ns(&run, work));
    threads_free(run.multiplier.threads);
    memory_deinit(&memory);
}

/* What one claims of memory at a time, when it is merely read. */
enum { PIECE = 1 << 20 };

struct reading {
    struct run run;
    const uint64_t *words;
    _Atomic uint64_t sum; /* so that no compiler leaves the reading out */
};

static void read_pieces(void *arg, uint32_t index)
{
    struct reading *reading = arg;
    uint32_t first, end;
    uint64_t sums[32] = {0};
    (void)index;
    while (threads_claim(reading->run.multiplier.threads, FROM_MEMORY / PIECE, 1, &first, &end)) {
        const uint64_t *words = reading->words + (size_t)first * (PIECE / 8);
        for (size_t i = 0; i < PIECE / 8; i += 32)
            for (size_t j = 0; j < 32; j++)
                sums[j] += words[i + j];
    }
    for (size_t j = 0; j < 32; j++)
        reading->sum += sums[j];
}

static void measure_reading(void)
{
    struct memory memory = {0};
    struct reading reading = {0};
    void *words = take(&memory, FROM_MEMORY);
    memset(words, 1, FROM_MEMORY);
    reading.words = words;
    printf("%-17s", "reading");
    for (uint32_t n = 0; n < 2; n++) {
        make_threads(&reading.run, n == 0);
        printf(n == 0 ? " %7.1f" : " %33.1f", (double)FROM_MEMORY / best_ns(&reading.run, read_pieces));
        threads_free(reading.run.multiplier.threads);
    }
    putchar('\n');
    memory_deinit(&memory);
}

/* Names choose formats and builds; where none of either is named, all are wanted. */
static bool is_wanted(int argc, char **argv, const char *name, bool (*is_one)(const char *name))
{
    bool all = true;
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
        else if (is_one(argv[i]))
            all = false;
    return all;
}

static bool is_format(const char *name)
{
    for (size_t f = 0; f < N_TESTED_FORMATS; f++)
        if (strcmp(name, format_traits(tested_formats[f])->name) == 0)
            return true;
    return false;
}

static bool is_build(const char *name)
{
    const struct kernels *kernels;
    for (uint32_t k = 0; (kernels = kernels_at(k)); k++)
        if (strcmp(name, kernels->name) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    const bool from_memory = argc > 1 && strcmp(argv[1], "--memory") == 0;
    const struct kernels *kernels;
    argc -= 1 + from_memory;
    argv += 1 + from_memory;
    if (from_memory) {
        puts("10^9 bytes a second, rows: 1       2       4       8   1, all threads");
        measure_reading();
    } else {
        printf("10^9 products a second, rows: ");
        for (size_t i = 0; i < N_NUMBERS; i++)
            printf(" %6u%s", numbers[i], i + 1 < N_NUMBERS ? " " : "\n");
    }
    for (int i = 0; i < argc; i++)
        if (!is_format(argv[i]) && !is_build(argv[i])) {
            fprintf(stderr, "products: unknown format or build \"%s\"\n", argv[i]);
            return 2;
        }
    for (uint32_t k = 0; (kernels = kernels_at(k)); k++)
        for (size_t f = 0; f < N_TESTED_FORMATS; f++)
            if (is_wanted(argc, argv, format_traits(tested_formats[f])->name, is_format) &&
                is_wanted(argc, argv, kernels->name, is_build))
                (from_memory ? measure_from_memory : measure)(tested_formats[f], kernels);
    return 0;
}
