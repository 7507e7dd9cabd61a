/* SPDX-License-Identifier: MIT */
/* Activations as products of many rows want them on ARM: eight columns of two rows beside each other. A block
 * of sixteen rows is [8 pairs of rows][4][2 rows][8 columns]. */

#include "cpu/kernels/build.h"

enum { COLUMNS = 8, OF_PAIR = 2 * COLUMNS };

void quantize_i8mm(const struct activations *x, uint32_t row)
{
    size_t n_blocks = x->stride / KERNELS_BLOCK, from = row * n_blocks;
    size_t to = row / KERNELS_MANY * n_blocks * KERNELS_MANY + row % KERNELS_MANY;
    quantize_dotprod(x, row);
    if (!x->tiles)
        return;
    for (size_t b = 0; b < n_blocks; b++, from++, to += KERNELS_MANY) {
        int8_t *pair = x->tiles + (to - row % 2) * KERNELS_BLOCK;
        for (size_t i = 0; i < KERNELS_BLOCK / COLUMNS; i++)
            memcpy(pair + i * OF_PAIR + row % 2 * COLUMNS, x->quants + from * KERNELS_BLOCK + i * COLUMNS,
                   COLUMNS);
        x->tile_scales[to] = x->scales[from];
        x->tile_sums[to] = x->sums[from];
    }
}
