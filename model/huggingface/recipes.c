/* SPDX-License-Identifier: MIT */
/* Row by row: each row of the result is one of the published tensor, or a column of it, and its numbers are
 * copied, or turned into floats and back. Files may begin anywhere, so that numbers are read by way of memory
 * that is aligned.
 *
 * Columns that become rows are read in tiles, a few lines of the cache of each published row: one column at a
 * time would read every line of a matrix once for each of the columns in it. */

#include "model/huggingface/recipes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MXFP4_BYTES  17 /* of a block: exponent, 16 bytes of pairs */
#define MXFP4_VALUES 32

enum format recipe_wanted(const struct recipe *recipe)
{
    const enum how how = recipe->place.how;
    if (recipe->exponents)
        return FORMAT_MXFP4;
    return recipe->place.plain || how == ONE_ADDED || how == DECAY ? FORMAT_F32 : recipe->format;
}

bool recipe_is_copy(const struct recipe *recipe)
{
    return recipe->place.how == COPIED && !recipe->place.turned && !recipe->is_fp8 && !recipe->exponents &&
           recipe_wanted(recipe) == recipe->format &&
           (uintptr_t)recipe->tensor->data % recipe->tensor->element_size == 0;
}

/* Value heads that share a key head are neighbours there, and one round apart here. */
static uint64_t head_there(const struct recipe *recipe, uint64_t head)
{
    const uint64_t keys = recipe->n_key_heads, each = recipe->n_value_heads / keys;
    return head % keys * each + head / keys;
}

/* Where number i stands there, of those of which the last n_value_heads · dim belong to value heads. */
static uint64_t by_heads(const struct recipe *recipe, uint64_t i, uint64_t n)
{
    const uint64_t heads = recipe->n_value_heads;
    const uint64_t dim = n % heads == 0 && n / heads < recipe->value_dim ? n / heads : recipe->value_dim;
    const uint64_t first = n - heads * dim;
    return i < first ? i : first + head_there(recipe, (i - first) / dim) * dim + (i - first) % dim;
}

/* Rows there, of one matrix, and numbers in each. */
static uint64_t rows_there(const struct place *place)
{
    return place->rows == 0 ? 1 : (uint64_t)place->rows * (names_is_half(place->how) ? 2 : 1);
}

static uint64_t columns_there(const struct place *place)
{
    return (uint64_t)place->columns * (place->rows == 0 && names_is_half(place->how) ? 2 : 1);
}

/* The same of the published tensor, whose rows may be columns. */
static uint64_t tensor_rows(const struct recipe *recipe)
{
    return recipe->place.turned ? columns_there(&recipe->place) : rows_there(&recipe->place);
}

static uint64_t tensor_columns(const struct recipe *recipe)
{
    return recipe->place.turned ? rows_there(&recipe->place) : columns_there(&recipe->place);
}

static uint64_t row_there(const struct recipe *recipe, uint64_t row)
{
    if (recipe->place.rows == 0)
        return row;
    switch (recipe->place.how) {
    case SECOND_HALF:
        return recipe->place.rows + row;
    case EVEN_ROWS:
        return 2 * row;
    case ODD_ROWS:
        return 2 * row + 1;
    case VALUE_HEADS:
        return by_heads(recipe, row, recipe->place.rows);
    case COPIED:
    case ONE_ADDED:
    case DECAY:
    case TURNED:
    case FIRST_HALF:
    case VALUE_COLUMNS:
        break;
    }
    return row;
}

/* What rows are made with. */
struct bench {
    const struct recipe *recipe;
    float e4m3[256]; /* of every byte */
    float *rows;     /* [AT_ONCE][columns there]; one row where none are turned */
    float *other;    /* [columns] */
    uint32_t *order; /* [columns]: where a row's numbers are in what was read; NULL: in their order */
    struct error *err;
};

#define TILE    64         /* columns there, rows of it */
#define AT_ONCE 64         /* rows of the result that are read together, if columns become rows */
#define SPAN    (2 * TILE) /* columns that may lie between the first and the last of a tile */

static void convert(const struct bench *bench, const uint8_t *in, float *out, size_t n)
{
    _Alignas(8) uint8_t aligned[256 * 4];
    const struct recipe *recipe = bench->recipe;
    const size_t size = recipe->tensor->element_size;
    for (size_t at = 0; at < n; at += 256) {
        const size_t some = n - at < 256 ? n - at : 256;
        memcpy(aligned, in + at * size, some * size);
        if (recipe->is_fp8)
            for (size_t i = 0; i < some; i++)
                out[at + i] = bench->e4m3[aligned[i]];
        else
            format_traits(recipe->format)->to_float(aligned, out + at, some);
    }
}

