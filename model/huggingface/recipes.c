/* SPDX-License-Identifier: MIT */
/* Row by row: each row of the result is one of the published tensor, or a column of it, and its numbers are
 * copied, or turned into floats and back. Files may begin anywhere, so that numbers are read by way of memory
 * that is aligned. */

#include "model/huggingface/recipes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MXFP4_BYTES  17 /* of a block: exponent, 16 bytes of pairs */
#define MXFP4_VALUES 32

enum format recipe_wanted(const struct recipe *recipe)
{
    const enum how how = recipe->place->how;
    if (recipe->exponents)
        return FORMAT_MXFP4;
    return recipe->place->plain || how == ONE_ADDED || how == DECAY ? FORMAT_F32 : recipe->format;
}

bool recipe_is_copy(const struct recipe *recipe)
{
    return recipe->place->how == COPIED && !recipe->place->turned && !recipe->is_fp8 && !recipe->exponents &&
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

static uint64_t row_there(const struct recipe *recipe, uint64_t row)
{
    if (recipe->place->rows == 0)
        return row;
    switch (recipe->place->how) {
    case SECOND_HALF:
        return recipe->place->rows + row;
    case EVEN_ROWS:
        return 2 * row;
    case ODD_ROWS:
        return 2 * row + 1;
    case VALUE_HEADS:
        return by_heads(recipe, row, recipe->place->rows);
    case COPIED:
    case ONE_ADDED:
    case DECAY:
    case TURNED:
    case FIRST_HALF:
    case MXFP4_BLOCKS:
    case VALUE_COLUMNS:
        break;
    }
    return row;
}

/* What a row is made with. */
struct bench {
    const struct recipe *recipe;
    float e4m3[256];    /* of every byte */
    float *row, *other; /* [columns] */
};

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

/* Times its scales, block by block. */
static void scale_row(const struct recipe *recipe, uint64_t matrix, uint64_t row, float *out)
{
    const uint64_t columns = columns_there(recipe->place);
    for (uint64_t c = 0; c < columns;) {
        const float scale = quantization_scale(&recipe->scales, matrix, row, c);
        const uint64_t end = columns - c < recipe->scales.columns ? columns : c + recipe->scales.columns;
        for (; c < end; c++)
            out[c] *= scale;
    }
}

/* A row as it is there, or a column that is one here. */
static void read_row(const struct bench *bench, uint64_t matrix, uint64_t row, float *out)
{
    const struct recipe *recipe = bench->recipe;
    const struct place *place = recipe->place;
    const uint64_t rows = rows_there(place), columns = columns_there(place);
    const uint8_t *data = recipe->tensor->data;
    const size_t size = recipe->tensor->element_size;
    if (!place->turned) {
        convert(bench, data + (matrix * rows + row) * columns * size, out, columns);
        if (recipe->is_fp8)
            scale_row(recipe, matrix, row, out);
        return;
    }
    for (uint64_t c = 0; c < columns; c++) {
        convert(bench, data + ((matrix * columns + c) * rows + row) * size, &out[c], 1);
        if (recipe->is_fp8)
            out[c] *= quantization_scale(&recipe->scales, matrix, c, row);
    }
}

/* Where number c of a row is in what was read. */
static uint64_t column_there(const struct recipe *recipe, uint64_t c)
{
    const struct place *place = recipe->place;
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

/* The numbers of a row, as they shall be. */
static const float *make_row(const struct bench *bench, uint64_t matrix, uint64_t row)
{
    const struct place *place = bench->recipe->place;
    read_row(bench, matrix, row, bench->row);
    if (is_row_done(place))
        return bench->row;
    for (uint64_t c = 0; c < place->columns; c++) {
        const float number = bench->row[column_there(bench->recipe, c)];
        bench->other[c] = place->how == ONE_ADDED ? number + 1
                          : place->how == DECAY   ? (float)-exp((double)number)
                                                  : number;
    }
    return bench->other;
}

/* Pairs of nibbles there are neighbours, here the halves of a block. */
static void repack_row(const struct recipe *recipe, uint64_t matrix, uint64_t row, uint8_t *out)
{
    const struct place *place = recipe->place;
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
    const enum how how = recipe->place->how;
    return recipe_wanted(recipe) == recipe->format && !recipe->is_fp8 && !recipe->place->turned &&
           how != VALUE_COLUMNS && how != ONE_ADDED && how != DECAY && recipe->place->rows > 0;
}

static void fill_row(const struct bench *bench, uint64_t matrix, uint64_t row, uint8_t *out)
{
    const struct recipe *recipe = bench->recipe;
    const struct place *place = recipe->place;
    const uint64_t there = row_there(recipe, row);
    if (recipe->exponents) {
        repack_row(recipe, matrix, there, out);
    } else if (is_row_copied(recipe)) {
        const size_t bytes = format_bytes(recipe->format, place->columns);
        memcpy(out, recipe->tensor->data + (matrix * rows_there(place) + there) * bytes, bytes);
    } else {
        format_traits(recipe_wanted(recipe))->from_float(make_row(bench, matrix, there), out, place->columns);
    }
}

int recipe_fill(const struct recipe *recipe, void *out)
{
    const struct place *place = recipe->place;
    const uint64_t rows = place->rows ? place->rows : 1, matrices = place->stacked ? place->count : 1;
    const size_t bytes = format_bytes(recipe_wanted(recipe), place->columns);
    struct bench bench = {.recipe = recipe, .row = calloc(columns_there(place), 2 * sizeof(float))};
    uint8_t *next = out;
    if (!bench.row)
        return -ENOMEM;
    bench.other = bench.row + columns_there(place);
    for (unsigned i = 0; i < 256 && recipe->is_fp8; i++)
        bench.e4m3[i] = quantization_e4m3((uint8_t)i);
    for (uint64_t m = 0; m < matrices; m++)
        for (uint64_t r = 0; r < rows; r++, next += bytes)
            fill_row(&bench, m, r, next);
    free(bench.row);
    return 0;
}
