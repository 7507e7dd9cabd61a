/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_PRODUCTS_TILE_H
#define CUDA_KERNELS_PRODUCTS_TILE_H

/* A tile of a product, on tensor cores: int8 by int8, m16n8k32, one block of 32 columns at a time.
 *
 * A group of threads goes through the columns 256 at a time (a step): it opens the blocks of its rows of the
 * matrix into shared memory as signed bytes with their scales, puts the activations' bytes beside them, and
 * multiplies, while the next step's loads are in flight. Products of a block are exact; each block is scaled
 * and added to the output's sum, in float. F32, F16 and BF16 weights take the same path as floats, 64 columns
 * a step, with ordinary multiply-adds.
 *
 * ORDER. The columns are divided into PARTS runs. A run is summed column by column, and the runs' sums are
 * added in their order. An output's bits depend on nothing else, so there are two ways to the same bits:
 *
 *   thin  16 rows of the matrix by 8 or 16 of x to a block of threads, one part to a warp: many loads in
 *         flight where rows are few
 *   wide  64 by 64 to a block, eight warps of 16 by 32, part after part: weights are read once for 64 rows */

#include "cuda/kernels/products/products.h"

#define PARTS STREAM_K_PARTS
#define STEP  256 /* columns */
#define STEP_WORDS                                                                                           \
    (STEP / 4 + 4)        /* of a row in shared memory: lanes of different rows read different banks */
#define FLOATS (STEP / 4) /* columns of a step of float weights */

#define THIN_ROWS   16
#define WIDE_ROWS   64
#define WIDE_X_ROWS 64

/* A step: M rows of the matrix, N of x. */
template <uint32_t M, uint32_t N> struct tile {
    union {
        uint32_t w[M][STEP_WORDS]; /* [2 halves][8 blocks][4]: as open_block, less the offset */
        float w_floats[M][STEP_WORDS];
    };
    union {
        uint32_t x[N][STEP_WORDS]; /* [2 halves][8 blocks][4], as layout_quant_place */
        float x_floats[N][STEP_WORDS];
    };
    float x_scales[8][N], x_sums[8][N];
    float scales[M][8 * 2 + 1],
        mins[M][8 + 1]; /* [block and half], [block]: what a product is multiplied by */
};

/* The threads that fill a tile: `n` threads, of which this is number `index`; M, N: the tile's rows; GATHERS:
 * the tile is an expert's, whose rows of x may be anywhere. */
template <uint32_t M_, uint32_t N_, uint32_t THREADS_, bool GATHERS_> struct shape {
    static constexpr uint32_t M = M_, N = N_, THREADS = THREADS_;
    static constexpr bool GATHERS = GATHERS_;
    static __device__ inline uint32_t index(void)
    {
        return threadIdx.x % THREADS;
    }
    static __device__ inline void barrier(void)
    {
        if (THREADS == SIMT_LANES)
            simt_warp_barrier();
        else
            simt_barrier();
    }
};

/* The task of a tile. Missing rows are read like the last one. The last two members are for shapes that
 * gather. */
struct tile_task {
    const struct device_matrix *matrix;
    const struct device_activations *x;
    uint32_t row, x_row, end_x_row;
    uint32_t expert_row;    /* the expert's first row, in the consecutive matrices */
    const uint32_t *x_rows; /* [end_x_row]: which row of x each is */
};

static __device__ inline uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

template <class S> static __device__ inline uint32_t tile_row(const struct tile_task &task, uint32_t i)
{
    const uint32_t row = least(task.row + i, task.matrix->n_rows - 1);
    return S::GATHERS ? task.expert_row + row : row;
}

template <class S> static __device__ inline uint32_t tile_x_row(const struct tile_task &task, uint32_t i)
{
    const uint32_t row = least(task.x_row + i, task.end_x_row - 1);
    return S::GATHERS ? task.x_rows[row] : row;
}