/* The numbers from `first` on of a row there, times their scales, block by block. */
static int read_part(const struct bench *bench, uint64_t matrix, uint64_t row, uint64_t first, uint64_t n,
                     float *out)
{
    const struct recipe *recipe = bench->recipe;
    const struct safetensor *tensor = recipe->tensor;
    const uint64_t rows = tensor_rows(recipe), columns = tensor_columns(recipe);
    convert(bench, tensor->data + ((matrix * rows + row) * columns + first) * tensor->element_size, out, n);
    for (uint64_t c = first; recipe->is_fp8 && c < first + n;) {
        const float scale = quantization_scale(&recipe->scales, matrix, row, c);
        const uint64_t block = recipe->scales.columns, next = (c / block + 1) * block;
        if (!isfinite(scale))
            return error_set(bench->err, -EINVAL, "tensor %s holds %g", recipe->scales.tensor->name,
                             (double)scale);
        for (; c < next && c < first + n; c++)
            out[c - first] *= scale;
    }
    return 0;
}

/* How many rows from `first` on are columns there that lie together; *ret_from, *ret_n: those columns. */
static uint64_t gather(const struct recipe *recipe, uint64_t first, uint64_t most, uint64_t *ret_from,
                       uint64_t *ret_n)
{
    uint64_t least = row_there(recipe, first), last = least, n = 1;
    for (; n < most && n < AT_ONCE; n++) {
        const uint64_t next = row_there(recipe, first + n);
        const uint64_t low = next < least ? next : least, high = next > last ? next : last;
        if (high - low >= SPAN)
            break;
        least = low;
        last = high;
    }
    *ret_from = least;
    *ret_n = last - least + 1;
    return n;
}

/* Columns there become rows here, in tiles: up to `most` rows from `first` on; *ret_n: how many were read. */
static int read_turned(const struct bench *bench, uint64_t matrix, uint64_t first, uint64_t most,
                       uint64_t *ret_n)
{
    const struct recipe *recipe = bench->recipe;
    const uint64_t columns = columns_there(&recipe->place);
    uint64_t from, wide;
    const uint64_t n = gather(recipe, first, most, &from, &wide);
    float tile[TILE][SPAN];
    for (uint64_t at = 0; at < columns; at += TILE) {
        const uint64_t deep = columns - at < TILE ? columns - at : TILE;
        for (uint64_t c = 0; c < deep; c++) {
            int r = read_part(bench, matrix, at + c, from, wide, tile[c]);
            if (r < 0)
                return r;
        }
        for (uint64_t row = 0; row < n; row++) {
            const uint64_t there = row_there(recipe, first + row) - from;
            for (uint64_t c = 0; c < deep; c++)
                bench->rows[row * columns + at + c] = tile[c][there];
        }
    }
    *ret_n = n;
    return 0;
}

/* Where number c of a row is in what was read. */
static uint64_t column_there(const struct recipe *recipe, uint64_t c)
{
    const struct place *place = &recipe->place;
    if (place->how == VALUE_COLUMNS ||
        (place->rows == 0 && (place->how == VALUE_HEADS || place->how == DECAY)))
        return by_heads(recipe, c, place->columns);
    if (place->rows == 0 && names_is_half(place->how))
        return place->how == FIRST_HALF    ? c
               : place->how == SECOND_HALF ? place->columns + c
                                           : 2 * c + (place->how == ODD_ROWS);
    return c;
}

/* Are a row's numbers in their order and as they shall be? Those of most matrices are. */
static bool is_row_done(const struct place *place)
{
    return place->rows > 0 && place->how != VALUE_COLUMNS && place->how != ONE_ADDED && place->how != DECAY;
}

/* The numbers of a row that was read, as they shall be. */
static const float *finish_row(const struct bench *bench, const float *row)
{
    const struct place *place = &bench->recipe->place;
    for (uint64_t c = 0; bench->order && c < place->columns; c++) {
        const float number = row[bench->order[c]];
        bench->other[c] = place->how == ONE_ADDED ? number + 1
                          : place->how == DECAY   ? (float)-exp((double)number)
                                                  : number;
    }
    return bench->order ? bench->other : row;
}

