/* SPDX-License-Identifier: MIT */
/* A table of columns, each a function of a row: backends measure different things, and a column is there if
 * any row has something in it. */

#include "client/command/bench/profile.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define SECTOR_BYTES 32.0
#define MOST_ROWS    128

/* What rows are compared with. */
struct total {
    struct backend_kernel sum;
    double bandwidth; /* bytes a second; 0: not known */
};

/* What shares are parts of. */
static double cost(const struct backend_kernel *kernel, const struct total *total)
{
    if (total->sum.ns > 0)
        return (double)kernel->ns;
    return (double)(total->sum.sectors > 0 ? kernel->sectors : kernel->loaded);
}

static double count(const struct backend_kernel *kernel, const struct total *total)
{
    (void)total;
    return (double)kernel->n;
}

static double microseconds(const struct backend_kernel *kernel, const struct total *total)
{
    (void)total;
    return (double)kernel->ns / 1e3;
}

static double microseconds_each(const struct backend_kernel *kernel, const struct total *total)
{
    (void)total;
    return kernel->n ? (double)kernel->ns / 1e3 / (double)kernel->n : 0;
}

static double share(const struct backend_kernel *kernel, const struct total *total)
{
    const double all = cost(&total->sum, total);
    return all > 0 ? 100 * cost(kernel, total) / all : 0;
}

/* Bytes a nanosecond are gigabytes a second. */
static double gigabytes_a_second(const struct backend_kernel *kernel, const struct total *total)
{
    (void)total;
    return kernel->ns ? (double)kernel->bytes / (double)kernel->ns : 0;
}

/* Of what the device's memory could have brought in that time. */
static double roof(const struct backend_kernel *kernel, const struct total *total)
{
    return total->bandwidth > 0 ? 100e9 * gigabytes_a_second(kernel, total) / total->bandwidth : 0;
}

static double gigamacs_a_second(const struct backend_kernel *kernel, const struct total *total)
{
    (void)total;
    return kernel->ns ? (double)kernel->macs / (double)kernel->ns : 0;
}

static double blocks(const struct backend_kernel *kernel, const struct total *total)
{
    (void)total;
    return (double)kernel->n_blocks;
}

static double megabytes_to_read(const struct backend_kernel *kernel, const struct total *total)
{
    return total->sum.ns ? 0 : (double)kernel->bytes / 1e6;
}

static double megabytes_loaded(const struct backend_kernel *kernel, const struct total *total)
{
    (void)total;
    return (double)kernel->loaded / 1e6;
}

static double sectors(const struct backend_kernel *kernel, const struct total *total)
{
    (void)total;
    return (double)kernel->sectors;
}

/* Of the bytes that transactions bring, those that threads asked for; above 100 where lanes read the same. */
static double asked(const struct backend_kernel *kernel, const struct total *total)
{
    (void)total;
    return kernel->sectors ? 100 * (double)kernel->asked / (SECTOR_BYTES * (double)kernel->sectors) : 0;
}

static double passes(const struct backend_kernel *kernel, const struct total *total)
{
    (void)total;
    return (double)kernel->passes;
}

static double conflicts(const struct backend_kernel *kernel, const struct total *total)
{
    (void)total;
    return (double)kernel->conflicts;
}

struct column {
    const char *title;
    int width, decimals;
    double (*value)(const struct backend_kernel *kernel, const struct total *total);
};

static const struct column columns[] = {
    {"count", 8, 0, count},
    {"us", 12, 1, microseconds},
    {"us each", 10, 1, microseconds_each},
    {"blocks", 10, 0, blocks},
    {"MB to read", 11, 3, megabytes_to_read},
    {"MB loaded", 11, 3, megabytes_loaded},
    {"share %", 8, 1, share},
    {"GB/s", 8, 1, gigabytes_a_second},
    {"roof %", 8, 1, roof},
    {"GMAC/s", 8, 1, gigamacs_a_second},
    {"sectors", 10, 0, sectors},
    {"asked %", 8, 1, asked},
    {"shared", 10, 0, passes},
    {"conflicts", 10, 0, conflicts},
};
#define N_COLUMNS (sizeof columns / sizeof *columns)