/* ---- quantized weights ---- */

/* A loaded step, distributed over the threads. */
template <class S> struct quantized_step {
    static constexpr uint32_t BLOCKS = S::M * 8 / S::THREADS, PIECES = S::N * 16 / S::THREADS,
                              SCALES = S::N * 8 / S::THREADS;
    struct raw_block blocks[BLOCKS];
};

template <enum format F, class S>
static __device__ __forceinline__ void fetch_step(const struct tile_task &task, uint32_t step,
                                                  struct quantized_step<S> *to)
{
    typedef struct quantized_step<S> Step;
    const uint32_t index = S::index();
    SIMT_UNROLL
    for (uint32_t i = 0; i < Step::BLOCKS; i++) {
        uint32_t at = i * S::THREADS + index, row = tile_row<S>(task, at / 8);
        fetch_block<F>(*task.matrix, row, step * 8 + at % 8, &to->blocks[i]);
    }
}

/* Bytes of 0 … 127 minus the format's offset: with its top bit set, no byte borrows from its neighbour. */
template <enum format F> static __device__ inline uint32_t signed_bytes(uint32_t word)
{
    constexpr uint32_t ones = 0x01010101;
    return offset_of<F>() ? (word + ones * (128 - offset_of<F>())) ^ ones * 128 : word;
}

template <enum format F, class S>
static __device__ __forceinline__ void store_step(const struct tile_task &task,
                                                  const struct quantized_step<S> &from, uint32_t step,
                                                  struct tile<S::M, S::N> *tile)
{
    typedef struct quantized_step<S> Step;
    const uint32_t index = S::index();
    SIMT_UNROLL
    for (uint32_t i = 0; i < Step::BLOCKS; i++) {
        const uint32_t at = i * S::THREADS + index, row = at / 8, b = at % 8;
        struct open_block open;
        open_block<F>(from.blocks[i], b, &open);
        SIMT_UNROLL
        for (uint32_t half = 0; half < 2; half++) {
            struct word_four words;
            SIMT_UNROLL
            for (uint32_t c = 0; c < 4; c++)
                words.w[c] = has_minimums<F>() ? open.w[half * 4 + c] * (uint32_t)open.factors[half]
                                               : signed_bytes<F>(open.w[half * 4 + c]);
            *(struct word_four *)&tile->w[row][half * 32 + b * 4] = words;
            tile->scales[row][b * 2 + half] = open.scale * (float)open.factors[half];
        }
        if (has_minimum<F>())
            tile->mins[row][b] = -open.min_scale * (float)open.mins[0];
        if (has_minimums<F>()) {
            tile->scales[row][b * 2] = open.scale;
            tile->scales[row][b * 2 + 1] = simt_of_bits((uint32_t)(open.mins[0] | open.mins[1] << 8));
            tile->mins[row][b] = -open.min_scale;
        }
    }
    SIMT_UNROLL
    for (uint32_t i = 0; i < Step::PIECES; i++) {
        const uint32_t at = i * S::THREADS + index, row = tile_x_row<S>(task, at / 16);
        const int8_t *quants = task.x->quants + (size_t)row * task.x->stride + step * STEP;
        *(struct word_four *)&tile->x[at / 16][at % 16 * 4] = ((const struct word_four *)quants)[at % 16];
    }
    SIMT_UNROLL
    for (uint32_t i = 0; i < Step::SCALES; i++) {
        const uint32_t at = i * S::THREADS + index, row = tile_x_row<S>(task, at / 8);
        const size_t block = (size_t)row * (task.x->stride / 32) + step * 8 + at % 8;
        tile->x_scales[at % 8][at / 8] = task.x->scales[block];
        if (has_minimum<F>())
            tile->x_sums[at % 8][at / 8] = task.x->sums[block];
    }
}

