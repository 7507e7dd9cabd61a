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

/* Which of the wide tiles are shared: as the way says, where $QUERN_SHARES does not say otherwise. */
static struct stream_k shares_of(uint32_t n_tiles, uint32_t n_columns, enum product_way way,
                                 const struct multiply_scratch *scratch)
{
    const struct stream_k none = {n_tiles, 0, 0};
    enum stream_k_rule rule = scratch ? scratch->rule : STREAM_K_NEVER;
    if (rule == STREAM_K_PLANNED && way == PRODUCT_WIDE)
        rule = STREAM_K_NEVER;
    if (rule == STREAM_K_PLANNED && way == PRODUCT_SHARED)
        rule = STREAM_K_ALWAYS;
    return scratch ? stream_k_plan(n_tiles, n_columns / STEP, scratch->n_multiprocessors, rule) : none;
}

static int launch_wide(struct device_stream *queue, const struct products *products,
                       const struct device_activations *x, const struct multiply_step *step)
{
    const uint32_t n_groups = blocks_of(products, WIDE_ROWS),
                   n_x_groups = (step->n_rows + WIDE_X_ROWS - 1) / WIDE_X_ROWS;
    uint32_t n_columns = 0;
    for (uint32_t p = 0; p < products->n; p++)
        n_columns = products->matrices[p].padded_columns > n_columns ? products->matrices[p].padded_columns
                                                                     : n_columns;
    const struct stream_k shares = shares_of(n_groups * n_x_groups, n_columns, step->way, step->scratch);
    if (shares.n_shares > 0)
        return multiply_stream_k(queue, products, x, step->n_rows, &shares, step->scratch);
    return simt_launch(queue, "multiply_wide", multiply_wide, {n_groups, n_x_groups, 1}, {WIDE_THREADS, 1, 1},
                       sizeof(wide_shared), *products, *x, step->n_rows);
}

/* Where nothing was measured. */
static enum product_way way_by_rows(uint32_t n_rows)
{
    return n_rows >= WIDE_FROM ? PRODUCT_WIDE : n_rows <= 8 ? PRODUCT_THIN_8 : PRODUCT_THIN_16;
}

enum product_way kernels_multiply_rule(const struct device_product *products, uint32_t n_products,
                                       uint32_t n_rows, const struct multiply_scratch *scratch)
{
    uint32_t n_groups = 0, n_columns = 0;
    const enum product_way way = way_by_rows(n_rows);
    for (uint32_t p = 0; p < n_products; p++) {
        const struct device_matrix *matrix = products[p].matrix;
        n_groups += (matrix->n_rows + WIDE_ROWS - 1) / WIDE_ROWS;
        n_columns = matrix->padded_columns > n_columns ? matrix->padded_columns : n_columns;
    }
    if (way != PRODUCT_WIDE)
        return way;
    const uint32_t n_tiles = n_groups * ((n_rows + WIDE_X_ROWS - 1) / WIDE_X_ROWS);
    return shares_of(n_tiles, n_columns, PRODUCT_BY_RULE, scratch).n_shares > 0 ? PRODUCT_SHARED
                                                                                : PRODUCT_WIDE;
}

int multiply_tiles(struct device_stream *queue, const struct products *products,
                   const struct device_activations *x, const struct multiply_step *step)
{
    enum product_way way = step->way;
    if (way == PRODUCT_BY_RULE || way == PRODUCT_LIBRARY)
        way = way_by_rows(step->n_rows);
    switch (way) {
    case PRODUCT_THIN_8:
        return launch_thin<1>(queue, products, x, step->n_rows);
    case PRODUCT_THIN_16:
        return launch_thin<2>(queue, products, x, step->n_rows);
    case PRODUCT_WIDE:
    case PRODUCT_SHARED:
    case PRODUCT_BY_RULE:
    case PRODUCT_LIBRARY:
    case PRODUCT_WAYS:
        break;
    }
    return launch_wide(queue, products, x, step);
}
