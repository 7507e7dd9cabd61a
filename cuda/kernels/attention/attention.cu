/* SPDX-License-Identifier: MIT */
/* Attention over paged KV: a fixed grid of blocks that go over the items of the work list.
 *
 * Where there is memory for partial results, pieces are items of their own; the last of a tile's to arrive
 * folds them. Nobody waits. What becomes of one piece is attention_piece.h's matter. */

#include "cuda/kernels/activations.h"
#include "cuda/kernels/arrivals.h"
#include "cuda/kernels/attention/attention_piece.h"
#include "cuda/kernels/attention/kv_f16.h"
#include "cuda/kernels/attention/kv_q4.h"
#include "cuda/kernels/attention/kv_q8.h"

#define GRID 528 /* blocks of threads that go over the list: four for each of 132 multiprocessors */

template <uint32_t QUERIES>
__device__ static inline void start_work(struct attention_work<QUERIES> *w, const struct slots *slots,
                                         const struct step_row *rows)
{
    const struct attention_geometry *g = w->g;
    const struct step_row row = rows[w->item.first_row];
    const uint32_t chunk = w->unit % g->n_chunks, dim = w->step->kv.dim;
    w->kv_head = w->unit / g->n_chunks;
    w->first_head = w->kv_head * g->group + chunk * g->heads;
    w->n_heads = g->group - chunk * g->heads < g->heads ? g->group - chunk * g->heads : g->heads;
    w->n_queries = w->item.n_rows * w->n_heads;
    w->position = row.position;
    w->last = row.position + w->item.n_rows - 1;
    w->first_seen = first_seen(row.position, w->step->window);
    w->table = slots->tables + (size_t)row.slot * slots->table_size;
    for (uint32_t i = threadIdx.x; i < QUERIES * g->query_stride; i += THREADS) {
        uint32_t q = i / g->query_stride, d = i % g->query_stride;
        const float *from = w->step->q + (size_t)(w->item.first_row + q / w->n_heads) * w->step->q_stride +
                            (size_t)(w->first_head + q % w->n_heads) * dim;
        const float query = q < w->n_queries && d < dim ? from[d] : 0;
        const half_t high = simt_half(query > 65504 ? 65504.0f : query < -65504 ? -65504.0f : query);
        w->queries[i] = high;
        w->queries[QUERIES * g->query_stride + i] = simt_half(query - simt_float(high));
    }
    for (uint32_t q = threadIdx.x; q < QUERIES; q += THREADS)
        w->shared->states[q] = query_state{-INFINITY, 0, 0, 0};
    simt_barrier();
}

/* What a query's values have become in dim d. */
template <uint32_t QUERIES>
__device__ static inline float value_of(const struct attention_work<QUERIES> *w, uint32_t q, uint32_t d)
{
    return w->values[q * w->g->value_stride + d] / w->shared->states[q].sum;
}

/* Four columns a thread, as floats and quantized. The last heads' item writes the zeros beyond them too. */
template <uint32_t QUERIES>
__device__ static inline void write_rounded(const struct attention_work<QUERIES> *w)
{
    const uint32_t dim = w->step->kv.dim, first = w->first_head * dim, in_heads = w->n_heads * dim;
    const bool ends = w->first_head + w->n_heads == w->step->scratch.n_heads;
    const uint32_t n_columns = ends ? w->step->out.stride - first : in_heads, n = w->item.n_rows * n_columns;
    for (uint32_t i = threadIdx.x * 4; i / (SIMT_LANES * 4) * (SIMT_LANES * 4) < n; i += THREADS * 4) {
        const uint32_t row = i / n_columns, column = i % n_columns;
        const bool is_there = i < n, has_head = is_there && column < in_heads;
        struct float_four four;
        SIMT_UNROLL
        for (uint32_t j = 0; j < 4; j++)
            four.v[j] = has_head ? value_of(w, row * w->n_heads + column / dim, column % dim + j) : 0;
        write_activations(four, &w->step->out, w->item.first_row + row, first + column, is_there);
    }
}