/* Adds the products of a block of 32 to sums, with outputs numbered as in simt_mma_s8. */
static __device__ inline void add_scaled(const int32_t d[4], const float scales[2], const float x_scales[2],
                                         float sums[4])
{
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        sums[i] = fmaf((float)d[i] * scales[i / 2], x_scales[i % 2], sums[i]);
}

/* Multiplies 16 rows of the tile from w_row on by 8 · NB rows of x from x_row on. */
template <enum format F, uint32_t NB, class S>
static __device__ __forceinline__ void multiply_step(const struct tile<S::M, S::N> &tile, uint32_t w_row,
                                                     uint32_t x_row, float sums[NB][4])
{
    const uint32_t g = threadIdx.x % SIMT_LANES / 4, t = threadIdx.x % 4;
    const uint32_t *w[2] = {tile.w[w_row + g], tile.w[w_row + g + 8]};
    const float *scales[2] = {tile.scales[w_row + g], tile.scales[w_row + g + 8]};
    const float *mins[2] = {tile.mins[w_row + g], tile.mins[w_row + g + 8]};
    SIMT_UNROLL_BY(1)
    for (uint32_t b = 0; b < 8; b++) {
        const uint32_t at = b * 4 + t;
        const uint32_t a[4] = {w[0][at], w[1][at], w[0][32 + at], w[1][32 + at]};
        const float first[2] = {scales[0][b * 2], scales[1][b * 2]};
        SIMT_UNROLL
        for (uint32_t n = 0; n < NB; n++) {
            const uint32_t *x = tile.x[x_row + n * 8 + g], column = x_row + n * 8 + 2 * t;
            const uint32_t halves[2] = {x[b * 4 + t], x[32 + b * 4 + t]};
            const float x_scales[2] = {tile.x_scales[b][column], tile.x_scales[b][column + 1]};
            int32_t d[4] = {0, 0, 0, 0};
            if (block_kind<F>::scales == FACTORS) {
                const float second[2] = {scales[0][b * 2 + 1], scales[1][b * 2 + 1]};
                const uint32_t low[4] = {a[0], a[1], 0, 0}, high[4] = {0, 0, a[2], a[3]};
                int32_t e[4] = {0, 0, 0, 0};
                simt_mma_s8(d, low, halves);
                simt_mma_s8(e, high, halves);
                add_scaled(d, first, x_scales, sums[n]);
                add_scaled(e, second, x_scales, sums[n]);
                continue;
            }
            simt_mma_s8(d, a, halves);
            add_scaled(d, first, x_scales, sums[n]);
            if (has_minimum<F>()) {
                SIMT_UNROLL
                for (uint32_t i = 0; i < 4; i++)
                    sums[n][i] = fmaf(mins[i / 2][b], tile.x_sums[b][column + i % 2], sums[n][i]);
            }
            if (has_minimums<F>()) { /* minimums are multiplied by the halves' activations, too */
                constexpr uint32_t ones = 0x01010101;
                const uint32_t m[2] = {simt_bits(scales[0][b * 2 + 1]), simt_bits(scales[1][b * 2 + 1])};
                const uint32_t bytes[4] = {(m[0] & 255) * ones, (m[1] & 255) * ones, (m[0] >> 8) * ones,
                                           (m[1] >> 8) * ones};
                const float min_scales[2] = {mins[0][b], mins[1][b]};
                int32_t e[4] = {0, 0, 0, 0};
                simt_mma_s8(e, bytes, halves);
                add_scaled(e, min_scales, x_scales, sums[n]);
            }
        }
    }
}

/* ---- float weights ---- */

template <enum format F, class S> struct float_step {
    static constexpr uint32_t EACH = F == FORMAT_F32 ? 4 : 8; /* columns in 16 bytes */
    static constexpr uint32_t WORDS = S::M * (FLOATS / EACH) / S::THREADS,
                              PIECES = S::N * (FLOATS / 4) / S::THREADS;
    struct simt_16 words[WORDS];
    struct float_four pieces[PIECES];
};

