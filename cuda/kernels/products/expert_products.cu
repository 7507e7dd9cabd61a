/* SPDX-License-Identifier: MIT */
/* Products of experts: as multiply.cu and tiles.cu, but each assignment (kernels.h) meets its own expert's
 * matrix.
 *
 * A few rows make few assignments, mostly to different experts: each takes gemv.h alone. Of many, those of an
 * expert meet its weights together, in tiles that gather their rows of x. How many tiles there are is known
 * on the device alone, so the grid has the most that there can be, and blocks beyond leave at once. */

#include "cuda/kernels/products/gemv.h"
#include "cuda/kernels/products/tile.h"
#include "cuda/kernels/expert_tiles.h"

#include <errno.h>

static_assert(EXPERT_TILE_WIDE == WIDE_X_ROWS, "a tile of assignments is one of x");

struct experts_step {
    struct products products;
    struct device_activations x;
    struct device_assignments assignments;
    bool by_row; /* x has rows of the step; else of assignments */
};

static __device__ inline void store_output(const struct experts_step &step, uint32_t product, uint32_t expert,
                                           uint32_t row, uint32_t assignment, float sum)
{
    const struct device_matrix &matrix = step.products.matrices[product];
    if (row < matrix.n_rows)
        step.products.outs[product][(size_t)assignment * step.products.out_strides[product] + row] =
            sum + (matrix.bias ? matrix.bias[(size_t)expert * matrix.n_rows + row] : 0);
}

/* ---- few: an assignment to a block ---- */

/* The first of the warp's rows, of an expert's matrix. */
static __device__ inline uint32_t first_row(const struct block_share &share)
{
    return share.row + threadIdx.x / SIMT_LANES * ROWS_EACH;
}

static __device__ __forceinline__ void add_assignment(const struct experts_step &step, uint32_t expert,
                                                      float sums[ROWS_EACH][1])
{
    const struct block_share share = share_of_block(step.products, ROWS_PER_BLOCK);
    const struct device_matrix *matrix = &step.products.matrices[share.product];
    const uint32_t x_row = step.by_row ? blockIdx.y / step.assignments.n_used : blockIdx.y;
    const struct task task = {
        matrix, &step.x,  expert * matrix->n_rows + first_row(share), (expert + 1) * matrix->n_rows,
        x_row,  x_row + 1};
    add_rows<1>(task, sums);
}

/* Grid: [groups of ROWS_PER_BLOCK rows of all matrices][assignments]. */
static __global__ void __launch_bounds__(WARPS *SIMT_LANES, blocks_at_once(1))
    multiply_experts_gemv(const __grid_constant__ struct experts_step step)
{
    simt_start();
    const uint32_t expert = step.assignments.experts[blockIdx.y], lane = threadIdx.x % SIMT_LANES;
    float sums[ROWS_EACH][1] = {};
    if (expert == EXPERT_NONE)
        return;
    add_assignment(step, expert, sums);
    const float mine = sum_of_lane<1>(sums);
    const struct block_share share = share_of_block(step.products, ROWS_PER_BLOCK);
    if (lane < ROWS_EACH)
        store_output(step, share.product, expert, first_row(share) + lane, blockIdx.y, mine);
}

/* ---- tiles ---- */

/* The block's tile, of M rows of a product. */
template <uint32_t M> static __device__ inline struct tile_task task_of_block(const struct experts_step &step)
{
    const struct block_share share = share_of_block(step.products, M);
    const struct device_matrix *matrix = &step.products.matrices[share.product];
    const struct expert_tile tile = step.assignments.tiles[blockIdx.y];
    return tile_task{matrix,
                     &step.x,
                     share.row,
                     tile.first,
                     tile.first + tile.n,
                     tile.expert * matrix->n_rows,
                     step.by_row ? step.assignments.rows : step.assignments.by_place};
}

/* Row `row` and place `place` of the block's tile, which are found again as in tiles.cu. */
template <uint32_t M>
static __device__ inline void store_of_tile(const struct experts_step &step, uint32_t row, uint32_t place,
                                            float sum)
{
    const struct block_share share = share_of_block(step.products, M);
    const struct expert_tile tile = step.assignments.tiles[blockIdx.y];
    if (place < tile.n)
        store_output(step, share.product, tile.expert, share.row + row,
                     step.assignments.by_place[tile.first + place], sum);
}

/* Grid: [groups of THIN_ROWS rows of all matrices][tiles of up to 8 places]. */
static __global__ void __launch_bounds__(PARTS *SIMT_LANES, 2)
    multiply_experts_thin(const __grid_constant__ struct experts_step step)
{
    simt_start();
    if (blockIdx.y >= *step.assignments.n_tiles)
        return;
    thin_tile<1, true>(task_of_block<THIN_ROWS>(step), [&](uint32_t row, uint32_t place, float sum) {
        store_of_tile<THIN_ROWS>(step, row, place, sum);
    });
}

/* Grid: [groups of WIDE_ROWS rows of all matrices][tiles of up to WIDE_X_ROWS places]. */
static __global__ void __launch_bounds__(WIDE_WARPS *SIMT_LANES, 2)
    multiply_experts_wide(const __grid_constant__ struct experts_step step)
{
    simt_start();
    if (blockIdx.y >= *step.assignments.n_tiles)
        return;
    wide_tile<true>(task_of_block<WIDE_ROWS>(step), [&](uint32_t row, uint32_t place, float sum) {
        store_of_tile<WIDE_ROWS>(step, row, place, sum);
    });
}

int kernels_multiply_experts(struct device_stream *queue, const struct device_product *given,
                             uint32_t n_products, const struct device_activations *x, bool by_row,
                             const struct device_assignments *assignments,
                             const struct multiply_step *multiply)
{
    struct experts_step step = {{}, *x, *assignments, by_row};
    const uint32_t n_assignments = multiply->n_rows * assignments->n_used;
    const uint32_t tile_rows = expert_tile_rows(assignments, multiply->n_rows, multiply->reproducible);
    if (!products_collect(&step.products, given, n_products, x))
        return -EINVAL;
    for (uint32_t p = 0; p < n_products; p++)
        if (given[p].matrix->n_experts != assignments->n_experts)
            return -EINVAL;
    if (tile_rows == 0)
        return simt_launch(queue, "multiply_experts_gemv", multiply_experts_gemv,
                           {blocks_of(&step.products, ROWS_PER_BLOCK), n_assignments, 1},
                           {WARPS * SIMT_LANES, 1, 1}, 0, step);
    const uint32_t most_tiles = kernels_most_tiles(assignments->n_experts, n_assignments, tile_rows);
    if (tile_rows == EXPERT_TILE_THIN)
        return simt_launch(queue, "multiply_experts_thin", multiply_experts_thin,
                           {blocks_of(&step.products, THIN_ROWS), most_tiles, 1}, {PARTS * SIMT_LANES, 1, 1},
                           sizeof(union thin_shared<1>), step);
    return simt_launch(queue, "multiply_experts_wide", multiply_experts_wide,
                       {blocks_of(&step.products, WIDE_ROWS), most_tiles, 1}, {WIDE_WARPS * SIMT_LANES, 1, 1},
                       sizeof(wide_shared), step);
}
