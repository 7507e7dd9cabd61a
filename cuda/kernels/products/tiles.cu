/* SPDX-License-Identifier: MIT */
/* Products of many rows, or of any number where a row's bits may not depend on it: tiles of tile.h. */

#include "cuda/kernels/products/tile.h"

#define WIDE_FROM 33 /* rows of x */

/* The block's tile of M rows of a product by N of x. */
template <uint32_t M, uint32_t N>
static __device__ inline struct tile_task task_of_block(const struct products &products,
                                                        const struct device_activations &x, uint32_t n_x_rows)
{
    const struct block_share share = share_of_block(products, M);
    return tile_task{&products.matrices[share.product], &x, share.row, blockIdx.y * N, n_x_rows, 0, NULL};
}

/* Row `row` and row x_row of the block's tile. Where that is, is found again: kept meanwhile it would take
 * registers of the product. */
template <uint32_t M, uint32_t N>
static __device__ inline void store_output(const struct products &products, uint32_t n_x_rows, uint32_t row,
                                           uint32_t x_row, float sum)
{
    store_product(products, share_of_block(products, M), row, blockIdx.y * N + x_row, n_x_rows, sum);
}

/* Grid: [groups of THIN_ROWS rows of all matrices][groups of 8 · NB rows of x]. */
template <uint32_t NB>
static __global__ void __launch_bounds__(PARTS *SIMT_LANES, 2)
    multiply_thin(const __grid_constant__ struct products products,
                  const __grid_constant__ struct device_activations x, uint32_t n_x_rows)
{
    simt_start();
    thin_tile<NB, false>(task_of_block<THIN_ROWS, 8 * NB>(products, x, n_x_rows),
                         [&](uint32_t row, uint32_t x_row, float sum) {
                             store_output<THIN_ROWS, 8 * NB>(products, n_x_rows, row, x_row, sum);
                         });
}

template <uint32_t NB>
static int launch_thin(struct device_stream *queue, const struct products *products,
                       const struct device_activations *x, uint32_t n_rows)
{
    return simt_launch(queue, "multiply_thin", multiply_thin<NB>,
                       {blocks_of(products, THIN_ROWS), (n_rows + 8 * NB - 1) / (8 * NB), 1},
                       {PARTS * SIMT_LANES, 1, 1}, sizeof(union thin_shared<NB>), *products, *x, n_rows);
}

/* Grid: [groups of WIDE_ROWS rows of all matrices][groups of WIDE_X_ROWS rows of x]. */
static __global__ void __launch_bounds__(WIDE_THREADS, STREAM_K_AT_ONCE)
    multiply_wide(const __grid_constant__ struct products products,
                  const __grid_constant__ struct device_activations x, uint32_t n_x_rows)
{
    simt_start();
    wide_tile<false>(task_of_block<WIDE_ROWS, WIDE_X_ROWS>(products, x, n_x_rows),
                     [&](uint32_t row, uint32_t x_row, float sum) {
                         store_output<WIDE_ROWS, WIDE_X_ROWS>(products, n_x_rows, row, x_row, sum);
                     });
}

static int launch_wide(struct device_stream *queue, const struct products *products,
                       const struct device_activations *x, uint32_t n_rows,
                       const struct multiply_scratch *scratch)
{
    const uint32_t n_groups = blocks_of(products, WIDE_ROWS),
                   n_x_groups = (n_rows + WIDE_X_ROWS - 1) / WIDE_X_ROWS;
    struct stream_k shares = {};
    uint32_t n_columns = 0;
    for (uint32_t p = 0; p < products->n; p++)
        n_columns = products->matrices[p].padded_columns > n_columns ? products->matrices[p].padded_columns
                                                                     : n_columns;
    if (scratch)
        shares =
            stream_k_plan(n_groups * n_x_groups, n_columns / STEP, scratch->n_multiprocessors, scratch->rule);
    if (shares.n_shares > 0)
        return multiply_stream_k(queue, products, x, n_rows, &shares, scratch);
    return simt_launch(queue, "multiply_wide", multiply_wide, {n_groups, n_x_groups, 1}, {WIDE_THREADS, 1, 1},
                       sizeof(wide_shared), *products, *x, n_rows);
}

int multiply_tiles(struct device_stream *queue, const struct products *products,
                   const struct device_activations *x, uint32_t n_rows,
                   const struct multiply_scratch *scratch)
{
    if (n_rows >= WIDE_FROM)
        return launch_wide(queue, products, x, n_rows, scratch);
    return n_rows <= 8 ? launch_thin<1>(queue, products, x, n_rows)
                       : launch_thin<2>(queue, products, x, n_rows);
}
