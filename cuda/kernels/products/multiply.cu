/* SPDX-License-Identifier: MIT */
/* Products of weight matrices with rows of activations. One to four rows take gemv.h; from five rows on, and
 * where a row's bits may not depend on how many there are: tiles.cu. */

#include "cuda/kernels/arrivals.h"
#include "cuda/kernels/products/gemv.h"
#include "cuda/kernels/norm_row.h"

#include <errno.h>

#define PREFETCH_BYTES 128

/* What the outputs are made into, in the same launch, by whichever block of threads comes last. */
struct following {
    enum { ACTIVATE, NORM } what;
    uint32_t *tickets; /* how many blocks are done: ACTIVATE, with each 32 outputs; NORM, with all */
    enum activation
        activation; /* out = activation(product 0) · product 1, or of one product activation(it) */
    struct device_activations out;
    struct norm_step norm; /* of one row */
};

/* By a warp, eight lanes to a row of x: columns from `column` on, and when those are a matrix's last, the
 * zeros beyond. */
static __device__ inline void activate_block(const struct products &products,
                                             const struct following &following, uint32_t column,
                                             uint32_t n_x_rows)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES, n_columns = products.matrices[0].n_rows;
    const uint32_t row = lane / 8 < n_x_rows ? lane / 8 : n_x_rows - 1;
    const uint32_t end = column + 32 < n_columns ? column + 32 : following.out.stride;
    for (column += lane % 8 * 4; column < end; column += 32) {
        struct float_four x = {}, factor = {{1, 1, 1, 1}};
        if (column < n_columns) {
            x = read_fresh(products.outs[0] + (size_t)row * products.out_strides[0], column, n_columns);
            if (products.n > 1) {
                factor =
                    read_fresh(products.outs[1] + (size_t)row * products.out_strides[1], column, n_columns);
                SIMT_UNROLL
                for (uint32_t i = 0; i < 4; i++)
                    factor.v[i] = gated_factor(following.activation, factor.v[i]);
            }
        }
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++) /* the activation of 0 is 0 */
            x.v[i] = activated(following.activation, x.v[i]) * factor.v[i];
        write_activations(x, &following.out, row, column, lane / 8 < n_x_rows);
    }
}

struct following_shared {
    uint32_t is_last;
    struct sums_shared sums;
};

