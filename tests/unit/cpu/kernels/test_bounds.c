/* SPDX-License-Identifier: MIT */
/* Kernels read and write what they are given and no byte beyond: everything lies against the end, or the
 * beginning, of pages whose neighbours no one may touch. */

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/packing.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/random_weights.h"
#include "tests/unit/cpu/tested_kernels.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_PIECES 16

struct fences {
    struct {
        uint8_t *pages;
        size_t bytes;
    } pieces[MAX_PIECES];
    int n;
    bool at_begin; /* of pages, not at the end */
};

/* So many bytes, random. */
static void *fenced(struct fences *fences, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = (bytes + page - 1) / page * page;
    uint8_t *pages = mmap(NULL, inside + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(pages != MAP_FAILED);
    ck_assert_int_eq(mprotect(pages + page, inside, PROT_READ | PROT_WRITE), 0);
    ck_assert_int_lt(fences->n, MAX_PIECES);
    fences->pieces[fences->n].pages = pages;
    fences->pieces[fences->n++].bytes = inside + 2 * page;
    uint8_t *piece = pages + page + (fences->at_begin ? 0 : inside - bytes);
    for (size_t i = 0; i < bytes; i++)
        piece[i] = (uint8_t)random_u32();
    return piece;
}

static float *fenced_floats(struct fences *fences, size_t n)
{
    float *floats = fenced(fences, n * sizeof *floats);
    for (size_t i = 0; i < n; i++)
        floats[i] = random_float();
    return floats;
}

static void take_down(struct fences *fences)
{
    for (int i = 0; i < fences->n; i++)
        munmap(fences->pieces[i].pages, fences->pieces[i].bytes);
    fences->n = 0;
}

/* `rows` rows of activations, rounded. */
static struct activations fenced_activations(struct fences *fences, const struct kernels *kernels,
                                             uint32_t rows, uint32_t columns)
{
    const uint32_t stride = (columns + 31) / 32 * 32,
                   padded = (rows + KERNELS_MANY - 1) / KERNELS_MANY * KERNELS_MANY;
    struct activations x = {.stride = stride};
    x.values = fenced_floats(fences, (size_t)rows * stride);
    x.quants = fenced(fences, (size_t)rows * stride);
    x.scales = fenced_floats(fences, (size_t)rows * stride / 32);
    x.sums = fenced_floats(fences, (size_t)rows * stride / 32);
    x.half_sums = fenced(fences, (size_t)rows * stride / 16 * sizeof *x.half_sums);
    if (kernels->has_tiles) {
        x.tiles = fenced(fences, (size_t)padded * stride);
        x.tile_scales = fenced_floats(fences, (size_t)padded * stride / 32);
        x.tile_sums = fenced_floats(fences, (size_t)padded * stride / 32);
    }
    for (uint32_t row = 0; row < rows; row++) {
        memset(x.values + (size_t)row * stride + columns, 0, (stride - columns) * sizeof *x.values);
        kernels->quantize(&x, row);
    }
    return x;
}

/* Random groups of a format, one behind the other. */
static uint8_t *fenced_groups(struct fences *fences, enum format format, uint32_t columns, uint32_t n_groups)
{
    const struct packing *packing = packing_of(format);
    const uint32_t n_blocks = columns / packing->block_columns;
    const size_t group_bytes = (size_t)n_blocks * packing->packed_block_bytes;
    uint8_t *groups = fenced(fences, n_groups * group_bytes), *rows[8];
    for (uint32_t g = 0; g < n_groups; g++) {
        for (int r = 0; r < 8; r++)
            rows[r] = random_row(format, columns);
        packing->pack((const uint8_t *const *)rows, n_blocks, groups + g * group_bytes);
        for (int r = 0; r < 8; r++)
            free(rows[r]);
    }
    return groups;
}

static void multiply_within(struct fences *fences, const struct kernels *kernels, enum format format,
                            uint32_t columns, uint32_t rows)
{
    const struct packing *packing = packing_of(format);
    struct group_product product = {.apart = (size_t)columns / packing->block_columns *
                                             packing->packed_block_bytes,
                                    .from_memory = rows % 2,
                                    .n_columns = columns};
    const struct activations x = fenced_activations(fences, kernels, rows, columns);
    product.group = fenced_groups(fences, format, columns, 2);
    product.out = fenced_floats(fences, (size_t)rows * 16);
    product.out_stride = 16;
    product.x = &x;
    if (kernels->multiply_pair[format])
        kernels->multiply_pair[format](&product, 0, rows);
    if (kernels->multiply_many[format] && rows % KERNELS_MANY == 0)
        kernels->multiply_many[format](&product, 0, rows);
    product.group += fences->at_begin ? 0 : product.apart;
    product.out = fenced_floats(fences, (size_t)rows * 8);
    product.out_stride = 8;
    kernels->multiply[format](&product, 0, rows);
    if (kernels->many_groups == 1 && kernels->multiply_many[format] && rows % KERNELS_MANY == 0)
        kernels->multiply_many[format](&product, 0, rows);
    for (uint32_t i = 0; i < rows * 8; i++)
        ck_assert(isfinite(product.out[i]));
}

START_TEST(products_stay_within_what_they_are_given)
{
    static const uint32_t all_rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 32};
    const enum format format = tested_formats[_i];
    const uint32_t block = format_traits(format)->block_elements;
    const struct kernels *kernels;
    for (uint32_t k = 0; (kernels = tested_kernels(k)); k++)
        for (size_t r = 0; r < sizeof all_rows / sizeof *all_rows; r++)
            for (uint32_t n = 1; n <= 3; n++)
                for (int at_begin = 0; at_begin < 2; at_begin++) {
                    struct fences fences = {.at_begin = at_begin};
                    multiply_within(&fences, kernels, format, n * block, all_rows[r]);
                    take_down(&fences);
                }
}
END_TEST

