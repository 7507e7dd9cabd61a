/* SPDX-License-Identifier: MIT */
/* Attention over paged KV.
 *
 * Work is cut into items: a tile of rows of one sequence, neighbours with consecutive positions, and one
 * piece of ATTENTION_PIECE positions (or all pieces in turn), for each KV head. All query heads that share
 * the KV head, of all rows of the tile, are the item's queries: they share one read of keys and values.
 * Within a piece there are two warp matrix products with shared memory between them, and no running maximum:
 *
 *   scores    warps take blocks of 32 positions: queries · keys
 *   softmax   warps take queries: largest score, weights, their sum
 *   values    warps take dims, 8 at a time: weights · values over the piece's positions
 *
 * and pieces are folded in their order with the usual rescaling (Milakov and Gimelshein 2018,
 * arXiv:1805.02867). A row of a matrix product knows nothing of the others, so what a query's sums are made
 * of, and in which order, hangs on its position alone: not on the tile, nor on who computed which piece.
 * Where there is memory for partial results, pieces are items of their own; the last of a tile's to arrive
 * folds them. Nobody waits.
 *
 * The 16 bytes of keys that a lane loads (kv.h) are its part of the right side of two products, if the summed
 * dims are numbered so: of 32 dims, lane % 4 has 8 neighbours, of which the first product takes the lower
 * four and the second the upper. Queries are read from shared memory in the same order, again 16 bytes at a
 * time; weights and values likewise, with positions for dims. Queries are split into two halves whose sum has
 * a float's 22 leading bits, for scores may be large; weights are rounded to halves, and summed as rounded.
 *
 * What a query must not see has weight 0 and, where no query of the tile sees it, value 0: blocks hold
 * anything beyond what was written, and nothing times infinity is no number. */

#include "cuda/activations.h"
#include "cuda/kv.h"

#define WARPS        4
#define THREADS      (WARPS * SIMT_LANES)
#define PIECE_BLOCKS (ATTENTION_PIECE / BACKEND_BLOCK_TOKENS)
#define TILE         16 /* queries of a matrix product */
#define MOST_QUERIES 32
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
    uint32_t group;        /* query heads of a KV head */
    uint32_t n_queries;    /* room of an item: the template's number */
    uint32_t heads;        /* query heads of an item: all of the group, or as many as there is room for */
    uint32_t n_chunks;     /* items that a group is cut into, 1 where it fits */
    uint32_t n_units;      /* KV heads · chunks: what each item of the list is done for */
    uint32_t tile_rows;    /* most rows of a tile: positions that are multiples of it begin one */
    uint32_t n_partials;   /* pieces that there is memory for */
    uint32_t padded;       /* dims */
    uint32_t query_stride; /* halves, an odd number of 64 bytes; dims beyond `padded` are zero */
    uint32_t rounds;       /* outputs are quantized by who makes them */
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

/* Blocks of 32 columns are one item's matter if none reaches from one head into the next. */
static bool rounds(uint32_t dim)
{
    return dim % 32 == 0;
}

static void cut_group(struct attention_geometry *g, const struct device_kv *kv, uint32_t n_heads,
                      uint32_t n_queries)
{
    *g = attention_geometry{};
    g->group = n_heads / kv->n_heads;
    g->n_queries = n_queries;
    g->heads = g->group < n_queries ? g->group : n_queries;
    g->rounds = rounds(kv->dim);
    g->n_chunks = (g->group + g->heads - 1) / g->heads;
    g->n_units = kv->n_heads * g->n_chunks;
    g->tile_rows = n_queries / g->heads;
    g->padded = (kv->dim + KV_VECTOR - 1) / KV_VECTOR * KV_VECTOR;
    g->query_stride = (kv->dim + 31) / 32 * 32;
    g->query_stride += g->query_stride % 64 == 0 ? 32 : 0;
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

/* A decoding row brings the heads of one group; rows of a prompt come many at a time, and share what they
 * read if their heads are not too large for the shared memory of small devices. */
static uint32_t queries_for(uint32_t dim, uint32_t n_rows)
{
    return n_rows > SMALL_BATCH && dim <= 192 ? MOST_QUERIES : TILE;
}

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
    lay_out(&g, kv, scratch, queries_for(kv->dim, n_rows));
    return simt_launch(queue, "plan_attention", plan_attention, {1, 1, 1}, {PLAN_THREADS, 1, 1},
                       sizeof(struct plan_shared), g, rows, n_rows);
}

/* ---- attention ---- */

/* Floats of a query's row of scores, and halves of its weights, which take the place of the scores. A row is
 * an odd number of 64 bytes, so that eight lanes which read two rows meet in no bank. */