/* All threads of every block take part. */
template <bool MAY_NORM>
static __device__ inline void follow(const struct products &products, const struct following &following,
                                     const struct block_share &share, uint32_t n_x_rows)
{
    struct following_shared *shared = simt_shared<struct following_shared>();
    uint32_t group = 0, n_blocks = gridDim.x;
    if (following.what == following::ACTIVATE) {
        const uint32_t left = products.matrices[0].n_rows - share.row / 32 * 32;
        group = share.row / 32;
        n_blocks = products.n * (((left < 32 ? left : 32) + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK);
    }
    if (!last_to_arrive(&following.tickets[group], 1, n_blocks, &shared->is_last))
        return;
    if (following.what == following::ACTIVATE) {
        if (threadIdx.x < SIMT_LANES)
            activate_block(products, following, group * 32, n_x_rows);
    } else if (MAY_NORM) {
        struct block_sums sums = {&shared->sums, 0};
        norm_first_row(following.norm, &sums);
    }
}

/* What a warp's lanes load first of the rows from `row` on, 128 bytes each, while the launch before still
 * runs. */
static __device__ inline void prefetch_rows(const struct products &products, uint32_t product, uint32_t row)
{
    const struct device_matrix &matrix = products.matrices[product];
    const uint32_t end = row + ROWS_EACH < matrix.n_rows ? row + ROWS_EACH : matrix.n_rows;
    const size_t at = (size_t)row * products.row_bytes[product] + threadIdx.x % SIMT_LANES * PREFETCH_BYTES;
    if (at < (size_t)end * products.row_bytes[product])
        simt_prefetch((const uint8_t *)matrix.planes[0] + at);
}

/* Grid: [groups of ROWS_PER_BLOCK rows of all matrices][groups of N rows of x]. */
template <uint32_t N, bool FOLLOWS>
static __global__ void __launch_bounds__(WARPS *SIMT_LANES, blocks_at_once(N))
    multiply_gemv(const __grid_constant__ struct products products,
                  const __grid_constant__ struct device_activations x,
                  const __grid_constant__ struct following following, uint32_t n_x_rows)
{
    const struct block_share share = share_of_block(products, ROWS_PER_BLOCK);
    const struct device_matrix &matrix = products.matrices[share.product];
    const uint32_t lane = threadIdx.x % SIMT_LANES;
    const struct task task = {
        &matrix,        &x,      share.row + threadIdx.x / SIMT_LANES * ROWS_EACH, matrix.n_rows,
        blockIdx.y * N, n_x_rows};
    prefetch_rows(products, share.product, task.row);
    simt_start();
    float sums[ROWS_EACH][N] = {};
    add_rows<N>(task, sums);
    const float mine = sum_of_lane<N>(sums);
    const uint32_t row = task.row + lane % ROWS_EACH, x_row = task.x_row + lane / ROWS_EACH;
    if (lane < ROWS_EACH * N && row < matrix.n_rows && x_row < n_x_rows)
        products.outs[share.product][(size_t)x_row * products.out_strides[share.product] + row] =
            mine + (matrix.bias ? matrix.bias[row] : 0);
    if (FOLLOWS)
        follow<N == 1>(products, following, share, n_x_rows);
}

template <uint32_t N>
static int launch_gemv(struct device_stream *queue, const struct products *products,
                       const struct device_activations *x, const struct following *following, uint32_t n_rows)
{
    const struct simt_dim grid = {blocks_of(products, ROWS_PER_BLOCK), 1, 1},
                          block = {WARPS * SIMT_LANES, 1, 1};
    const struct following nothing = {};
    if (!following)
        return simt_launch(queue, "multiply_gemv", multiply_gemv<N, false>, grid, block, 0, *products, *x,
                           nothing, n_rows);
    return simt_launch(queue, following->what == following::NORM ? "multiply_norm" : "multiply_activate",
                       multiply_gemv<N, true>, grid, block, sizeof(struct following_shared), *products, *x,
                       *following, n_rows);
}

static int multiply_gemv_rows(struct device_stream *queue, const struct products *products,
                              const struct device_activations *x, const struct following *following,
                              uint32_t n_rows)
{
    switch (n_rows) {
    case 1:
        return launch_gemv<1>(queue, products, x, following, n_rows);
    case 2:
        return launch_gemv<2>(queue, products, x, following, n_rows);
    case 3:
        return launch_gemv<3>(queue, products, x, following, n_rows);
    default:
        return launch_gemv<4>(queue, products, x, following, n_rows);
    }
}

int kernels_multiply(struct device_stream *queue, const struct device_product *given, uint32_t n_products,
                     const struct device_activations *x, const struct multiply_step *step)
{
    struct products products = {};
    if (!products_collect(&products, given, n_products, x))
        return -EINVAL;
    if (step->reproducible || step->n_rows > KERNELS_GEMV)
        return multiply_tiles(queue, &products, x, step);
    return multiply_gemv_rows(queue, &products, x, NULL, step->n_rows);
}

/* Are those the outputs that it takes? */
static bool makes(const struct device_product *products, const struct activate_step *activate)
{
    const struct device_product *up = &products[activate->gate ? 1 : 0];
    const struct device_product given[2] = {products[0], *up};
    for (const struct device_product &product : given)
        if (product.matrix->n_rows != activate->n_columns || product.out_stride != activate->stride)
            return false;
    return activate->up_stride == activate->stride && up->out == activate->up &&
           (!activate->gate || products[0].out == activate->gate);
}

int kernels_multiply_activate(struct device_stream *queue, const struct device_product *given,
                              const struct device_activations *x, const struct multiply_step *step,
                              const struct activate_step *activate, uint32_t *tickets)
{
    const struct following following = {
        following::ACTIVATE, tickets, activate->activation, activate->out, {}};
    struct products products = {};
    if (!products_collect(&products, given, activate->gate ? 2 : 1, x) || !makes(given, activate) ||
        activate->out.stride < activate->n_columns)
        return -EINVAL;
    if (!step->reproducible && step->n_rows <= KERNELS_GEMV)
        return multiply_gemv_rows(queue, &products, x, &following, step->n_rows);
    int r = multiply_tiles(queue, &products, x, step);
    return r < 0 ? r : kernels_activate(queue, activate, step->n_rows);
}

int kernels_multiply_norm(struct device_stream *queue, const struct device_product *product,
                          const struct device_activations *x, const struct multiply_step *step,
                          const struct norm_step *norm, uint32_t *ticket)
{
    const struct following following = {following::NORM, ticket, ACTIVATION_SILU, {}, *norm};
    struct products products = {};
    if (!products_collect(&products, product, 1, x) || norm->delta != product->out ||
        norm->stride != product->out_stride || norm->outputs || norm->beside ||
        norm->stride % LAYOUT_COLUMNS != 0)
        return -EINVAL;
    if (!step->reproducible && step->n_rows == 1)
        return multiply_gemv_rows(queue, &products, x, &following, 1);
    int r = kernels_multiply(queue, product, 1, x, step);
    return r < 0 ? r : kernels_norm(queue, norm, step->n_rows);
}