/* The last heads' item writes the zeros beyond them: layers may differ in their heads. */
template <uint32_t QUERIES>
__device__ static inline void write_floats(const struct attention_work<QUERIES> *w)
{
    const uint32_t dim = w->step->kv.dim, end = (w->first_head + w->n_heads) * dim;
    const bool ends = w->first_head + w->n_heads == w->step->scratch.n_heads;
    const uint32_t rest = ends ? w->step->out.stride - end : 0;
    for (uint32_t i = threadIdx.x; i < w->item.n_rows * rest; i += THREADS)
        w->step->out.values[(size_t)(w->item.first_row + i / rest) * w->step->out.stride + end + i % rest] =
            0;
    for (uint32_t i = threadIdx.x; i < w->n_queries * dim; i += THREADS) {
        const uint32_t q = i / dim, d = i % dim;
        const size_t row = w->item.first_row + q / w->n_heads, head = w->first_head + q % w->n_heads;
        w->step->out.values[row * w->step->out.stride + head * dim + d] = value_of(w, q, d);
    }
}

/* A score that has no value: it takes its part of the weights and gives nothing. It joins when all pieces are
 * folded, whoever has done that, so that it is met once and in one place. Far above all scores it is
 * infinity, of which a value's part is nothing. */
template <uint32_t QUERIES> __device__ static inline void join_sinks(const struct attention_work<QUERIES> *w)
{
    for (uint32_t q = threadIdx.x; q < w->n_queries; q += THREADS) {
        struct query_state *state = &w->shared->states[q];
        state->sum += expf(w->step->sinks[w->first_head + q % w->n_heads] - state->largest);
    }
    simt_barrier();
}

template <uint32_t QUERIES> __device__ static inline void write_out(const struct attention_work<QUERIES> *w)
{
    if (w->step->sinks)
        join_sinks(w);
    if (w->g->rounds)
        write_rounded(w);
    else
        write_floats(w);
}

template <uint32_t QUERIES>
__device__ static inline float *partial_at(const struct attention_work<QUERIES> *w, uint32_t piece)
{
    return w->g->partials + ((size_t)(w->item.first_partial + piece) * w->g->n_units + w->unit) *
                                (QUERIES * (w->g->padded + 2));
}

template <uint32_t QUERIES>
__device__ static inline void leave_partial(const struct attention_work<QUERIES> *w)
{
    float *to = partial_at(w, w->item.first_piece);
    for (uint32_t q = threadIdx.x; q < w->n_queries; q += THREADS) {
        to[q] = w->shared->states[q].largest;
        to[QUERIES + q] = w->shared->states[q].sum;
    }
    for (uint32_t i = threadIdx.x; i < w->n_queries * w->g->padded; i += THREADS)
        to[2 * QUERIES + i] = w->values[i / w->g->padded * w->g->value_stride + i % w->g->padded];
}

/* The last block of a tile: all its pieces from the first that is seen, in their order. */
template <uint32_t QUERIES>
__device__ static inline void fold_partials(const struct attention_work<QUERIES> *w)
{
    for (uint32_t q = threadIdx.x; q < QUERIES; q += THREADS)
        w->shared->states[q] = query_state{-INFINITY, 0, 0, 0};
    for (uint32_t piece = w->first_seen / ATTENTION_PIECE; piece < w->item.n_tile_pieces; piece++) {
        const float *from = partial_at(w, piece);
        simt_barrier();
        for (uint32_t q = threadIdx.x; q < w->n_queries; q += THREADS)
            w->shared->states[q] = fold(w->shared->states[q], from[q], from[QUERIES + q]);
        simt_barrier();
        for (uint32_t i = threadIdx.x; i < w->n_queries * w->g->padded; i += THREADS) {
            const uint32_t q = i / w->g->padded;
            float *value = w->values + q * w->g->value_stride + i % w->g->padded;
            *value = fold_value(w->shared->states[q], *value, from[2 * QUERIES + i]);
        }
    }
    simt_barrier();
}

template <uint32_t QUERIES> __device__ static inline void share_work(const struct attention_work<QUERIES> *w)
{
    uint32_t *arrived = &w->g->arrived[(size_t)w->item.tile * w->g->n_units + w->unit];
    if (last_to_arrive(arrived, 1, w->item.n_tile_pieces, &w->shared->last)) {
        fold_partials(w);
        write_out(w);
    }
}

