/* SPDX-License-Identifier: MIT */
/* Mixtures of experts, but for their products (products/expert_products.cu): which experts a row goes to, its
 * assignments in the order of experts, and the sum of what it got, the shared expert's part included.
 *
 * A row's choice and its sum hang on the row alone. Visits are sorted by counting, in one block of threads,
 * an expert to a thread: so their order is the same in every run. */

#include "cuda/kernels/activations.h"
#include "cuda/kernels/expert_tiles.h"

#include <errno.h>

/* ---- the choice ---- */

#define CHOOSE_WARPS 4

/* Higher for a better score; of equal ones for the lower expert. Never 0. */
static __device__ inline uint64_t rank_of(float score, uint32_t expert)
{
    const uint32_t bits = simt_bits(score == 0 ? 0 : score); /* there is one zero */
    const uint32_t rising = bits >> 31 ? ~bits : bits | 0x80000000;
    return (uint64_t)rising << 32 | (UINT32_MAX - expert);
}

/* Below all that are finite. */
static __device__ inline float score_of(float score)
{
    return fabsf(score) <= 3.4028235e38f ? score : -3.4028235e38f;
}

/* A warp to a row: the best of those that come after the one before, n_used times. */
static __global__ void choose_experts(struct device_assignments assignments, struct router_scores router,
                                      const struct step_row *rows, uint32_t n_rows)
{
    simt_start();
    const uint32_t warp = blockIdx.x * CHOOSE_WARPS + threadIdx.x / SIMT_LANES,
                   lane = threadIdx.x % SIMT_LANES;
    const uint32_t row = warp < n_rows ? warp : n_rows - 1;
    const bool is_there = warp < n_rows, is_dead = rows[row].position == ROW_DEAD;
    const float *mine = router.scores + (size_t)row * router.stride;
    const size_t first = (size_t)row * assignments.n_used;
    uint32_t faults = 0;
    for (uint32_t e = lane; e < assignments.n_experts; e += SIMT_LANES)
        faults |= !(fabsf(mine[e]) <= 3.4028235e38f);
    const bool finite = simt_ballot(faults) == 0;
    uint64_t last = UINT64_MAX;
    float best = 0, sum = 0;
    for (uint32_t k = 0; k < assignments.n_used; k++) {
        uint64_t next = 0;
        for (uint32_t e = lane; e < assignments.n_experts; e += SIMT_LANES) {
            const uint64_t rank = rank_of(score_of(mine[e] * router.factor), e);
            next = rank < last && rank > next ? rank : next;
        }
        last = simt_warp_max(next);
        const uint32_t expert = UINT32_MAX - (uint32_t)last;
        const float score = score_of(mine[expert] * router.factor);
        best = k == 0 ? score : best;
        const float weight = expf(score - best);
        sum += weight;
        if (is_there && lane == k % SIMT_LANES) {
            assignments.experts[first + k] = is_dead ? EXPERT_NONE : expert;
            assignments.weights[first + k] = weight;
        }
    }
    for (uint32_t k = lane; k < assignments.n_used && is_there; k += SIMT_LANES) {
        const uint32_t expert = assignments.experts[first + k]; /* what this lane has written */
        const float scale = router.expert_scales && !is_dead ? router.expert_scales[expert] : 1;
        assignments.weights[first + k] = finite ? assignments.weights[first + k] / sum * scale : NAN;
    }
}

/* ---- the order of experts ---- */

#define GROUP_THREADS 256

struct group_shared {
    uint32_t assignments[GROUP_THREADS];
    uint64_t sums[GROUP_THREADS];
};

/* Calls each(assignment) for every assignment to the thread's expert, in their order. All threads take part.
 */
template <class Each>
static __device__ inline void for_assignments_to(const struct device_assignments &assignments,
                                                 uint32_t n_assignments, uint32_t expert,
                                                 struct group_shared *shared, const Each &each)
{
    for (uint32_t from = 0; from < n_assignments; from += GROUP_THREADS) {
        const uint32_t left = n_assignments - from, n = left < GROUP_THREADS ? left : GROUP_THREADS;
        simt_barrier(); /* the assignments before have been looked at */
        if (threadIdx.x < n)
            shared->assignments[threadIdx.x] = assignments.experts[from + threadIdx.x];
        simt_barrier();
        for (uint32_t i = 0; i < n; i++)
            if (shared->assignments[i] == expert)
                each(from + i);
    }
}

/* The sum of the values of this thread and those before it. All threads take part. */
static __device__ inline uint64_t sum_up_to_here(struct group_shared *shared, uint64_t value)
{
    shared->sums[threadIdx.x] = value;
    for (uint32_t step = 1; step < GROUP_THREADS; step *= 2) {
        simt_barrier();
        const uint64_t before = threadIdx.x >= step ? shared->sums[threadIdx.x - step] : 0;
        simt_barrier();
        shared->sums[threadIdx.x] += before;
    }
    simt_barrier();
    return shared->sums[threadIdx.x];
}

/* By one block, GROUP_THREADS experts at a time. Counts of places and of tiles go together, in the halves of
 * 64 bits. */
