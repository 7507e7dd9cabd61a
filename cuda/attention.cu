/* SPDX-License-Identifier: MIT */
/* Attention over paged KV.
 *
 * Work is cut into items: a tile of rows of one sequence, neighbours with consecutive positions, and one
 * piece of ATTENTION_PIECE positions (or all pieces in turn), for each KV head. All query heads that share
 * the KV head, of all rows of the tile, are the item's queries: they share one read of keys and values.
 * Within a piece there are two passes over shared memory and no running maximum:
 *
 *   scores    warps take blocks of 32 positions, lane = position; query · key for all queries
 *   softmax   warps take queries: largest score, weights, their sum
 *   values    warps take 32 dims, lane = dim; the weighted sum over the piece's positions in their order
 *
 * and pieces are folded in their order with the usual rescaling (Milakov and Gimelshein 2018,
 * arXiv:1805.02867). So what a query's sums are made of, and in which order, hangs on its position alone: not
 * on the tile, nor on who computed which piece. Where there is memory for partial results, pieces are items
 * of their own; the last of a tile's to arrive folds them. Nobody waits.
 *
 * What a query must not see has weight 0 and, where no query of the tile sees it, value 0: blocks hold
 * anything beyond what was written, and nothing times infinity is no number. */

#include "cuda/kv.h"

#define WARPS        4
#define THREADS      (WARPS * SIMT_LANES)
#define PIECE_BLOCKS (ATTENTION_PIECE / BACKEND_BLOCK_TOKENS)
#define MOST_QUERIES 16
#define SMALL_BATCH  64  /* rows up to which a step is taken for decoding */
#define GRID         528 /* blocks of threads that go over the list: four for each of 132 multiprocessors */
#define PARTIAL_MOST ((size_t)256 << 20) /* bytes of partial results */
#define UNSHARED     UINT32_MAX          /* of an item: it goes over all pieces itself */

struct attention_item {
    uint32_t first_row, n_rows;
    uint32_t first_piece, n_pieces; /* of the item */
    uint32_t first_partial;         /* of the tile, whose piece p is partial first_partial + p; UNSHARED */
    uint32_t n_tile_pieces, tile;
};

/* How a launch cuts its work. The host makes it of what plan and attention both are given. */
struct attention_geometry {
    uint32_t group;      /* query heads of a KV head */
    uint32_t n_queries;  /* room of an item: the template's number */
    uint32_t heads;      /* query heads of an item: all of the group, or as many as there is room for */
    uint32_t n_chunks;   /* items that a group is cut into, 1 where it fits */
    uint32_t n_units;    /* KV heads · chunks: what each item of the list is done for */
    uint32_t tile_rows;  /* most rows of a tile: positions that are multiples of it begin one */
    uint32_t n_partials; /* pieces that there is memory for */
    uint32_t padded;     /* dims */
    uint32_t *n_items;
    struct attention_item *items; /* [max_rows + n_partials] */
    uint32_t *arrived;            /* [max_rows][n_units] of each tile's pieces */
    /* [n_partials][n_units] of: largest [n_queries], sum [n_queries], values [n_queries][padded] */
    float *partials;
};

/* ---- memory ---- */

static uint32_t partial_floats(const struct attention_geometry *g)
{
    return g->n_queries * (g->padded + 2);
}

static void cut_group(struct attention_geometry *g, const struct device_kv *kv, uint32_t n_heads,
                      uint32_t n_queries)
{
    *g = attention_geometry{};
    g->group = n_heads / kv->n_heads;
    g->n_queries = n_queries;
    g->heads = g->group < n_queries ? g->group : n_queries;
    g->n_chunks = (g->group + g->heads - 1) / g->heads;
    g->n_units = kv->n_heads * g->n_chunks;
    g->tile_rows = n_queries / g->heads;
    g->padded = (kv->dim + KV_VECTOR - 1) / KV_VECTOR * KV_VECTOR;
}

/* Pieces that can be under way at once: those of every row, those that fill the pool and a rest for each row
 * (what sequences share is counted once, and short of it only speed is lost), or what PARTIAL_MOST holds. */