/* Pairs of nibbles there are neighbours, here the halves of a block. */
static void repack_row(const struct recipe *recipe, uint64_t matrix, uint64_t row, uint8_t *out)
{
    const struct place *place = &recipe->place;
    const uint64_t blocks = place->columns / MXFP4_VALUES,
                   first = (matrix * rows_there(place) + row) * blocks;
    for (uint64_t b = 0; b < blocks; b++, out += MXFP4_BYTES) {
        const uint8_t *in = recipe->tensor->data + (first + b) * (MXFP4_VALUES / 2);
        uint8_t values[MXFP4_VALUES];
        for (size_t i = 0; i < MXFP4_VALUES; i++)
            values[i] = in[i / 2] >> (i % 2 * 4) & 15;
        out[0] = recipe->exponents->data[first + b];
        for (size_t i = 0; i < MXFP4_VALUES / 2; i++)
            out[1 + i] = (uint8_t)(values[i] | values[i + MXFP4_VALUES / 2] << 4);
    }
}

/* Is a row's every byte one of the published tensor's, in its order? */
static bool is_row_copied(const struct recipe *recipe)
{
    return recipe_wanted(recipe) == recipe->format && !recipe->is_fp8 && !recipe->place.turned &&
           is_row_done(&recipe->place);
}

static int fill_row(const struct bench *bench, uint64_t matrix, uint64_t row, uint8_t *out)
{
    const struct recipe *recipe = bench->recipe;
    const struct place *place = &recipe->place;
    const uint64_t there = row_there(recipe, row);
    int r = 0;
    if (recipe->exponents) {
        repack_row(recipe, matrix, there, out);
    } else if (is_row_copied(recipe)) {
        const size_t bytes = format_bytes(recipe->format, place->columns);
        memcpy(out, recipe->tensor->data + (matrix * rows_there(place) + there) * bytes, bytes);
    } else {
        r = read_part(bench, matrix, there, 0, columns_there(place), bench->rows);
        if (r == 0)
            format_traits(recipe_wanted(recipe))
                ->from_float(finish_row(bench, bench->rows), out, place->columns);
    }
    return r;
}

/* Rows first … first + n − 1 of one matrix. */
static int fill_matrix(const struct bench *bench, uint64_t matrix, uint64_t first, uint64_t n, uint8_t *out)
{
    const struct recipe *recipe = bench->recipe;
    const enum format wanted = recipe_wanted(recipe);
    const size_t columns = recipe->place.columns, bytes = format_bytes(wanted, columns);
    int r = 0;
    for (uint64_t row = 0, some = 1; row < n && r == 0; row += some) {
        if (!recipe->place.turned) {
            r = fill_row(bench, matrix, first + row, out + row * bytes);
            continue;
        }
        r = read_turned(bench, matrix, first + row, n - row, &some);
        for (uint64_t i = 0; i < some && r == 0; i++)
            format_traits(wanted)->from_float(finish_row(bench, bench->rows + i * columns),
                                              out + (row + i) * bytes, columns);
    }
    return r;
}

static int open_bench(struct bench *bench)
{
    const struct recipe *recipe = bench->recipe;
    const struct place *place = &recipe->place;
    const size_t there = columns_there(place);
    bench->rows = malloc((place->turned ? AT_ONCE : 1) * there * sizeof(float));
    if (!bench->rows)
        return -ENOMEM;
    for (unsigned i = 0; i < 256 && recipe->is_fp8; i++)
        bench->e4m3[i] = quantization_e4m3((uint8_t)i);
    if (is_row_done(place))
        return 0;
    bench->other = malloc(place->columns * sizeof(float));
    bench->order = malloc(place->columns * sizeof *bench->order);
    if (!bench->other || !bench->order)
        return -ENOMEM;
    for (uint32_t c = 0; c < place->columns; c++)
        bench->order[c] = (uint32_t)column_there(recipe, c);
    return 0;
}

uint64_t recipe_rows(const struct recipe *recipe)
{
    const struct place *place = &recipe->place;
    return (uint64_t)(place->rows ? place->rows : 1) * (place->stacked ? place->count : 1);
}

int recipe_fill(const struct recipe *recipe, uint64_t first, uint64_t n, void *out, struct error *err)
{
    const uint64_t rows = recipe->place.rows ? recipe->place.rows : 1;
    const size_t bytes = format_bytes(recipe_wanted(recipe), recipe->place.columns);
    struct bench bench = {.recipe = recipe, .err = err};
    int r = open_bench(&bench);
    for (uint64_t done = 0, some; done < n && r == 0; done += some) {
        const uint64_t row = first + done, left = rows - row % rows;
        some = left < n - done ? left : n - done;
        r = fill_matrix(&bench, row / rows, row % rows, some, (uint8_t *)out + done * bytes);
    }
    free(bench.rows);
    free(bench.other);
    free(bench.order);
    return r == -ENOMEM ? error_set(err, r, "not enough memory for a row of tensor %s", recipe->tensor->name)
                        : r;
}
