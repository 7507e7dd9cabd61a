/* SPDX-License-Identifier: MIT */
#ifndef CPU_KERNELS_TILE_H
#define CPU_KERNELS_TILE_H

/* The loop of every product with quantized weights: a tile of a few activation rows goes through the blocks
 * of a group, so each block is unpacked once for all rows. A format provides a function that adds the
 * products of one block to the sums; everything is inlined into one loop for each number of rows. */

#include "cpu/kernels/build.h"
#include "cpu/lanes/rows.h"
#include "cpu/kernels/packing.h"

#define TILE_MAX 8

/* The activations for a block of weights: `n` rows (a constant) from `first_row`, starting at `column`. */
struct tile {
    const struct activations *x;
    size_t first_row;
    uint32_t column;
    int n;
    size_t apart; /* distance from a block to its neighbour in the pair's second group; or the part of a
                     group, if a group takes several vectors */
    const uint8_t *ahead; /* weights of one block to prefetch meanwhile (tile_ask); or NULL */
};

#if defined(LANES_SQUARES)
#include "cpu/kernels/squares.h"
#else

/* The activations for sum i from `column` on: row i. */
LANES_INLINE const int8_t *tile_quants(const struct tile *tile, int i, uint32_t column)
{
    return tile->x->quants + (tile->first_row + (size_t)i) * tile->x->stride + tile->column + column;
}

/* The index in scales, sums and half_sums of the block of 32 activations with `column` of row i. */
LANES_INLINE size_t tile_block(const struct tile *tile, int i, uint32_t column)
{
    return (tile->first_row + (size_t)i) * (tile->x->stride / KERNELS_BLOCK) +
           (tile->column + column) / KERNELS_BLOCK;
}

LANES_INLINE rows_f32 tile_scale(const struct tile *tile, int i, uint32_t column)
{
    return rows_f32_splat(tile->x->scales[tile_block(tile, i, column)]);
}

LANES_INLINE rows_f32 tile_sum(const struct tile *tile, int i, uint32_t column)
{
    return rows_f32_splat(tile->x->sums[tile_block(tile, i, column)]);
}

LANES_INLINE const int16_t *tile_halves(const struct tile *tile, int i, uint32_t column)
{
    return tile->x->half_sums + 2 * tile_block(tile, i, column);
}

LANES_INLINE rows_i32 tile_half_sum(const struct tile *tile, int i, uint32_t column, int half)
{
    return rows_i32_splat(tile_halves(tile, i, column)[half]);
}

/* Part `part` of n rows from `first` on. */
LANES_INLINE void store_sums(const struct group_product *product, uint32_t first, const int n, const int part,
                             const rows_f32 sums[TILE_MAX])
{
    UNROLLED
    for (int i = 0; i < n; i++)
        rows_f32_store(product->out + (first + (size_t)i) * product->out_stride + part * LANES_ROWS, sums[i]);
}

#endif

/* The argument of loads from a group, for one of its vectors. */
LANES_INLINE size_t apart_of(const struct group_product *product, const int part)
{
    return LANES_PARTS > 1 ? (size_t)part : product->apart;
}

/* Adds the products of one packed block to the sums of the tile's rows. */
typedef void tile_add(const void *block, const struct tile *tile, rows_f32 sums[TILE_MAX]);

/* How a format prefetches weights, in builds with LANES_ASKS_IN_PARTS. Others use ASK_AT_ONCE.
 * docs/PERFORMANCE.md, steps 14 and 22, has the gains. */
enum asking {
    ASK_AT_ONCE,  /* for a block's bytes, into the second-level cache */
    ASK_NEAREST,  /* the same, into the first level: blocks of a few lines */
    ASK_IN_PARTS, /* a few lines at a time, between products: by tile_ask */
};

#if defined(LANES_ASKS_IN_PARTS)
#define ASKING(wanted) (wanted)
#else
#define ASKING(wanted) ASK_AT_ONCE
#endif

/* `nearest` is a constant. */
LANES_INLINE void ask_for(const uint8_t *from, uint32_t bytes, const bool nearest)
{
    for (uint32_t i = 0; i < bytes; i += 64)
        if (nearest)
            __builtin_prefetch(from + i, 0, 3);
        else
            __builtin_prefetch(from + i, 0, 2);
}

/* Prefetches part `part` of `parts` of a block of `bytes`; all but `tile` are constants. */
LANES_INLINE void tile_ask(const struct tile *tile, const int part, const int parts, const uint32_t bytes,
                           const bool nearest)
{
    const uint32_t each = bytes / (uint32_t)parts;
    if (ASKING(ASK_IN_PARTS) == ASK_IN_PARTS && tile->ahead)
        ask_for(tile->ahead + (uint32_t)part * each, each, nearest);
}

/* The first rows of a group wait for memory, so prefetch the weights two pages ahead, into the second-level
 * cache: the first level has too few fill buffers for all lines of a superblock. Past the end of a pair's
 * group is the next pair. Prefetching past the weights is harmless. */