static uint32_t count_partials(const struct attention_geometry *g, const struct device_kv *kv,
                               const struct attention_scratch *scratch)
{
    uint64_t pieces = (scratch->n_context + ATTENTION_PIECE - 1) / ATTENTION_PIECE;
    uint64_t every = pieces * scratch->max_rows,
             pool = kv->n_blocks / PIECE_BLOCKS + scratch->max_rows + 1ull;
    uint64_t fit = PARTIAL_MOST / (g->n_units * partial_floats(g) * sizeof(float));
    uint64_t n = every < pool ? every : pool;
    return (uint32_t)(n < fit ? n : fit);
}

static size_t align_16(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* Lays the memory out; returns its size. */
static size_t lay_out(struct attention_geometry *g, const struct device_kv *kv,
                      const struct attention_scratch *scratch, uint32_t n_queries)
{
    cut_group(g, kv, scratch->n_heads, n_queries);
    g->n_partials = count_partials(g, kv, scratch);
    size_t items = 16;
    size_t arrived = align_16(items + (scratch->max_rows + g->n_partials) * sizeof(struct attention_item));
    size_t partials = align_16(arrived + (size_t)scratch->max_rows * g->n_units * sizeof(uint32_t));
    g->n_items = (uint32_t *)scratch->memory;
    g->items = (struct attention_item *)(scratch->memory + items);
    g->arrived = (uint32_t *)(scratch->memory + arrived);
    g->partials = (float *)(scratch->memory + partials);
    return partials + (size_t)g->n_partials * g->n_units * partial_floats(g) * sizeof(float);
}

/* A decoding row brings the heads of one group, so room for more would be wasted on it. */
static uint32_t queries_for(const struct device_kv *kv, uint32_t n_heads, uint32_t n_rows)
{
    uint32_t group = n_heads / kv->n_heads;
    return n_rows > SMALL_BATCH || group > 8 ? MOST_QUERIES : group > 4 ? 8 : 4;
}

size_t kernels_attention_scratch(const struct device_kv *kv, const struct attention_scratch *scratch)
{
    size_t most = 0;
    for (uint32_t n_queries = 4; n_queries <= MOST_QUERIES; n_queries *= 2) {
        struct attention_geometry g;
        size_t bytes = lay_out(&g, kv, scratch, n_queries);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* ---- the work list ---- */

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
    lay_out(&g, kv, scratch, queries_for(kv, scratch->n_heads, n_rows));
    return simt_launch(queue, "plan_attention", plan_attention, {1, 1, 1}, {PLAN_THREADS, 1, 1},
                       sizeof(struct plan_shared), g, rows, n_rows);
}

/* ---- attention ---- */

struct alignas(16) floats_4 {
    float x[4];
};

/* Of one query: its softmax so far, and what the newest piece does to it. */
struct query_state {
    float largest, sum; /* over the pieces folded so far; −∞ and 0 at first */
    float before,
        piece; /* factors of what was summed so far and of the piece; piece < 0: it sees nothing there */
};

template <uint32_t QUERIES> struct attention_shared {
    struct query_state states[QUERIES];
    uint32_t last; /* whether this block is the last of its tile to arrive */
    alignas(16) float scores[QUERIES][ATTENTION_PIECE];
    /* then queries [QUERIES][padded], values [QUERIES][padded] */
};

/* What a block of threads is at: one item for one unit. */
template <uint32_t QUERIES> struct attention_work {
    const struct attention_step *step;
    const struct attention_geometry *g;
    struct attention_shared<QUERIES> *shared;
    float *queries, *values; /* of shared memory: [QUERIES][padded] */
    const uint32_t *table;   /* of the sequence */
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
    for (uint32_t i = threadIdx.x; i < QUERIES * g->padded; i += THREADS) {
        uint32_t q = i / g->padded, d = i % g->padded;
        const float *from = w->step->q + (size_t)(w->item.first_row + q / w->n_heads) * w->step->q_stride +
                            (size_t)(w->first_head + q % w->n_heads) * dim;
        w->queries[i] = q < w->n_queries && d < dim ? from[d] : 0;
    }
    for (uint32_t q = threadIdx.x; q < QUERIES; q += THREADS)
        w->shared->states[q] = query_state{-INFINITY, 0, 0, 0};
    simt_barrier();
}

/* Scores of 32 positions from `start` on, lane = position. */
template <uint32_t QUERIES>
__device__ static inline void score_block(const struct attention_work<QUERIES> *w, uint32_t start,
                                          uint32_t to)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES, padded = w->g->padded, window = w->step->window;
    const struct kv_halves *keys =
        kv_keys(&w->step->kv, w->table[start / BACKEND_BLOCK_TOKENS], w->step->layer, w->kv_head) + lane;
    float sums[QUERIES];
    SIMT_UNROLL
    for (uint32_t q = 0; q < QUERIES; q++)
        sums[q] = 0;
    for (uint32_t d = 0; d < padded; d += KV_VECTOR, keys += BACKEND_BLOCK_TOKENS) {
        const struct simt_16 raw = simt_load16(keys);
        float key[KV_VECTOR];
        SIMT_UNROLL
        for (uint32_t i = 0; i < KV_VECTOR; i++)
            key[i] = simt_float(half_t{(uint16_t)(raw.words[i / 2] >> i % 2 * 16)});
        SIMT_UNROLL
        for (uint32_t q = 0; q < QUERIES; q++) {
            const struct floats_4 *query = (const struct floats_4 *)(w->queries + q * padded + d);
            const struct floats_4 low = query[0], high = query[1];
            SIMT_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                sums[q] = fmaf(low.x[i], key[i], sums[q]);
            SIMT_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                sums[q] = fmaf(high.x[i], key[4 + i], sums[q]);
        }
    }
    const float cap = w->step->cap;
    SIMT_UNROLL
    for (uint32_t q = 0; q < QUERIES; q++) {
        uint32_t position = w->position + q / w->n_heads, at = start + lane;
        bool seen = q < w->n_queries && at <= position && at >= first_seen(position, window);
        float score = cap > 0 ? cap * tanhf(sums[q] / cap) : sums[q];
        w->shared->scores[q][to + lane] = seen ? score : -INFINITY;
    }
}

template <uint32_t QUERIES>
__device__ static inline void score_piece(const struct attention_work<QUERIES> *w, uint32_t start)
{
    for (uint32_t b = threadIdx.x / SIMT_LANES; b < PIECE_BLOCKS; b += WARPS) {
        uint32_t to = b * BACKEND_BLOCK_TOKENS, block_start = start + to;
        if (block_start <= w->last && block_start + BACKEND_BLOCK_TOKENS > w->first_seen) {
            score_block<QUERIES>(w, block_start, to);
        } else {
            for (uint32_t q = 0; q < QUERIES; q++)
                w->shared->scores[q][to + threadIdx.x % SIMT_LANES] = -INFINITY;
        }
    }
    simt_barrier();
}

/* How a softmax over `largest` and `sum` joins the one so far. */
__device__ static inline struct query_state fold(struct query_state state, float largest, float sum)
{
    float most = largest > state.largest ? largest : state.largest;
    state.before = state.sum == 0 ? 0 : expf(state.largest - most);
    state.piece = sum == 0 ? -1 : expf(largest - most);
    state.sum = sum == 0 ? state.sum : fmaf(state.sum, state.before, sum * state.piece);
    state.largest = most;
    return state;
}

/* A value that was summed so far, and the piece's. */
__device__ static inline float fold_value(struct query_state state, float value, float piece)
{
    if (state.piece < 0)
        return value;
    return state.before == 0 ? piece * state.piece : fmaf(value, state.before, piece * state.piece);
}

/* A score that is no number makes sum and largest so, and with them all that the row becomes. */
template <uint32_t QUERIES> __device__ static inline void weigh_piece(const struct attention_work<QUERIES> *w)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES;
    for (uint32_t q = threadIdx.x / SIMT_LANES; q < w->n_queries; q += WARPS) {
        float *scores = w->shared->scores[q];
        float largest = -INFINITY, sum = 0;
        SIMT_UNROLL
        for (uint32_t i = lane; i < ATTENTION_PIECE; i += SIMT_LANES)
            largest = scores[i] > largest ? scores[i] : largest;
        largest = simt_warp_max(largest);
        SIMT_UNROLL
        for (uint32_t i = lane; i < ATTENTION_PIECE; i += SIMT_LANES) {
            float weight = scores[i] == -INFINITY ? 0 : expf(scores[i] - largest);
            scores[i] = weight;
            sum += weight;
        }
        sum = simt_warp_sum(sum);
        if (lane == 0)
            w->shared->states[q] = fold(w->shared->states[q], largest, sum);
    }
    simt_barrier();
}

