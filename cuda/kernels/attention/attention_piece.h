/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_ATTENTION_ATTENTION_PIECE_H
#define CUDA_KERNELS_ATTENTION_ATTENTION_PIECE_H

/* The work of a block of threads on one piece of a sequence for one item (attention_geometry.h): two warp
 * matrix products with shared memory between them, and no running maximum:
 *
 *   scores    warps take blocks of 32 positions: queries · keys
 *   softmax   warps take queries: largest score, weights, their sum
 *   values    warps take dims, 8 at a time: weights · values over the piece's positions
 *
 * Pieces are folded in their order with the usual rescaling (Milakov and Gimelshein 2018, arXiv:1805.02867).
 * The rows of a matrix product are independent, so the terms of a query's sums and their order depend only on
 * its position, not on the tile or on which block computed which piece.
 *
 * A lane loads its part of the right sides of two products: of keys (kv.h), 8 neighbours of 32 dims. It reads
 * queries from shared memory in the same order, 16 bytes at a time; likewise weights and values, with
 * positions in place of dims. Queries are split into two halves whose sum has a float's 22 leading bits,
 * because scores may be large. Weights are rounded to halves, and the rounded weights are summed.
 *
 * A position that a query must not see has weight 0 and, if no query of the tile sees it, value 0: unwritten
 * parts of blocks hold arbitrary bits, and zero times infinity is NaN. */

#include "cuda/kernels/attention/attention_geometry.h"
#include "cuda/kernels/attention/kv.h"

#define WARPS   4
#define THREADS (WARPS * SIMT_LANES)

/* Floats of a query's row of scores, and halves of its weights, which replace the scores. A row is an odd
 * number of 64 bytes, so that eight lanes that read two rows have no bank conflict. */
#define SCORE_STRIDE  (ATTENTION_PIECE + 16)
#define WEIGHT_STRIDE (2 * SCORE_STRIDE)

/* One query's softmax so far, and the effect of the newest piece on it. */
struct query_state {
    float largest, sum;  /* over the pieces folded so far; −∞ and 0 at first */
    float before, piece; /* factors of the sum so far and of the piece; piece < 0: it sees nothing there */
};

template <uint32_t QUERIES> struct attention_shared {
    struct query_state states[QUERIES];
    uint32_t last; /* whether this block is the last of its tile to arrive */
    alignas(16) float scores[QUERIES][SCORE_STRIDE];
    /* then queries, high and low halves, [2][QUERIES][query_stride], and values [QUERIES][value_stride]
     * floats */
};

/* The work of a block of threads: one item for one unit. */
template <uint32_t QUERIES> struct attention_work {
    const struct attention_step *step;
    const struct attention_geometry *g;
    struct attention_shared<QUERIES> *shared;
    half_t *queries;
    float *values;
    const uint32_t *table; /* of the sequence */
    struct attention_item item;
    uint32_t unit, kv_head;
    uint32_t first_head, n_heads; /* query heads */
    uint32_t n_queries;           /* query q is row q / n_heads, head first_head + q % n_heads */
    uint32_t position, last;      /* of the tile's first row and of its last */
    uint32_t first_seen;          /* by the first row */
};

__device__ static inline uint32_t first_seen(uint32_t position, uint32_t window)
{
    return window > 0 && position >= window ? position - window + 1 : 0;
}

/* Left sides of two products: rows `row` + lane / 4 and eight further on, 8 neighbouring halves of each from
 * `at` + lane % 4 · 8. */
struct left_sides {
    uint32_t first[4], second[4];
};

__device__ static inline struct left_sides load_left(const half_t *rows, uint32_t stride, uint32_t row,
                                                     uint32_t at)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES;
    const half_t *upper = rows + (size_t)(row + lane / 4) * stride + at + lane % 4 * 8;
    const struct simt_16 a = *(const struct simt_16 *)upper;
    const struct simt_16 b = *(const struct simt_16 *)(upper + 8 * stride);
    const struct left_sides left = {{a.words[0], b.words[0], a.words[1], b.words[1]},
                                    {a.words[2], b.words[2], a.words[3], b.words[3]}};
    return left;
}

template <uint32_t QUERIES>
__device__ static inline void write_scores(const struct attention_work<QUERIES> *w, uint32_t q,
                                           uint32_t position, uint32_t to, float score)
{
    const float cap = w->step->cap;
    const uint32_t row = w->position + q / w->n_heads;
    const bool seen = q < w->n_queries && position <= row && position >= first_seen(row, w->step->window);
    if (cap > 0)
        score = cap * tanhf(score / cap);
    w->shared->scores[q][to] = seen ? score : -INFINITY;
}