/* Three rows, of keys of so many numbers. */
static void recur(const struct kernels *kernels, struct fences *fences, uint32_t key_dim, uint32_t value_dim)
{
    const struct delta_rows rows = {.queries = fenced_floats(fences, 3 * key_dim),
                                    .keys = fenced_floats(fences, 3 * key_dim),
                                    .values = fenced_floats(fences, 3 * value_dim),
                                    .decays = fenced_floats(fences, 3),
                                    .betas = fenced_floats(fences, 3),
                                    .key_stride = key_dim,
                                    .value_stride = value_dim,
                                    .gate_stride = 1,
                                    .n = 3,
                                    .key_dim = key_dim,
                                    .value_dim = value_dim};
    kernels->delta_rule(&rows, fenced_floats(fences, value_dim * (size_t)key_dim));
}

START_TEST(rows_stay_within_what_they_are_given)
{
    const struct kernels *kernels;
    for (uint32_t k = 0; (kernels = tested_kernels(k)); k++)
        for (uint32_t n = 1; n <= 40; n++)
            for (int at_begin = 0; at_begin < 2; at_begin++) {
                struct fences fences = {.at_begin = at_begin};
                float *x = fenced_floats(&fences, n), *y = fenced_floats(&fences, n);
                float *bias = fenced_floats(&fences, n), *out = fenced_floats(&fences, n);
                uint16_t *halves = fenced(&fences, n * sizeof *halves);
                int8_t *quants = fenced(&fences, n);
                kernels->rms_norm(x, y, n, 1e-5f, out);
                kernels->layer_norm(x, y, bias, n, 1e-5f, out);
                if (n % 8 == 0) {
                    for (size_t a = 0; a < KINDS_OF(ACTIVATIONS); a++)
                        kernels->activate[a](x, y, n, out);
                    kernels->soft_cap(x, n, 30);
                    kernels->add(x, y, n);
                    kernels->floats_to_halves(x, n, halves);
                    kernels->halves_to_floats(halves, n, out);
                    kernels->scale_each(quants, x, n, out);
                    kernels->scale_all(quants, 0.5f, n, out);
                    kernels->sigmoid(x, y, n, out);
                    kernels->convolve((const float *const[]){x, bias}, fenced_floats(&fences, 2 * n), 2, n, n,
                                      out);
                    recur(kernels, &fences, n, 8 * (1 + n % 11)); /* vectors of each width, and a rest */
                }
                kernels->unit(x, n, 1e-6f, 1, fenced_floats(&fences, (n + 7) / 8 * 8));
                take_down(&fences);
            }
}
END_TEST

START_TEST(attention_stays_within_a_block)
{
    const struct kernels *kernels;
    for (uint32_t k = 0; (kernels = tested_kernels(k)); k++)
        for (uint32_t dim = 8; dim <= 72; dim += 8)
            for (uint32_t n = 1; n <= KERNELS_QUERIES; n++)
                for (int in_halves = 0; in_halves < 2; in_halves++) {
                    struct fences fences = {.at_begin = n % 2};
                    struct running_softmax softmaxes[KERNELS_QUERIES];
                    struct attending queries[KERNELS_QUERIES];
                    const size_t numbers = (size_t)dim * KERNELS_TOKENS;
                    struct attended_block block = {
                        .dim = dim, .value_dim = dim, .first = n - 1, .end = KERNELS_TOKENS - dim % 5};
                    const float *keys = fenced_floats(&fences, numbers),
                                *values = fenced_floats(&fences, numbers);
                    if (in_halves) {
                        uint16_t *half_keys = fenced(&fences, numbers * sizeof *half_keys);
                        uint16_t *half_values = fenced(&fences, numbers * sizeof *half_values);
                        kernels->floats_to_halves(keys, (uint32_t)numbers, half_keys);
                        kernels->floats_to_halves(values, (uint32_t)numbers, half_values);
                        block.half_keys = block.next_keys = half_keys;
                        block.half_values = block.next_values = half_values;
                    } else {
                        block.keys = keys;
                        block.values = values;
                    }
                    for (uint32_t q = 0; q < n; q++) {
                        softmaxes[q] = (struct running_softmax){-INFINITY, 0, fenced_floats(&fences, dim)};
                        memset(softmaxes[q].values, 0, dim * sizeof(float));
                        queries[q] = (struct attending){values + q, &softmaxes[q]}; /* as good as any */
                    }
                    queries[n - 1].query = keys + numbers - dim;
                    kernels->attend(&block, queries, n);
                    for (uint32_t q = 0; q < n; q++)
                        ck_assert(isfinite(softmaxes[q].sum) && isfinite(softmaxes[q].values[dim - 1]));
                    take_down(&fences);
                }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, products_stay_within_what_they_are_given, 0, (int)N_TESTED_FORMATS);
    tcase_add_test(tests, rows_stay_within_what_they_are_given);
    tcase_add_test(tests, attention_stays_within_a_block);
}

int main(void)
{
    return run_tests("bounds", add);
}
