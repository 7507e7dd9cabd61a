/* SPDX-License-Identifier: MIT */
/* The work list of a step's attention, made once a step on the device, which alone knows where rows stand. */

#include "cuda/kernels/attention/attention_geometry.h"

size_t kernels_attention_scratch(const struct device_kv *kv, const struct attention_scratch *scratch)
{
    size_t most = 0;
    for (uint32_t n_queries = TILE; n_queries <= MOST_QUERIES; n_queries *= 2) {
        struct attention_geometry g;
        size_t bytes = lay_out(&g, kv, scratch, n_queries);
        most = bytes > most ? bytes : most;
    }
    return most;
}

#define PLAN_THREADS 256

struct plan_shared {
    uint32_t sums[PLAN_THREADS];
};

/* The sum of the threads' values before this one; ret_total: of all. All threads. */
__device__ static inline uint32_t sum_before(struct plan_shared *shared, uint32_t value, uint32_t *ret_total)
{
    const uint32_t thread = threadIdx.x;
    simt_barrier();
    shared->sums[thread] = value;
    simt_barrier();
    for (uint32_t apart = 1; apart < PLAN_THREADS; apart *= 2) {
        uint32_t other = thread >= apart ? shared->sums[thread - apart] : 0;
        simt_barrier();
        shared->sums[thread] += other;
        simt_barrier();
    }
    *ret_total = shared->sums[PLAN_THREADS - 1];
    return shared->sums[thread] - value;
}

/* Rows of the tile that begins at `row`, 0 where none does. Tiles begin with sets and at positions that are
 * multiples of tile_rows. */
__device__ static inline uint32_t tile_from(const struct attention_geometry *g, const struct step_row *rows,
                                            uint32_t n_rows, uint32_t row)
{
    if (row >= n_rows || rows[row].position == ROW_DEAD)
        return 0;
    const struct step_row first = rows[row];
    if (first.position % g->tile_rows != 0 && row > 0 && rows[row - 1].position != ROW_DEAD &&
        rows[row - 1].set == first.set)
        return 0;
    uint32_t n = 1;
    while (row + n < n_rows && rows[row + n].position != ROW_DEAD && rows[row + n].set == first.set &&
           rows[row + n].position % g->tile_rows != 0)
        n++;
    return n;
}

/* One block: thread = row, PLAN_THREADS rows at a time. Items stand in the order of their rows. */
static __global__ void plan_attention(struct attention_geometry g, const struct step_row *rows,
                                      uint32_t n_rows)
{
    simt_start();
    struct plan_shared *shared = simt_shared<struct plan_shared>();
    uint32_t n_items = 0, n_partials = 0, n_tiles = 0;
    for (uint32_t start = 0; start < n_rows; start += PLAN_THREADS) {
        const uint32_t row = start + threadIdx.x;
        uint32_t in_tile = tile_from(&g, rows, n_rows, row), total;
        uint32_t n_pieces = in_tile ? (rows[row].position + in_tile - 1) / ATTENTION_PIECE + 1 : 0;
        uint32_t wanted = n_pieces > 1 ? n_pieces : 0;
        uint32_t partial = n_partials + sum_before(shared, wanted, &total);
        n_partials += total;
        bool is_shared = n_pieces > 1 && partial + n_pieces <= g.n_partials;
        uint32_t mine = is_shared ? n_pieces : in_tile ? 1 : 0;
        uint32_t item = n_items + sum_before(shared, mine, &total);
        n_items += total;
        uint32_t tile = n_tiles + sum_before(shared, in_tile ? 1 : 0, &total);
        n_tiles += total;
        for (uint32_t i = 0; i < mine; i++)
            g.items[item + i] = attention_item{
                row, in_tile, i, is_shared ? 1 : n_pieces, is_shared ? partial : UNSHARED, n_pieces, tile};
        for (uint32_t i = 0; in_tile && i < g.n_units; i++)
            g.arrived[(size_t)tile * g.n_units + i] = 0;
    }
    if (threadIdx.x == 0)
        *g.n_items = n_items;
}

int kernels_attention_plan(struct device_stream *queue, const struct device_kv *kv,
                           const struct attention_scratch *scratch, const struct step_row *rows,
                           uint32_t n_rows)
{
    struct attention_geometry g;
    lay_out(&g, kv, scratch, queries_for(kv->dim, n_rows));
    return simt_launch(queue, "plan_attention", plan_attention, {1, 1, 1}, {PLAN_THREADS, 1, 1},
                       sizeof(struct plan_shared), g, rows, n_rows);
}