static struct backend_kernel sum_of(const struct backend_kernel *kernels, uint32_t n)
{
    struct backend_kernel sum = {.name = "all"};
    for (uint32_t i = 0; i < n; i++) {
        sum.n += kernels[i].n;
        sum.ns += kernels[i].ns;
        sum.bytes += kernels[i].bytes;
        sum.macs += kernels[i].macs;
        sum.n_blocks += kernels[i].n_blocks;
        sum.loaded += kernels[i].loaded;
        sum.sectors += kernels[i].sectors;
        sum.asked += kernels[i].asked;
        sum.passes += kernels[i].passes;
        sum.conflicts += kernels[i].conflicts;
    }
    return sum;
}

static void print_row(const struct backend_kernel *kernel, const struct total *total, const bool *shown)
{
    printf("%-24s", kernel->name);
    for (size_t c = 0; c < N_COLUMNS; c++) {
        if (!shown[c])
            continue;
        const double value = columns[c].value(kernel, total);
        if (value > 0)
            printf(" %*.*f", columns[c].width, columns[c].decimals, value);
        else
            printf(" %*s", columns[c].width, "-");
    }
    putchar('\n');
}

/* For qsort: pointers, the larger cost first. */
struct ranked {
    const struct backend_kernel *kernel;
    double cost;
};

static int by_cost(const void *a, const void *b)
{
    const double x = ((const struct ranked *)a)->cost, y = ((const struct ranked *)b)->cost;
    return (x < y) - (x > y);
}

void bench_print_kernels(const struct backend_kernel *kernels, uint32_t n, double bandwidth)
{
    const struct total total = {sum_of(kernels, n), bandwidth};
    struct ranked ranked[MOST_ROWS];
    bool shown[N_COLUMNS] = {false};
    n = n < MOST_ROWS ? n : MOST_ROWS;
    for (uint32_t i = 0; i < n; i++) {
        ranked[i] = (struct ranked){&kernels[i], cost(&kernels[i], &total)};
        for (size_t c = 0; c < N_COLUMNS; c++)
            shown[c] |= columns[c].value(&kernels[i], &total) > 0;
    }
    qsort(ranked, n, sizeof *ranked, by_cost);
    printf("\n%-24s", "kernel");
    for (size_t c = 0; c < N_COLUMNS; c++)
        if (shown[c])
            printf(" %*s", columns[c].width, columns[c].title);
    putchar('\n');
    for (uint32_t i = 0; i < n; i++)
        print_row(ranked[i].kernel, &total, shown);
    print_row(&total.sum, &total, shown);
}

json_t *bench_kernels_json(const struct backend_kernel *kernels, uint32_t n, double bandwidth)
{
    const struct total total = {sum_of(kernels, n), bandwidth};
    json_t *array = json_array();
    for (uint32_t i = 0; i < n && array; i++) {
        const struct backend_kernel *k = &kernels[i];
        const struct {
            const char *key;
            uint64_t value;
        } members[] = {{"n", k->n},
                       {"ns", k->ns},
                       {"bytes", k->bytes},
                       {"macs", k->macs},
                       {"blocks", k->n_blocks},
                       {"threads", k->n_threads},
                       {"shared_bytes", k->shared_bytes},
                       {"loaded", k->loaded},
                       {"sectors", k->sectors},
                       {"asked", k->asked},
                       {"passes", k->passes},
                       {"conflicts", k->conflicts}};
        json_t *object = json_pack("{s:s}", "name", k->name);
        for (size_t m = 0; m < sizeof members / sizeof *members; m++)
            if (members[m].value > 0)
                json_object_set_new(object, members[m].key, json_integer((json_int_t)members[m].value));
        if (roof(k, &total) > 0)
            json_object_set_new(object, "roof", json_real(roof(k, &total) / 100));
        json_array_append_new(array, object);
    }
    return array;
}