/* The weighted sum of one dim over the piece, for queries q0 … q0 + N − 1. */
template <uint32_t QUERIES, uint32_t N>
__device__ static inline void sum_values(const struct attention_work<QUERIES> *w, uint32_t start, uint32_t d,
                                         uint32_t q0)
{
    const uint32_t padded = w->g->padded;
    const uint32_t end = start + ATTENTION_PIECE < w->last + 1 ? start + ATTENTION_PIECE : w->last + 1;
    float sums[N];
    SIMT_UNROLL
    for (uint32_t q = 0; q < N; q++)
        sums[q] = 0;
    uint32_t at = start > w->first_seen ? start : w->first_seen / KV_VECTOR * KV_VECTOR;
    for (; at < end; at += KV_VECTOR) {
        const struct kv_halves *values =
            kv_values(&w->step->kv, w->table[at / BACKEND_BLOCK_TOKENS], w->step->layer, w->kv_head);
        const struct simt_16 raw = simt_load16(values + at % BACKEND_BLOCK_TOKENS / KV_VECTOR * padded + d);
        const bool whole = at >= w->first_seen && at + KV_VECTOR <= end;
        float value[KV_VECTOR];
        SIMT_UNROLL
        for (uint32_t i = 0; i < KV_VECTOR; i++) {
            value[i] = simt_float(half_t{(uint16_t)(raw.words[i / 2] >> i % 2 * 16)});
            if (!whole && (at + i < w->first_seen || at + i >= end))
                value[i] = 0;
        }
        SIMT_UNROLL
        for (uint32_t q = 0; q < N; q++) {
            const struct floats_4 *weights =
                (const struct floats_4 *)(w->shared->scores[q0 + q] + at % ATTENTION_PIECE);
            const struct floats_4 low = weights[0], high = weights[1];
            SIMT_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                sums[q] = fmaf(low.x[i], value[i], sums[q]);
            SIMT_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                sums[q] = fmaf(high.x[i], value[4 + i], sums[q]);
        }
    }
    SIMT_UNROLL
    for (uint32_t q = 0; q < N; q++)
        if (q0 + q < w->n_queries) {
            float *value = w->values + (q0 + q) * padded + d;
            *value = fold_value(w->shared->states[q0 + q], *value, sums[q]);
        }
}