#define SCORE_STRIDE  (ATTENTION_PIECE + 16)
#define WEIGHT_STRIDE (2 * SCORE_STRIDE)

/* Of one query: its softmax so far, and what the newest piece does to it. */
struct query_state {
    float largest, sum; /* over the pieces folded so far; −∞ and 0 at first */
    float before,
        piece; /* factors of what was summed so far and of the piece; piece < 0: it sees nothing there */
};

template <uint32_t QUERIES> struct attention_shared {
    struct query_state states[QUERIES];
    uint32_t last; /* whether this block is the last of its tile to arrive */
    alignas(16) float scores[QUERIES][SCORE_STRIDE];
    /* then queries, high and low halves, [2][QUERIES][query_stride], and values [QUERIES][padded] floats */
};

/* What a block of threads is at: one item for one unit. */
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

/* Left sides of two products: rows `row` + lane / 4 and eight further, 8 neighbouring halves of each from
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

#define TOKEN_TILES (BACKEND_BLOCK_TOKENS / 8) /* right sides of a block */

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

/* Scores of the 32 positions from `start` on, which go to column `to`. One warp. */
template <uint32_t QUERIES>
__device__ static inline void score_block(const struct attention_work<QUERIES> *w, uint32_t start,
                                          uint32_t to)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES, n_vectors = w->g->padded / KV_VECTOR;
    const uint32_t stride = w->g->query_stride;
    const struct kv_halves *keys =
        kv_keys(&w->step->kv, w->table[start / BACKEND_BLOCK_TOKENS], w->step->layer, w->kv_head) + lane / 4;
    float sums[QUERIES / TILE][TOKEN_TILES][4] = {};
    SIMT_UNROLL_BY(2)
    for (uint32_t vector = 0; vector < n_vectors; vector += 4) {
        struct simt_16 key[TOKEN_TILES];
        const uint32_t mine = vector + lane % 4;
        SIMT_UNROLL
        for (uint32_t t = 0; t < TOKEN_TILES; t++)
            key[t] = mine < n_vectors ? simt_load16(keys + mine * BACKEND_BLOCK_TOKENS + t * 8) : simt_16{};
        SIMT_UNROLL
        for (uint32_t tile = 0; tile < QUERIES / TILE; tile++) {
            if (tile * TILE >= w->n_queries)
                break;
            SIMT_UNROLL
            for (uint32_t part = 0; part < 2; part++) {
                const struct left_sides left =
                    load_left(w->queries + part * QUERIES * stride, stride, tile * TILE, vector * KV_VECTOR);
                SIMT_UNROLL
                for (uint32_t t = 0; t < TOKEN_TILES; t++) {
                    simt_mma_f16(sums[tile][t], left.first, key[t].words);
                    simt_mma_f16(sums[tile][t], left.second, key[t].words + 2);
                }
            }
        }
    }
    SIMT_UNROLL
    for (uint32_t i = 0; i < QUERIES / TILE * TOKEN_TILES * 4; i++) {
        const uint32_t tile = i / (TOKEN_TILES * 4), t = i / 4 % TOKEN_TILES, nth = i % 4;
        const uint32_t column = t * 8 + lane % 4 * 2 + nth % 2;
        write_scores(w, tile * TILE + lane / 4 + nth / 2 * 8, start + column, to + column,
                     sums[tile][t][nth]);
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

/* A score that is no number makes the sum so, and with it all that the query becomes. */
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
        simt_warp_barrier(); /* all have been read: weights take their place */
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

/* Four times 8 positions' values of one dim, less those that nobody sees. `at` is the first position. */
template <uint32_t QUERIES>
__device__ static inline struct simt_16 load_values(const struct attention_work<QUERIES> *w,
                                                    const struct kv_halves *values, uint32_t at)
{
    struct simt_16 raw = simt_load16(values);
    if (at < w->first_seen || at + KV_VECTOR > w->last + 1) {
        SIMT_UNROLL
        for (uint32_t i = 0; i < KV_VECTOR; i++)
            if (at + i < w->first_seen || at + i > w->last)
                raw.words[i / 2] &= i % 2 ? 0xffffu : 0xffff0000u;
    }
    return raw;
}

/* What the piece adds to dims 8 · dim_tile … of all queries, WARPS dim tiles apart. One warp. */
template <uint32_t QUERIES>
__device__ static inline void sum_values(const struct attention_work<QUERIES> *w, uint32_t start,
                                         uint32_t dim_tile)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES, padded = w->g->padded, n_tiles = padded / 8;
    const uint32_t end = start + ATTENTION_PIECE < w->last + 1 ? start + ATTENTION_PIECE : w->last + 1;
    const half_t *weights = (const half_t *)w->shared->scores;
    float sums[QUERIES / TILE][DIM_TILES][4] = {};
    uint32_t at = start > w->first_seen ? start : w->first_seen / BACKEND_BLOCK_TOKENS * BACKEND_BLOCK_TOKENS;
    SIMT_UNROLL_BY(2)
    for (; at < end; at += BACKEND_BLOCK_TOKENS) {
        const struct kv_halves *values =
            kv_values(&w->step->kv, w->table[at / BACKEND_BLOCK_TOKENS], w->step->layer, w->kv_head) +
            lane % 4 * padded + lane / 4;
        struct simt_16 value[DIM_TILES];
        SIMT_UNROLL
        for (uint32_t t = 0; t < DIM_TILES; t++) {
            const uint32_t tile = dim_tile + t * WARPS;
            value[t] = tile < n_tiles ? load_values(w, values + tile * 8, at + lane % 4 * 8) : simt_16{};
        }
        SIMT_UNROLL
        for (uint32_t tile = 0; tile < QUERIES / TILE; tile++) {
            if (tile * TILE >= w->n_queries)
                break;
            const struct left_sides left =
                load_left(weights, WEIGHT_STRIDE, tile * TILE, at % ATTENTION_PIECE);
            SIMT_UNROLL
            for (uint32_t t = 0; t < DIM_TILES; t++) {
                simt_mma_f16(sums[tile][t], left.first, value[t].words);
                simt_mma_f16(sums[tile][t], left.second, value[t].words + 2);
            }
        }
    }
    SIMT_UNROLL
    for (uint32_t i = 0; i < QUERIES / TILE * DIM_TILES * 4; i++) {
        const uint32_t tile = i / (DIM_TILES * 4), t = i / 4 % DIM_TILES, nth = i % 4;
        const uint32_t q = tile * TILE + lane / 4 + nth / 2 * 8;
        const uint32_t d = (dim_tile + t * WARPS) * 8 + lane % 4 * 2 + nth % 2;
        if (q < w->n_queries && d < padded) {
            float *value = w->values + q * padded + d;
            *value = fold_value(w->shared->states[q], *value, sums[tile][t][nth]);
        }
    }
}