template <enum format F, class S>
static __device__ __forceinline__ void fetch_step(const struct tile_task &task, uint32_t step,
                                                  struct float_step<F, S> *to)
{
    typedef struct float_step<F, S> Step;
    const uint32_t index = S::index(), per_row = FLOATS / Step::EACH;
    SIMT_UNROLL
    for (uint32_t i = 0; i < Step::WORDS; i++) {
        uint32_t at = i * S::THREADS + index, row = tile_row<S>(task, at / per_row);
        size_t column = (size_t)row * task.matrix->padded_columns + step * FLOATS + at % per_row * Step::EACH;
        to->words[i] = simt_load16((const uint8_t *)task.matrix->planes[0] + column * (16 / Step::EACH));
    }
    SIMT_UNROLL
    for (uint32_t i = 0; i < Step::PIECES; i++) {
        uint32_t at = i * S::THREADS + index, row = tile_x_row<S>(task, at / 16);
        to->pieces[i] =
            read_four(task.x->values + (size_t)row * task.x->stride + step * FLOATS + at % 16 * 4);
    }
}

template <enum format F, class S>
static __device__ __forceinline__ void store_step(const struct tile_task &task,
                                                  const struct float_step<F, S> &from, uint32_t step,
                                                  struct tile<S::M, S::N> *tile)
{
    typedef struct float_step<F, S> Step;
    const uint32_t index = S::index(), per_row = FLOATS / Step::EACH;
    SIMT_UNROLL
    for (uint32_t i = 0; i < Step::WORDS; i++) {
        const uint32_t at = i * S::THREADS + index;
        SIMT_UNROLL
        for (uint32_t j = 0; j < Step::EACH; j += 4) {
            struct float_four four;
            SIMT_UNROLL
            for (uint32_t k = 0; k < 4; k++)
                four.v[k] = float_weight<F>(from.words[i], j + k);
            *(struct float_four *)&tile->w_floats[at / per_row][at % per_row * Step::EACH + j] = four;
        }
    }
    SIMT_UNROLL
    for (uint32_t i = 0; i < Step::PIECES; i++) {
        const uint32_t at = i * S::THREADS + index;
        *(struct float_four *)&tile->x_floats[at / 16][at % 16 * 4] = from.pieces[i];
    }
}

template <uint32_t NB, class S>
static __device__ __forceinline__ void multiply_floats(const struct tile<S::M, S::N> &tile, uint32_t w_row,
                                                       uint32_t x_row, float sums[NB][4])
{
    const uint32_t g = threadIdx.x % SIMT_LANES / 4, t = threadIdx.x % 4;
    SIMT_UNROLL_BY(1)
    for (uint32_t k = 0; k < FLOATS; k += 4) {
        struct float_four w[2];
        SIMT_UNROLL
        for (uint32_t i = 0; i < 2; i++)
            w[i] = *(const struct float_four *)&tile.w_floats[w_row + g + 8 * i][k];
        SIMT_UNROLL
        for (uint32_t n = 0; n < NB; n++) {
            SIMT_UNROLL
            for (uint32_t j = 0; j < 2; j++) {
                const struct float_four x =
                    *(const struct float_four *)&tile.x_floats[x_row + n * 8 + 2 * t + j][k];
                SIMT_UNROLL
                for (uint32_t i = 0; i < 2; i++) {
                    SIMT_UNROLL
                    for (uint32_t l = 0; l < 4; l++)
                        sums[n][2 * i + j] = fmaf(w[i].v[l], x.v[l], sums[n][2 * i + j]);
                }
            }
        }
    }
}

/* ---- a part ---- */

template <enum format F, class S, bool IS_FLOAT = is_float<F>()> struct step_of {
    typedef struct quantized_step<S> type;
    static constexpr uint32_t PER_256 = 1;
};
template <enum format F, class S> struct step_of<F, S, true> {
    typedef struct float_step<F, S> type;
    static constexpr uint32_t PER_256 = 4;
};