template <uint32_t QUERIES>
__device__ static inline void sum_piece(const struct attention_work<QUERIES> *w, uint32_t start)
{
    const uint32_t N = QUERIES < 8 ? QUERIES : 8;
    const uint32_t n_slices = (w->g->padded + SIMT_LANES - 1) / SIMT_LANES;
    for (uint32_t u = threadIdx.x / SIMT_LANES; u < n_slices * (QUERIES / N); u += WARPS) {
        uint32_t d = u % n_slices * SIMT_LANES + threadIdx.x % SIMT_LANES;
        if (d < w->g->padded && u / n_slices * N < w->n_queries)
            sum_values<QUERIES, N>(w, start, d, u / n_slices * N);
    }
    simt_barrier();
}

template <uint32_t QUERIES> __device__ static inline void write_out(const struct attention_work<QUERIES> *w)
{
    const uint32_t dim = w->step->kv.dim;
    for (uint32_t i = threadIdx.x; i < w->n_queries * dim; i += THREADS) {
        uint32_t q = i / dim, d = i % dim;
        w->step->out.values[(size_t)(w->item.first_row + q / w->n_heads) * w->step->out.stride +
                            (size_t)(w->first_head + q % w->n_heads) * dim + d] =
            w->values[q * w->g->padded + d] / w->shared->states[q].sum;
    }
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
        to[2 * QUERIES + i] = w->values[i];
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
        for (uint32_t i = threadIdx.x; i < w->n_queries * w->g->padded; i += THREADS)
            w->values[i] =
                fold_value(w->shared->states[i / w->g->padded], w->values[i], from[2 * QUERIES + i]);
    }
    simt_barrier();
}