LANES_INLINE void ask_at_once(const struct group_product *product, const uint8_t *block, uint32_t bytes)
{
    size_t ahead = 8192;
    if (LANES_GROUPS > 1 && (size_t)(block - product->group) + ahead >= product->apart)
        ahead += product->apart;
    for (uint32_t group = 0; group < LANES_GROUPS; group++)
        ask_for(block + group * product->apart + ahead, bytes, false);
}

LANES_INLINE void clear_sums(rows_f32 sums[TILE_MAX], const int n)
{
    UNROLLED
    for (int i = 0; i < n; i++)
        sums[i] = rows_f32_splat(0);
}

/* Rows first … first + n − 1. `columns` and `bytes` are of one packed block; all but `product` and `first`
 * are constants. */
LANES_INLINE void multiply_tile(const struct group_product *product, uint32_t first, const int n,
                                const uint32_t columns, const uint32_t bytes, const enum asking asking,
                                tile_add *add)
{
    const uint8_t *block = product->group;
    const uint32_t n_columns = product->n_columns;
    rows_f32 sums[LANES_PARTS][TILE_MAX];
    clear_sums(sums[0], n);
    if (LANES_PARTS > 1)
        clear_sums(sums[LANES_PARTS - 1], n);
    for (uint32_t column = 0; column < n_columns; column += columns, block += bytes) {
        struct tile tile = {product->x, first, column, n, apart_of(product, 0), NULL};
        if (product->from_memory && asking == ASK_IN_PARTS)
            tile.ahead = block + 8192;
        else if (product->from_memory && asking == ASK_NEAREST)
            ask_for(block + 4096, bytes, true);
        else if (product->from_memory)
            ask_at_once(product, block, bytes);
        add(block, &tile, sums[0]);
        if (LANES_PARTS > 1) {
            const struct tile last = {product->x, first, column, n, apart_of(product, LANES_PARTS - 1), NULL};
            add(block, &last, sums[LANES_PARTS - 1]);
        }
    }
    store_sums(product, first, n, 0, sums[0]);
    if (LANES_PARTS > 1)
        store_sums(product, first, n, LANES_PARTS - 1, sums[LANES_PARTS - 1]);
}

/* Defines the kernel_multiply `name` from `tile`, an inlined function for a few activation rows; further
 * arguments are passed to it, and are constants. If loops are unrolled, it is compiled for eight, four, two
 * and one rows, else for any number up to eight; if sums are squares, for eight. */
#if defined(LANES_SQUARES)
#define DEFINE_MULTIPLY(name, tile, ...)                                                                     \
    void LANES_NAMED(name)(const struct group_product *product, uint32_t first, uint32_t n)                  \
    {                                                                                                        \
        for (uint32_t i = first; i < first + n; i += TILE_MAX)                                               \
            tile(product, i, TILE_MAX, __VA_ARGS__);                                                         \
    }
#elif defined(LANES_UNROLL)
#define DEFINE_MULTIPLY(name, tile, ...)                                                                     \
    void LANES_NAMED(name)(const struct group_product *product, uint32_t first, uint32_t n)                  \
    {                                                                                                        \
        uint32_t i = first, end = first + n;                                                                 \
        for (; end - i >= 8; i += 8)                                                                         \
            tile(product, i, 8, __VA_ARGS__);                                                                \
        switch (end - i) {                                                                                   \
        case 7:                                                                                              \
            tile(product, i, 7, __VA_ARGS__);                                                                \
            break;                                                                                           \
        case 6:                                                                                              \
            tile(product, i, 6, __VA_ARGS__);                                                                \
            break;                                                                                           \
        case 5:                                                                                              \
            tile(product, i, 5, __VA_ARGS__);                                                                \
            break;                                                                                           \
        case 4:                                                                                              \
            tile(product, i, 4, __VA_ARGS__);                                                                \
            break;                                                                                           \
        case 3:                                                                                              \
            tile(product, i, 3, __VA_ARGS__);                                                                \
            break;                                                                                           \
        case 2:                                                                                              \
            tile(product, i, 2, __VA_ARGS__);                                                                \
            break;                                                                                           \
        case 1:                                                                                              \
            tile(product, i, 1, __VA_ARGS__);                                                                \
            break;                                                                                           \
        default:                                                                                             \
            break;                                                                                           \
        }                                                                                                    \
    }
#else
#define DEFINE_MULTIPLY(name, tile, ...)                                                                     \
    void LANES_NAMED(name)(const struct group_product *product, uint32_t first, uint32_t n)                  \
    {                                                                                                        \
        for (uint32_t i = first, end = first + n; i < end; i += TILE_MAX)                                    \
            tile(product, i, (int)(end - i < TILE_MAX ? end - i : TILE_MAX), __VA_ARGS__);                   \
    }
#endif

/* The same for a quantized format whose groups are structs `block` of `columns` columns. */
#define DEFINE_BLOCK_MULTIPLY(name, columns, block, add)                                                     \
    DEFINE_ASKING_MULTIPLY(name, columns, block, ASK_AT_ONCE, add)

/* The same for a format with another way of prefetching. */
#define DEFINE_ASKING_MULTIPLY(name, columns, block, asking, add)                                            \
    DEFINE_MULTIPLY(name, multiply_tile, columns, sizeof(block), ASKING(asking), add)

#endif