/* Adds the columns of part `part` to sums. All threads of the shape take part. */
template <enum format F, uint32_t NB, class S>
static __device__ __forceinline__ void add_part_of(const struct tile_task &task, uint32_t part,
                                                   struct tile<S::M, S::N> *tile, uint32_t w_row,
                                                   uint32_t x_row, float sums[NB][4])
{
    const uint32_t n = task.matrix->padded_columns / STEP;
    const uint32_t first = part * n / PARTS * step_of<F, S>::PER_256;
    const uint32_t end = (part + 1) * n / PARTS * step_of<F, S>::PER_256;
    typename step_of<F, S>::type loaded;
    if (first < end)
        fetch_step<F, S>(task, first, &loaded);
    SIMT_UNROLL_BY(1)
    for (uint32_t step = first; step < end; step++) {
        S::barrier(); /* the previous step has been multiplied */
        store_step<F, S>(task, loaded, step, tile);
        S::barrier();
        if (step + 1 < end)
            fetch_step<F, S>(task, step + 1, &loaded);
        if constexpr (is_float<F>())
            multiply_floats<NB, S>(*tile, w_row, x_row, sums);
        else
            multiply_step<F, NB, S>(*tile, w_row, x_row, sums);
    }
}

/* Parts first … end − 1, one after the other; take(part, sums) gets the sums of each. */
template <enum format F, uint32_t NB, class S, class Take>
static __device__ __forceinline__ void sum_parts_of(const struct tile_task &task, uint32_t first,
                                                    uint32_t end, struct tile<S::M, S::N> *tile,
                                                    uint32_t w_row, uint32_t x_row, const Take &take)
{
    SIMT_UNROLL_BY(1)
    for (uint32_t part = first; part < end; part++) {
        float sums[NB][4] = {};
        add_part_of<F, NB, S>(task, part, tile, w_row, x_row, sums);
        take(part, sums);
    }
}

template <uint32_t NB, class S, class Take>
static __device__ __forceinline__ void sum_parts(const struct tile_task &task, uint32_t first, uint32_t end,
                                                 struct tile<S::M, S::N> *tile, uint32_t w_row,
                                                 uint32_t x_row, const Take &take)
{
#define CASE(name, id, number, elements, bytes)                                                              \
    case FORMAT_##name:                                                                                      \
        return sum_parts_of<FORMAT_##name, NB, S>(task, first, end, tile, w_row, x_row, take);
    switch (task.matrix->format) {
        FORMATS(CASE)
    case FORMAT_LIMIT: /* kernels_multiply refuses it */
        return;
    }
#undef CASE
}

template <uint32_t NB> static __device__ inline void add_sums(float totals[NB][4], const float sums[NB][4])
{
    SIMT_UNROLL
    for (uint32_t n = 0; n < NB; n++) {
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            totals[n][i] += sums[n][i];
    }
}

/* ---- thin: a warp to each part ---- */

template <uint32_t NB> union thin_shared {
    struct tile<THIN_ROWS, 8 * NB> tiles[PARTS];
    /* Outputs of a matrix product have no bank conflicts, nor do rows four apart. */
    float sums[PARTS][8 * NB][THIN_ROWS + 4];
};

/* Computes the thin tile of a task: calls store(row, x_row, sum) for every row of the tile, existing or not,
 * counted from its first. By a block of PARTS warps. */