static __global__ void group_assignments(struct device_assignments assignments, uint32_t n_assignments,
                                         uint32_t tile_rows)
{
    simt_start();
    struct group_shared *shared = simt_shared<struct group_shared>();
    uint64_t before = 0; /* of the experts before these */
    for (uint32_t from = 0; from < assignments.n_experts; from += GROUP_THREADS) {
        const uint32_t expert = from + threadIdx.x;
        uint32_t n = 0;
        for_assignments_to(assignments, n_assignments, expert, shared, [&](uint32_t) { n++; });
        const uint32_t n_tiles = (n + tile_rows - 1) / tile_rows;
        const uint64_t counts = n | (uint64_t)n_tiles << 32, sums = sum_up_to_here(shared, counts);
        const uint64_t firsts = before + sums - counts;
        uint32_t place = (uint32_t)firsts;
        for (uint32_t i = 0; i < n_tiles; i++) {
            const uint32_t left = n - i * tile_rows;
            assignments.tiles[(uint32_t)(firsts >> 32) + i] =
                expert_tile{expert, place + i * tile_rows, left < tile_rows ? left : tile_rows};
        }
        for_assignments_to(assignments, n_assignments, expert, shared, [&](uint32_t assignment) {
            assignments.rows[place] = assignment / assignments.n_used;
            assignments.by_place[place++] = assignment;
        });
        before += shared->sums[GROUP_THREADS - 1];
    }
    if (threadIdx.x == 0)
        *assignments.n_tiles = (uint32_t)(before >> 32);
}

int kernels_choose(struct device_stream *queue, const struct device_assignments *assignments,
                   const struct router_scores *router, const struct step_row *rows, uint32_t n_rows,
                   bool reproducible)
{
    const uint32_t tile_rows = expert_tile_rows(assignments, n_rows, reproducible);
    if (assignments->n_used > assignments->n_experts || assignments->n_experts > router->stride)
        return -EINVAL;
    int r = simt_launch(queue, "choose_experts", choose_experts,
                        {(n_rows + CHOOSE_WARPS - 1) / CHOOSE_WARPS, 1, 1}, {CHOOSE_WARPS * SIMT_LANES, 1, 1},
                        0, *assignments, *router, rows, n_rows);
    if (r < 0 || tile_rows == 0)
        return r;
    return simt_launch(queue, "group_assignments", group_assignments, {1, 1, 1}, {GROUP_THREADS, 1, 1},
                       sizeof(struct group_shared), *assignments, n_rows * assignments->n_used, tile_rows);
}

/* ---- the shared expert's part ---- */

#define SHARE_WARPS 4

/* A warp for each row. */
static __global__ void share_rows(const float *x, uint32_t stride, const float *weight, uint32_t n_columns,
                                  float *shares, uint32_t n_rows)
{
    simt_start();
    const uint32_t row = blockIdx.x * SHARE_WARPS + threadIdx.x / SIMT_LANES;
    const uint32_t lane = threadIdx.x % SIMT_LANES;
    if (row < n_rows) {
        float sum = 0;
        for (uint32_t column = lane * 4; column < n_columns; column += SIMT_LANES * 4) {
            const struct float_four four = read_columns(x + (size_t)row * stride, column, n_columns);
            const struct float_four factor = read_columns(weight, column, n_columns);
            SIMT_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                sum = fmaf(four.v[i], factor.v[i], sum);
        }
        sum = simt_warp_sum(sum);
        if (lane == 0)
            shares[row] = 1.0f / (1.0f + expf(-sum));
    }
}

int kernels_share(struct device_stream *queue, const struct device_activations *x, const float *weight,
                  uint32_t n_columns, float *shares, uint32_t n_rows)
{
    if (x->stride % LAYOUT_COLUMNS != 0 || x->stride < n_columns)
        return -EINVAL;
    return simt_launch(queue, "share", share_rows, {(n_rows + SHARE_WARPS - 1) / SHARE_WARPS, 1, 1},
                       {SHARE_WARPS * SIMT_LANES, 1, 1}, 0, x->values, x->stride, weight, n_columns, shares,
                       n_rows);
}

/* ---- the sum ---- */

#define COMBINE_THREADS 128

/* Four columns to a thread; blockIdx.y is the row. */
static __global__ void combine_experts(struct device_assignments assignments, const float *got,
                                       struct shared_part shared, uint32_t stride, uint32_t n_columns,
                                       float *out)
{
    simt_start();
    const uint32_t column = (blockIdx.x * COMBINE_THREADS + threadIdx.x) * 4, row = blockIdx.y;
    struct float_four sum = {};
    if (column >= stride)
        return;
    if (shared.got) {
        const float share = shared.shares ? shared.shares[row] : 1;
        sum = read_columns(shared.got + (size_t)row * stride, column, n_columns);
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            sum.v[i] *= share;
    }
    for (uint32_t k = 0; k < assignments.n_used; k++) {
        const size_t assignment = (size_t)row * assignments.n_used + k;
        const float weight = assignments.weights[assignment];
        const struct float_four four = read_columns(got + assignment * stride, column, n_columns);
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            sum.v[i] = fmaf(weight, column + i < n_columns ? four.v[i] : 0, sum.v[i]);
    }
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        if (column + i < n_columns)
            out[(size_t)row * stride + column + i] = sum.v[i];
}

int kernels_combine(struct device_stream *queue, const struct device_assignments *assignments,
                    const float *got, const struct shared_part *shared, uint32_t stride, uint32_t n_columns,
                    float *out, uint32_t n_rows)
{
    if (stride % LAYOUT_COLUMNS != 0 || stride < n_columns)
        return -EINVAL;
    return simt_launch(queue, "combine_experts", combine_experts,
                       {(stride / 4 + COMBINE_THREADS - 1) / COMBINE_THREADS, n_rows, 1},
                       {COMBINE_THREADS, 1, 1}, 0, *assignments, got, *shared, stride, n_columns, out);
}
