/* SPDX-License-Identifier: MIT */
/* Products: who computes which outputs, and in which order weights are touched.
 *
 * The groups of all products of a phase (query, key and value; gates and ups) form one range; threads claim
 * runs of it that get shorter towards its end, so that a thread that was held up does not hold up the others.
 * Within a run, a tile of activation rows small enough for the first-level cache meets every group of the run
 * before the next tile comes, so prefill, whose runs are of a few groups, reads weights from memory once and
 * activations from the second-level cache. Where there is one tile, runs are long: what was asked for ahead
 * at the end of each is another thread's. Columns are never split: a row's sum is one kernel call's, whoever
 * claims it. */

#include "cpu/memory/matrix.h"

#include <errno.h>
#include <string.h>

#define GROUPS_PER_CLAIM 4
#define CLAIMS_AT_ONCE   16 /* of which a run consists at most, while a claim's groups are met only once */
#define ROWS_FOR_PAIRS   3  /* fewer wait for memory, which comes faster in one stream than in two */
#define ROWS_PER_TILE    16

size_t matrix_row_bytes(const struct gguf_tensor *tensor)
{
    return format_bytes(tensor->format, tensor->dims[0]);
}

const uint8_t *matrix_rows(const struct matrix *matrix)
{
    return (const uint8_t *)matrix->tensor->data + matrix->first_row * matrix_row_bytes(matrix->tensor);
}

int matrix_describe(struct matrix *matrix, const struct model_tensor *from, struct error *err)
{
    const struct gguf_tensor *tensor = from->weight;
    const struct packing *packing = packing_of(tensor->format);
    if (!packing) {
        const char *name = format_traits(tensor->format)->name;
        return error_set(err, -EINVAL, "tensor %.*s: the CPU backend cannot multiply format %s",
                         (int)tensor->name.len, (const char *)tensor->name.data, name ? name : "unknown");
    }
    *matrix = (struct matrix){.tensor = tensor,
                              .first_row = from->first_row,
                              .run = from->run,
                              .apart = from->apart,
                              .packing = packing,
                              .n_rows = from->rows,
                              .n_columns = from->columns,
                              .count = from->count};
    matrix->n_groups = (matrix->n_rows + KERNELS_ROWS - 1) / KERNELS_ROWS;
    matrix->group_bytes = (size_t)matrix->n_columns / packing->block_columns * packing->packed_block_bytes;
    return 0;
}

static size_t bias_bytes(const struct matrix *matrix)
{
    return (size_t)matrix->count * matrix->n_groups * KERNELS_ROWS * sizeof *matrix->bias;
}

void matrix_place(struct matrix *matrix, const struct model_tensor *from, struct placement *placement)
{
    const uint64_t kind = (uint64_t)matrix->tensor->format << 32 | matrix->n_columns;
    matrix->groups =
        placement_take(placement, (size_t)matrix->count * matrix->n_groups * matrix->group_bytes, kind);
    if (from->bias)
        matrix->bias = placement_take(placement, bias_bytes(matrix), FORMAT_F32);
}

void matrix_copy_bias(struct matrix *matrix, const struct model_tensor *from)
{
    const float *bias = from->bias ? (const float *)from->bias->data + from->first_row : NULL;
    for (uint32_t i = 0; bias && i < matrix->count; i++)
        memcpy(matrix->bias + (size_t)i * matrix->n_groups * KERNELS_ROWS, bias + (size_t)i * matrix->n_rows,
               matrix->n_rows * sizeof *bias);
}

static struct model_tensor turns_of(const struct matrix *matrix)
{
    return (struct model_tensor){.first_row = matrix->first_row, .run = matrix->run, .apart = matrix->apart};
}

void matrix_rows_of(const struct matrix *matrix, uint32_t first, uint32_t end, uint64_t *ret_first,
                    uint64_t *ret_n)
{
    const struct model_tensor at = turns_of(matrix);
    const uint32_t n_groups = matrix->n_groups, last = end - 1;
    const uint64_t after = (uint64_t)(last % n_groups + 1) * KERNELS_ROWS;
    const uint64_t first_row =
        (uint64_t)(first / n_groups) * matrix->n_rows + (uint64_t)(first % n_groups) * KERNELS_ROWS;
    const uint64_t last_row =
        (uint64_t)(last / n_groups) * matrix->n_rows + (after < matrix->n_rows ? after : matrix->n_rows) - 1;
    *ret_first = model_tensor_row(&at, first_row);
    *ret_n = model_tensor_row(&at, last_row) + 1 - *ret_first;
}

void matrix_pack(struct matrix *matrix, uint32_t first, uint32_t end, const uint8_t *zeros)
{
    size_t row_bytes = matrix_row_bytes(matrix->tensor);
    const struct model_tensor at = turns_of(matrix);
    uint32_t n_blocks = matrix->n_columns / matrix->packing->block_columns;
    for (uint32_t g = first; g < end; g++) {
        const uint8_t *rows[KERNELS_ROWS];
        const uint64_t first_of_one = (uint64_t)(g / matrix->n_groups) * matrix->n_rows;
        for (uint32_t r = 0; r < KERNELS_ROWS; r++) {
            uint32_t row = g % matrix->n_groups * KERNELS_ROWS + r;
            rows[r] = row < matrix->n_rows ? (const uint8_t *)matrix->tensor->data +
                                                 model_tensor_row(&at, first_of_one + row) * row_bytes
                                           : zeros;
        }
        matrix->packing->pack(rows, n_blocks, matrix->groups + g * matrix->group_bytes);
    }
}