/* Computes scores of the 32 positions from `start` on and writes them from column `to` on. One warp. */
template <uint32_t QUERIES, class KV>
__device__ static inline void score_block(const struct attention_work<QUERIES> *w, uint32_t start,
                                          uint32_t to)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES, n_vectors = w->g->padded / KV_VECTOR;
    const uint32_t stride = w->g->query_stride;
    const uint8_t *keys =
        kv_keys(&w->step->kv, w->table[start / BACKEND_BLOCK_TOKENS], w->step->layer, w->kv_head);
    float sums[QUERIES / TILE][TOKEN_TILES][4] = {};
    SIMT_UNROLL_BY(2)
    for (uint32_t vector = 0; vector < n_vectors; vector += 4) {
        const typename KV::keys key = KV::load_keys(&w->step->kv, keys, vector + lane % 4);
        SIMT_UNROLL
        for (uint32_t tile = 0; tile < QUERIES / TILE; tile++) {
            float products[TOKEN_TILES][4] = {};
            float(*const to_sums)[4] = KV::SCALED ? products : sums[tile];
            if (tile * TILE >= w->n_queries)
                break;
            SIMT_UNROLL
            for (uint32_t part = 0; part < 2; part++) {
                const struct left_sides left =
                    load_left(w->queries + part * QUERIES * stride, stride, tile * TILE, vector * KV_VECTOR);
                SIMT_UNROLL
                for (uint32_t t = 0; t < TOKEN_TILES; t++) {
                    simt_mma_f16(to_sums[t], left.first, key.sides[t]);
                    simt_mma_f16(to_sums[t], left.second, key.sides[t] + 2);
                }
            }
            if constexpr (KV::SCALED) {
                SIMT_UNROLL
                for (uint32_t i = 0; i < TOKEN_TILES * 4; i++)
                    sums[tile][i / 4][i % 4] =
                        fmaf(products[i / 4][i % 4], key.scales[i / 4][i % 2], sums[tile][i / 4][i % 4]);
            }
        }
    }
    SIMT_UNROLL
    for (uint32_t i = 0; i < QUERIES / TILE * TOKEN_TILES * 4; i++) {
        const uint32_t tile = i / (TOKEN_TILES * 4), t = i / 4 % TOKEN_TILES, nth = i % 4;
        const uint32_t at = KV::position_of(t, lane % 4 * 2 + nth % 2);
        write_scores(w, tile * TILE + lane / 4 + nth / 2 * 8, start + at, to + at, sums[tile][t][nth]);
    }
}

template <uint32_t QUERIES, class KV>
__device__ static inline void score_piece(const struct attention_work<QUERIES> *w, uint32_t start)
{
    for (uint32_t b = threadIdx.x / SIMT_LANES; b < PIECE_BLOCKS; b += WARPS) {
        uint32_t to = b * BACKEND_BLOCK_TOKENS, block_start = start + to;
        if (block_start <= w->last && block_start + BACKEND_BLOCK_TOKENS > w->first_seen) {
            score_block<QUERIES, KV>(w, block_start, to);
        } else {
            for (uint32_t q = 0; q < QUERIES; q++)
                w->shared->scores[q][to + threadIdx.x % SIMT_LANES] = -INFINITY;
        }
    }
    simt_barrier();
}

/* Joins a softmax over `largest` and `sum` with the one so far. */
__device__ static inline struct query_state fold(struct query_state state, float largest, float sum)
{
    float most = largest > state.largest ? largest : state.largest;
    state.before = state.sum == 0 ? 0 : expf(state.largest - most);
    state.piece = sum == 0 ? -1 : expf(largest - most);
    state.sum = sum == 0 ? state.sum : fmaf(state.sum, state.before, sum * state.piece);
    state.largest = most;
    return state;
}

/* Joins a value summed so far with the piece's. */
__device__ static inline float fold_value(struct query_state state, float value, float piece)
{
    if (state.piece < 0)
        return value;
    return state.before == 0 ? piece * state.piece : fmaf(value, state.before, piece * state.piece);
}

/* A NaN score makes the sum NaN, and with it the query's whole output. */
template <uint32_t QUERIES> __device__ static inline void weigh_piece(const struct attention_work<QUERIES> *w)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES, each = ATTENTION_PIECE / SIMT_LANES;
    for (uint32_t q = threadIdx.x / SIMT_LANES; q < QUERIES; q += WARPS) {
        float scores[each], largest = -INFINITY, sum = 0;
        half_t *weights = (half_t *)w->shared->scores[q];
        SIMT_UNROLL
        for (uint32_t i = 0; i < each; i++) {
            scores[i] = w->shared->scores[q][i * SIMT_LANES + lane];
            largest = scores[i] > largest ? scores[i] : largest;
        }
        largest = simt_warp_max(largest);
        simt_warp_barrier(); /* all scores have been read: weights replace them */
        SIMT_UNROLL
        for (uint32_t i = 0; i < each; i++) {
            const half_t weight = simt_half(scores[i] == -INFINITY ? 0 : expf(scores[i] - largest));
            weights[i * SIMT_LANES + lane] = weight;
            sum += simt_float(weight);
        }
        sum = simt_warp_sum(sum);
        if (lane == 0)
            w->shared->states[q] = fold(w->shared->states[q], largest, sum);
    }
    simt_barrier();
}

