/* SPDX-License-Identifier: MIT */
/* Wide tiles of a product that several blocks of threads share (stream_k.h).
 *
 * A block leaves the sums of each part that it has of a tile in memory, and adds the number of its parts to
 * the tile's ticket. Whoever makes that number whole adds up what all have left, in the order of the parts,
 * and stores the outputs. */

#include "cuda/kernels/arrivals.h"
#include "cuda/kernels/products/tile.h"

#define SUMS_FLOATS (WIDE_ROWS * WIDE_X_ROWS) /* of a part of a tile */

/* What a launch of shared tiles has: the product's tiles one after the other, all groups of outputs of the
 * first rows of x first. */
struct shared_tiles {
    struct stream_k shares;
    uint32_t n_groups; /* of WIDE_ROWS outputs */
    float *sums;       /* [divided tiles][PARTS][4 · WIDE_NB / 4][threads] of four */
    uint32_t *tickets; /* [divided tiles]: parts that are there */
};

struct wide_and_ticket {
    wide_shared tile;
    uint32_t is_last;
};

/* The share-th share begins at this part of the divided tiles, and ends where the next begins. */
static __device__ inline uint32_t share_begins(const struct stream_k &shares, uint32_t share)
{
    return share * (shares.n_divided * PARTS) / shares.n_shares;
}

static __device__ inline struct float_four *sums_of(const struct shared_tiles &tiles, uint32_t tile,
                                                    uint32_t part)
{
    return (struct float_four *)(tiles.sums + (size_t)(tile * PARTS + part) * SUMS_FLOATS) + threadIdx.x;
}

static __device__ inline void leave_sums(const struct shared_tiles &tiles, uint32_t tile, uint32_t part,
                                         const float sums[WIDE_NB][4])
{
    struct float_four *to = sums_of(tiles, tile, part);
    SIMT_UNROLL
    for (uint32_t n = 0; n < WIDE_NB; n++) {
        struct float_four four;
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            four.v[i] = sums[n][i];
        to[n * WIDE_THREADS] = four;
    }
}

/* After all parts have been left. */
static __device__ __forceinline__ void collect_sums(const struct shared_tiles &tiles, uint32_t tile,
                                                    float totals[WIDE_NB][4])
{
    for (uint32_t part = 0; part < PARTS; part++) {
        const struct float_four *from = sums_of(tiles, tile, part);
        SIMT_UNROLL
        for (uint32_t n = 0; n < WIDE_NB; n++) {
            const struct simt_16 four = simt_fresh16(from + n * WIDE_THREADS);
            SIMT_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                totals[n][i] += simt_of_bits(four.words[i]);
        }
    }
}

/* The task of a tile, and its outputs. Where they are, is found again: kept meanwhile it would take registers
 * of the product. */
static __device__ inline struct tile_task task_of(const struct products &products,
                                                  const struct device_activations &x, uint32_t n_x_rows,
                                                  const struct shared_tiles &tiles, uint32_t tile)
{
    const struct block_share share = share_of(products, tile % tiles.n_groups, WIDE_ROWS);
    return tile_task{&products.matrices[share.product],
                     &x,
                     share.row,
                     tile / tiles.n_groups * WIDE_X_ROWS,
                     n_x_rows,
                     0,
                     NULL};
}

static __device__ inline void store_output(const struct products &products, uint32_t n_x_rows,
                                           const struct shared_tiles &tiles, uint32_t tile, uint32_t row,
                                           uint32_t x_row, float sum)
{
    store_product(products, share_of(products, tile % tiles.n_groups, WIDE_ROWS), row,
                  tile / tiles.n_groups * WIDE_X_ROWS + x_row, n_x_rows, sum);
}

/* Parts first … end − 1 of a divided tile, and its outputs when those were the last. */
static __device__ __forceinline__ void multiply_piece(const struct products &products,
                                                      const struct device_activations &x, uint32_t n_x_rows,
                                                      const struct shared_tiles &tiles, uint32_t tile,
                                                      uint32_t first, uint32_t end)
{
    struct wide_and_ticket *shared = simt_shared<struct wide_and_ticket>();
    wide_parts<false>(task_of(products, x, n_x_rows, tiles, tiles.shares.n_whole + tile), wide_place(), first,
                      end, &shared->tile, [&](uint32_t part, const float sums[WIDE_NB][4]) {
                          leave_sums(tiles, tile, part, sums);
                      });
    if (last_to_arrive(&tiles.tickets[tile], end - first, PARTS, &shared->is_last)) {
        float totals[WIDE_NB][4] = {};
        collect_sums(tiles, tile, totals);
        wide_store(wide_place(), totals, [&](uint32_t row, uint32_t x_row, float sum) {
            store_output(products, n_x_rows, tiles, tiles.shares.n_whole + tile, row, x_row, sum);
        });
    }
}

/* Grid: [whole tiles, then shares]. */
static __global__ void __launch_bounds__(WIDE_THREADS, STREAM_K_AT_ONCE)
    multiply_stream_k_tiles(const __grid_constant__ struct products products,
                            const __grid_constant__ struct device_activations x, uint32_t n_x_rows,
                            const __grid_constant__ struct shared_tiles tiles)
{
    simt_start();
    struct wide_and_ticket *shared = simt_shared<struct wide_and_ticket>();
    const struct stream_k &shares = tiles.shares;
    if (blockIdx.x < shares.n_whole) {
        float totals[WIDE_NB][4] = {};
        wide_parts<false>(task_of(products, x, n_x_rows, tiles, blockIdx.x), wide_place(), 0, PARTS,
                          &shared->tile,
                          [&](uint32_t, const float sums[WIDE_NB][4]) { add_sums<WIDE_NB>(totals, sums); });
        wide_store(wide_place(), totals, [&](uint32_t row, uint32_t x_row, float sum) {
            store_output(products, n_x_rows, tiles, blockIdx.x, row, x_row, sum);
        });
        return;
    }
    const uint32_t share = blockIdx.x - shares.n_whole;
    const uint32_t at = share_begins(shares, share), end = share_begins(shares, share + 1), tile = at / PARTS;
    /* A share is no longer than a tile: it has two pieces at most. A loop over them would compute before it
     * what the cases of all formats need, and has no registers to keep it in. */
    multiply_piece(products, x, n_x_rows, tiles, tile, at % PARTS, least(end - tile * PARTS, PARTS));
    if (end > (tile + 1) * PARTS)
        multiply_piece(products, x, n_x_rows, tiles, tile + 1, 0, end - (tile + 1) * PARTS);
}

size_t kernels_multiply_scratch(uint32_t n_multiprocessors)
{
    return (size_t)stream_k_most_divided(n_multiprocessors) * PARTS * SUMS_FLOATS * sizeof(float);
}

int multiply_stream_k(struct device_stream *queue, const struct products *products,
                      const struct device_activations *x, uint32_t n_rows, const struct stream_k *shares,
                      const struct multiply_scratch *scratch)
{
    const struct shared_tiles tiles = {*shares, blocks_of(products, WIDE_ROWS), scratch->sums,
                                       scratch->tickets};
    return simt_launch(queue, "multiply_stream_k", multiply_stream_k_tiles,
                       {shares->n_whole + shares->n_shares, 1, 1}, {WIDE_THREADS, 1, 1},
                       sizeof(struct wide_and_ticket), *products, *x, n_rows, tiles);
}