void matrix_read_row(const struct matrix *matrix, uint32_t row, float *ret_row)
{
    enum { AT_ONCE = 256 }; /* columns: a whole number of every format's blocks */
    float columns[AT_ONCE][KERNELS_ROWS];
    const struct packing *packing = matrix->packing;
    const uint8_t *group = matrix->groups + row / KERNELS_ROWS * matrix->group_bytes;
    for (uint32_t at = 0; at < matrix->n_columns; at += AT_ONCE) {
        uint32_t n = matrix->n_columns - at < AT_ONCE ? matrix->n_columns - at : AT_ONCE;
        uint32_t n_blocks = n / packing->block_columns;
        packing->unpack(group, n_blocks, columns[0]);
        group += (size_t)n_blocks * packing->packed_block_bytes;
        for (uint32_t i = 0; i < n; i++)
            ret_row[at + i] = columns[i][row % KERNELS_ROWS];
    }
}

/* The weights of a group as floats, in the thread's own scratch. */
static const uint8_t *unpacked(const struct multiplier *multiplier, const struct matrix *matrix,
                               const uint8_t *group, uint32_t index)
{
    float *scratch = multiplier->scratch[index];
    matrix->packing->unpack(group, matrix->n_columns / matrix->packing->block_columns, scratch);
    return (const uint8_t *)scratch;
}

/* Groups of one product that a thread has claimed. */
struct claim {
    const struct product *product;
    const struct activations *x;
    uint32_t first, end, thread;
};

static void multiply_groups(const struct multiplier *multiplier, const struct claim *claim)
{
    const struct product *product = claim->product;
    const struct matrix *matrix = product->matrix;
    const struct kernels *kernels = multiplier->kernels;
    const uint8_t *groups = matrix->groups + (size_t)product->index * matrix->n_groups * matrix->group_bytes;
    const float *bias =
        matrix->bias ? matrix->bias + (size_t)product->index * matrix->n_groups * KERNELS_ROWS : NULL;
    bool plain = matrix->packing->quantized && multiplier->float_activations;
    kernel_multiply *one = kernels->multiply[plain ? FORMAT_F32 : matrix->tensor->format];
    kernel_multiply *two = plain ? NULL : kernels->multiply_pair[matrix->tensor->format];
    bool tiled = !plain && claim->x->tiles && product->first % KERNELS_MANY == 0;
    kernel_multiply *many = tiled ? kernels->multiply_many[matrix->tensor->format] : NULL;
    const uint32_t end = product->first + product->n, most = many ? kernels->many_rows : ROWS_PER_TILE;
    for (uint32_t row = product->first; row < end; row += most) {
        uint32_t n = end - row < most ? end - row : most;
        uint32_t whole = many ? n / KERNELS_MANY * KERNELS_MANY : 0;
        for (uint32_t g = claim->first, n_groups; g < claim->end; g += n_groups) {
            n_groups = two && claim->end - g >= 2 && product->n >= ROWS_FOR_PAIRS ? 2 : 1;
            struct group_product group = {.group = groups + g * matrix->group_bytes,
                                          .apart = matrix->group_bytes,
                                          .from_memory = row == product->first,
                                          .n_columns = matrix->n_columns,
                                          .x = claim->x,
                                          .out = product->out + (size_t)g * KERNELS_ROWS,
                                          .out_stride = product->out_stride};
            if (plain)
                group.group = unpacked(multiplier, matrix, group.group, claim->thread);
            uint32_t tiled_rows = n_groups == kernels->many_groups ? whole : 0;
            if (tiled_rows)
                many(&group, row, tiled_rows);
            if (n > tiled_rows)
                (n_groups == 2 ? two : one)(&group, row + tiled_rows, n - tiled_rows);
            if (bias)
                for (uint32_t i = row; i < row + n; i++)
                    kernels->add(group.out + i * product->out_stride, bias + (size_t)g * KERNELS_ROWS,
                                 n_groups * KERNELS_ROWS);
        }
    }
}

void multiplier_share(const struct multiplier *multiplier, const struct product *products,
                      uint32_t n_products, const struct activations *x, uint32_t thread)
{
    uint32_t total = 0, rows = 0;
    for (uint32_t i = 0; i < n_products; i++) {
        total += products[i].matrix->n_groups;
        rows = products[i].n > rows ? products[i].n : rows;
    }
    const uint32_t at_once = rows <= ROWS_PER_TILE ? CLAIMS_AT_ONCE : 1;
    /* A thread's claims rise: what product they begin in is looked for from the last one's on. */
    uint32_t first, end, begin = 0, base = 0;
    while (threads_claim_run(multiplier->threads, total, GROUPS_PER_CLAIM, at_once, &first, &end)) {
        for (; base + products[begin].matrix->n_groups <= first; begin++)
            base += products[begin].matrix->n_groups;
        /* A claim may reach from one product into the next. */
        for (uint32_t i = begin, at = base; i < n_products && at < end; i++) {
            uint32_t groups = products[i].matrix->n_groups;
            uint32_t from = first > at ? first - at : 0;
            uint32_t to = end - at < groups ? end - at : groups;
            multiply_groups(multiplier, &(struct claim){&products[i], x, from, to, thread});
            at += groups;
        }
    }
}