template <uint32_t QUERIES> __device__ static inline void share_work(const struct attention_work<QUERIES> *w)
{
    simt_fence();
    simt_barrier();
    if (threadIdx.x == 0) {
        uint32_t *arrived = &w->g->arrived[(size_t)w->item.tile * w->g->n_units + w->unit];
        w->shared->last = simt_atomic_add(arrived, 1u) + 1 == w->item.n_tile_pieces;
        if (w->shared->last)
            *arrived = 0; /* for the next layer */
    }
    simt_barrier();
    if (w->shared->last) {
        simt_fence();
        fold_partials(w);
        write_out(w);
    }
}

/* A fixed grid over items · units. A block reads its piece's keys and values once, for all its queries: 4 ·
 * dim · 256 bytes; partial results are n_queries · 4 · dim. */
template <uint32_t QUERIES>
static __global__ void __launch_bounds__(THREADS, 4)
    attend(struct attention_step step, struct attention_geometry g, struct slots slots,
           const struct step_row *rows)
{
    struct attention_work<QUERIES> w;
    w.step = &step;
    w.g = &g;
    w.shared = simt_shared<struct attention_shared<QUERIES>>();
    w.queries = (float *)(w.shared + 1);
    w.values = w.queries + QUERIES * g.padded;
    const uint32_t n = *g.n_items * g.n_units;
    for (uint32_t i = blockIdx.x; i < n; i += gridDim.x) {
        w.item = g.items[i / g.n_units];
        w.unit = i % g.n_units;
        start_work(&w, &slots, rows);
        uint32_t piece = w.first_seen / ATTENTION_PIECE, end = w.item.first_piece + w.item.n_pieces;
        const bool sees = piece < end;
        for (piece = piece < w.item.first_piece ? w.item.first_piece : piece; piece < end; piece++) {
            score_piece(&w, piece * ATTENTION_PIECE);
            weigh_piece(&w);
            sum_piece(&w, piece * ATTENTION_PIECE);
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

template <uint32_t QUERIES>
static int launch(struct device_stream *queue, const struct attention_step *step, const struct slots *slots,
                  const struct step_row *rows, uint32_t n_rows)
{
    struct attention_geometry g;
    lay_out(&g, &step->kv, &step->scratch, QUERIES);
    uint64_t pieces = (step->scratch.n_context + ATTENTION_PIECE - 1) / ATTENTION_PIECE;
    uint64_t most = n_rows * pieces * g.n_units;
    size_t shared = sizeof(struct attention_shared<QUERIES>) + 2 * QUERIES * g.padded * sizeof(float);
    return simt_launch(queue, "attention", attend<QUERIES>, {most < GRID ? (uint32_t)most : GRID, 1, 1},
                       {THREADS, 1, 1}, shared, *step, g, *slots, rows);
}

int kernels_attention(struct device_stream *queue, const struct attention_step *step,
                      const struct slots *slots, const struct step_row *rows, uint32_t n_rows)
{
    uint32_t n_queries = queries_for(&step->kv, step->scratch.n_heads, n_rows);
    int r = n_queries == 4   ? launch<4>(queue, step, slots, rows, n_rows)
            : n_queries == 8 ? launch<8>(queue, step, slots, rows, n_rows)
                             : launch<MOST_QUERIES>(queue, step, slots, rows, n_rows);
    if (r < 0 || !step->out.quants)
        return r;
    return kernels_quantize(queue, &step->out, step->scratch.n_heads * step->kv.dim, n_rows);
}