template <uint32_t QUERIES>
__device__ static inline void sum_piece(const struct attention_work<QUERIES> *w, uint32_t start)
{
    for (uint32_t tile = threadIdx.x / SIMT_LANES; tile < w->g->padded / 8; tile += WARPS * DIM_TILES)
        sum_values(w, start, tile);
    simt_barrier();
}

/* What a query's values have become in dim d. */
template <uint32_t QUERIES>
__device__ static inline float value_of(const struct attention_work<QUERIES> *w, uint32_t q, uint32_t d)
{
    return w->values[q * w->g->padded + d] / w->shared->states[q].sum;
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

template <uint32_t QUERIES>
__device__ static inline void write_floats(const struct attention_work<QUERIES> *w)
{
    const uint32_t dim = w->step->kv.dim;
    for (uint32_t i = threadIdx.x; i < w->n_queries * dim; i += THREADS) {
        const uint32_t q = i / dim, d = i % dim;
        const size_t row = w->item.first_row + q / w->n_heads, head = w->first_head + q % w->n_heads;
        w->step->out.values[row * w->step->out.stride + head * dim + d] = value_of(w, q, d);
    }
}

template <uint32_t QUERIES> __device__ static inline void write_out(const struct attention_work<QUERIES> *w)
{
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
    size_t shared = sizeof(struct attention_shared<QUERIES>) +
                    QUERIES * (2 * g.query_stride * sizeof(half_t) + g.padded * sizeof(float));
    return simt_launch(queue, "attention", attend<QUERIES>, {most < GRID ? (uint32_t)most : GRID, 1, 1},
                       {THREADS, 1, 1}, shared, *step, g, *slots, rows);
}

int kernels_attention(struct device_stream *queue, const struct attention_step *step,
                      const struct slots *slots, const struct step_row *rows, uint32_t n_rows)
{
    int r = queries_for(step->kv.dim, n_rows) == TILE
                ? launch<TILE>(queue, step, slots, rows, n_rows)
                : launch<MOST_QUERIES>(queue, step, slots, rows, n_rows);
    if (r < 0 || !step->out.quants || rounds(step->kv.dim))
        return r;
    return kernels_quantize(queue, &step->out, step->scratch.n_heads * step->kv.dim, n_rows);
}