template <uint32_t NB, bool GATHERS, class Store>
static __device__ __forceinline__ void thin_tile(const struct tile_task &task, const Store &store)
{
    typedef struct shape<THIN_ROWS, 8 * NB, SIMT_LANES, GATHERS> Shape;
    union thin_shared<NB> *shared = simt_shared<union thin_shared<NB>>();
    const uint32_t part = threadIdx.x / SIMT_LANES, g = threadIdx.x % SIMT_LANES / 4, t = threadIdx.x % 4;
    float sums[NB][4] = {};
    sum_parts<NB, Shape>(task, part, part + 1, &shared->tiles[part], 0, 0,
                         [&](uint32_t, const float of_part[NB][4]) { add_sums<NB>(sums, of_part); });
    simt_barrier(); /* sums reuse the memory of the tiles */
    SIMT_UNROLL
    for (uint32_t n = 0; n < NB; n++) {
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            shared->sums[part][n * 8 + 2 * t + i % 2][g + i / 2 * 8] = sums[n][i];
    }
    simt_barrier();
    for (uint32_t at = threadIdx.x; at < THIN_ROWS * 8 * NB; at += PARTS * SIMT_LANES) {
        const uint32_t row = at % THIN_ROWS, x_row = at / 128 * 8 + at / 16 % 2 * 4 + at / 32 % 4;
        float total = 0;
        SIMT_UNROLL
        for (uint32_t p = 0; p < PARTS; p++)
            total += shared->sums[p][x_row][row];
        store(row, x_row, total);
    }
}

/* ---- wide: part after part ---- */

#define WIDE_NB      4 /* times eight rows of x per warp */
#define WIDE_WARPS   (WIDE_ROWS / 16 * (WIDE_X_ROWS / 8 / WIDE_NB))
#define WIDE_THREADS (WIDE_WARPS * SIMT_LANES)

typedef struct tile<WIDE_ROWS, WIDE_X_ROWS> wide_shared;

/* The part of the tile of a thread's warp: 16 rows of the matrix by 8 · WIDE_NB of x. */
struct wide_place {
    uint32_t w_row, x_row;
};

static __device__ inline struct wide_place wide_place(void)
{
    const uint32_t warp = threadIdx.x / SIMT_LANES;
    return {warp % (WIDE_ROWS / 16) * 16, warp / (WIDE_ROWS / 16) * 8 * WIDE_NB};
}

/* Computes parts first … end − 1 of the wide tile of a task, as sum_parts. By a block of WIDE_WARPS warps. */
template <bool GATHERS, class Take>
static __device__ __forceinline__ void wide_parts(const struct tile_task &task,
                                                  const struct wide_place &place, uint32_t first,
                                                  uint32_t end, wide_shared *shared, const Take &take)
{
    typedef struct shape<WIDE_ROWS, WIDE_X_ROWS, WIDE_THREADS, GATHERS> Shape;
    sum_parts<WIDE_NB, Shape>(task, first, end, shared, place.w_row, place.x_row, take);
}

/* Calls store(row, x_row, sum) for the outputs of lane 4 g + t, which a caller with spare registers computes
 * in advance. */
template <class Store>
static __device__ __forceinline__ void
wide_store(const struct wide_place &place, const float totals[WIDE_NB][4], const Store &store,
           uint32_t g = threadIdx.x % SIMT_LANES / 4, uint32_t t = threadIdx.x % 4)
{
    SIMT_UNROLL
    for (uint32_t n = 0; n < WIDE_NB; n++) {
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            store(place.w_row + g + i / 2 * 8, place.x_row + n * 8 + 2 * t + i % 2, totals[n][i]);
    }
}

/* As thin_tile, for the wide tile. */
template <bool GATHERS, class Store>
static __device__ __forceinline__ void wide_tile(const struct tile_task &task, const Store &store)
{
    const struct wide_place place = wide_place();
    const uint32_t g = threadIdx.x % SIMT_LANES / 4, t = threadIdx.x % 4;
    float totals[WIDE_NB][4] = {};
    wide_parts<GATHERS>(task, place, 0, PARTS, simt_shared<wide_shared>(),
                        [&](uint32_t, const float sums[WIDE_NB][4]) { add_sums<WIDE_NB>(totals, sums); });
    wide_store(place, totals, store, g, t);
}

#endif