/* A fixed grid over items · units. A block reads its piece's keys and values once, for all its queries: 4 ·
 * dim · 256 bytes of f16, a little more than half of that of q8_0, than a quarter of q4_0; partial results
 * are n_queries · 4 · dim.
 */
template <uint32_t QUERIES, class KV>
static __global__ void __launch_bounds__(THREADS, QUERIES > TILE ? KV::WIDE_BLOCKS : 4)
    attend(struct attention_step step, struct attention_geometry g, struct slots slots,
           const struct step_row *rows)
{
    simt_start();
    struct attention_work<QUERIES> w;
    w.step = &step;
    w.g = &g;
    w.shared = simt_shared<struct attention_shared<QUERIES>>();
    w.queries = (half_t *)(w.shared + 1);
    w.values = (float *)(w.queries + 2 * QUERIES * g.query_stride);
    const uint32_t n = *g.n_items * g.n_units;
    for (uint32_t i = blockIdx.x; i < n; i += gridDim.x) {
        w.item = g.items[i / g.n_units];
        w.unit = i % g.n_units;
        start_work(&w, &slots, rows);
        uint32_t piece = w.first_seen / ATTENTION_PIECE, end = w.item.first_piece + w.item.n_pieces;
        const bool sees = piece < end;
        for (piece = piece < w.item.first_piece ? w.item.first_piece : piece; piece < end; piece++) {
            score_piece<QUERIES, KV>(&w, piece * ATTENTION_PIECE);
            weigh_piece(&w);
            sum_piece<QUERIES, KV>(&w, piece * ATTENTION_PIECE);
        }
        if (w.item.first_partial == UNSHARED) {
            write_out(&w);
        } else {
            if (sees)
                leave_partial(&w);
            share_work(&w);
        }
        simt_barrier();
    }
}

template <uint32_t QUERIES, class KV>
static int launch(struct device_stream *queue, const struct attention_step *step, const struct slots *slots,
                  const struct step_row *rows, uint32_t n_rows)
{
    struct attention_geometry g;
    lay_out(&g, &step->kv, &step->scratch, QUERIES);
    uint64_t pieces = (step->scratch.n_context + ATTENTION_PIECE - 1) / ATTENTION_PIECE;
    uint64_t most = n_rows * pieces * g.n_units;
    size_t shared = sizeof(struct attention_shared<QUERIES>) +
                    QUERIES * (2 * g.query_stride * sizeof(half_t) + g.value_stride * sizeof(float));
    return simt_launch(queue, "attention", attend<QUERIES, KV>, {most < GRID ? (uint32_t)most : GRID, 1, 1},
                       {THREADS, 1, 1}, shared, *step, g, *slots, rows);
}

template <class KV>
static int launch_for(struct device_stream *queue, const struct attention_step *step,
                      const struct slots *slots, const struct step_row *rows, uint32_t n_rows)
{
    return queries_for(step->kv.dim, n_rows) == TILE
               ? launch<TILE, KV>(queue, step, slots, rows, n_rows)
               : launch<MOST_QUERIES, KV>(queue, step, slots, rows, n_rows);
}

static int launch_typed(struct device_stream *queue, const struct attention_step *step,
                        const struct slots *slots, const struct step_row *rows, uint32_t n_rows)
{
    switch (step->kv.type) {
    case BACKEND_KV_Q8:
        return launch_for<kv_q8>(queue, step, slots, rows, n_rows);
    case BACKEND_KV_Q4:
        return launch_for<kv_q4>(queue, step, slots, rows, n_rows);
    case BACKEND_KV_DEFAULT:
    case BACKEND_KV_F16:
    case BACKEND_KV_BF16:
    case BACKEND_KV_F32:
        break; /* the others are refused before */
    }
    return launch_for<kv_f16>(queue, step, slots, rows, n_rows);
}

int kernels_attention(struct device_stream *queue, const struct attention_step *step,
                      const struct slots *slots, const struct step_row *rows, uint32_t n_rows)
{
    int r = launch_typed(queue, step, slots, rows, n_rows);
    if (r < 0 || !step->out.quants || rounds(step->kv.dim))
        return r;
    return kernels_quantize(queue, &step->out, step->scratch.n_heads * step->kv.dim, n_rows);
}