#define DIM_TILES 4 /* right sides that a warp has at a time */

/* Clears those values of the 8 positions from `at` on that no query sees. */
template <uint32_t QUERIES>
__device__ static inline void hide_unseen(const struct attention_work<QUERIES> *w, uint32_t at,
                                          uint32_t values[4])
{
    if (at < w->first_seen || at + KV_VECTOR > w->last + 1) {
        SIMT_UNROLL
        for (uint32_t i = 0; i < KV_VECTOR; i++)
            if (at + i < w->first_seen || at + i > w->last)
                values[i / 2] &= i % 2 ? 0xffffu : 0xffff0000u;
    }
}

/* Adds the piece to the dims of loads dim_tile, WARPS further …, of all queries. One warp. */
template <uint32_t QUERIES, class KV>
__device__ static inline void sum_values(const struct attention_work<QUERIES> *w, uint32_t start,
                                         uint32_t dim_tile)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES, padded = w->g->padded, n_tiles = padded / 8 / KV::SIDES;
    const uint32_t end = start + ATTENTION_PIECE < w->last + 1 ? start + ATTENTION_PIECE : w->last + 1;
    const half_t *weights = (const half_t *)w->shared->scores;
    float sums[QUERIES / TILE][DIM_TILES][4] = {};
    uint32_t at = start > w->first_seen ? start : w->first_seen / BACKEND_BLOCK_TOKENS * BACKEND_BLOCK_TOKENS;
    SIMT_UNROLL_BY(2)
    for (; at < end; at += BACKEND_BLOCK_TOKENS) {
        const uint8_t *values =
            kv_values(&w->step->kv, w->table[at / BACKEND_BLOCK_TOKENS], w->step->layer, w->kv_head);
        uint32_t value[DIM_TILES][4] = {};
        SIMT_UNROLL
        for (uint32_t t = 0; t < DIM_TILES; t += KV::SIDES) {
            const uint32_t tile = dim_tile + t / KV::SIDES * WARPS;
            if (tile < n_tiles)
                KV::load_values(&w->step->kv, values, tile, value + t);
        }
        SIMT_UNROLL
        for (uint32_t t = 0; t < DIM_TILES; t++)
            hide_unseen(w, at + lane % 4 * KV_VECTOR, value[t]);
        SIMT_UNROLL
        for (uint32_t tile = 0; tile < QUERIES / TILE; tile++) {
            if (tile * TILE >= w->n_queries)
                break;
            const struct left_sides left =
                load_left(weights, WEIGHT_STRIDE, tile * TILE, at % ATTENTION_PIECE);
            SIMT_UNROLL
            for (uint32_t t = 0; t < DIM_TILES; t++) {
                simt_mma_f16(sums[tile][t], left.first, value[t]);
                simt_mma_f16(sums[tile][t], left.second, value[t] + 2);
            }
        }
    }
    SIMT_UNROLL
    for (uint32_t i = 0; i < QUERIES / TILE * DIM_TILES * 4; i++) {
        const uint32_t tile = i / (DIM_TILES * 4), t = i / 4 % DIM_TILES, nth = i % 4;
        const uint32_t q = tile * TILE + lane / 4 + nth / 2 * 8;
        const uint32_t d =
            KV::dim_of(dim_tile + t / KV::SIDES * WARPS, t % KV::SIDES, lane % 4 * 2 + nth % 2);
        if (q < w->n_queries && d < padded) {
            float *value = w->values + q * w->g->value_stride + d;
            *value = fold_value(w->shared->states[q], *value, sums[tile][t][nth]);
        }
    }
}

template <uint32_t QUERIES, class KV>
__device__ static inline void sum_piece(const struct attention_work<QUERIES> *w, uint32_t start)
{
    const uint32_t n_tiles = w->g->padded / 8 / KV::SIDES, warp = threadIdx.x / SIMT_LANES;
    for (uint32_t tile = warp; tile < n_tiles; tile += WARPS * DIM_TILES / KV::SIDES)
        sum_values<QUERIES, KV>(w, start, tile);
    simt_barrier();
}

#endif
