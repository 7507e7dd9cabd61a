/* SPDX-License-Identifier: MIT */
#ifndef CPU_KERNELS_SQUARES_H
#define CPU_KERNELS_SQUARES_H

/* The operands of a tile's sums, where each sum covers two activation rows and two weight rows
 * (rows_neon.h): sum 2p + q has the activation rows 2p and 2p + 1 of the tile's eight, lanes [2 activation
 * rows][2 weight rows]. squares.c arranges the activations; a tile begins at a multiple of eight rows.
 * Included by tile.h. */

/* The start of the tile's scales and sums of a block: eight of sixteen. */
LANES_INLINE size_t square_block(const struct tile *tile, uint32_t column)
{
    size_t strip = tile->first_row / KERNELS_MANY * (tile->x->stride / KERNELS_BLOCK);
    return (strip + (tile->column + column) / KERNELS_BLOCK) * KERNELS_MANY + tile->first_row % KERNELS_MANY;
}

LANES_INLINE const int8_t *tile_quants(const struct tile *tile, int i, uint32_t column)
{
    return tile->x->tiles + (square_block(tile, column) + (size_t)(i / 2 * 2)) * KERNELS_BLOCK;
}

/* Those of two rows, each twice. */
LANES_INLINE rows_f32 each_twice(const float *p)
{
    float32x2_t two = vld1_f32(p);
    return vcombine_f32(vdup_lane_f32(two, 0), vdup_lane_f32(two, 1));
}

LANES_INLINE rows_f32 tile_scale(const struct tile *tile, int i, uint32_t column)
{
    return each_twice(tile->x->tile_scales + square_block(tile, column) + i / 2 * 2);
}

LANES_INLINE rows_f32 tile_sum(const struct tile *tile, int i, uint32_t column)
{
    return each_twice(tile->x->tile_sums + square_block(tile, column) + i / 2 * 2);
}

LANES_INLINE const int16_t *tile_halves(const struct tile *tile, int i, uint32_t column)
{
    const size_t n_blocks = tile->x->stride / KERNELS_BLOCK;
    return tile->x->half_sums +
           2 * ((tile->first_row + (size_t)(i / 2 * 2)) * n_blocks + (tile->column + column) / KERNELS_BLOCK);
}

LANES_INLINE rows_i32 tile_half_sum(const struct tile *tile, int i, uint32_t column, int half)
{
    const int16_t *halves = tile_halves(tile, i, column) + half;
    const int16_t *next = halves + 2 * (tile->x->stride / KERNELS_BLOCK);
    return vcombine_s32(vdup_n_s32(*halves), vdup_n_s32(*next));
}

LANES_INLINE void store_sums(const struct group_product *product, uint32_t first, const int n, const int part,
                             const rows_f32 sums[TILE_MAX])
{
    UNROLLED
    for (int i = 0; i < n; i += 2) {
        float *row = product->out + (first + (size_t)i) * product->out_stride + part * LANES_ROWS;
        rows_f32_store(row, vcombine_f32(vget_low_f32(sums[i]), vget_low_f32(sums[i + 1])));
        rows_f32_store(row + product->out_stride,
                       vcombine_f32(vget_high_f32(sums[i]), vget_high_f32(sums[i + 1])));
    }
}

#endif
