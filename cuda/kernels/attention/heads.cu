/* SPDX-License-Identifier: MIT */
/* Heads between the q k v products and attention: norm, rotary turn, scale, and into the KV pool.
 *
 * A warp takes one head of q, or one of k together with its v. The head lies in shared memory while it is
 * normed and turned, so that any size and either kind of pairs will do; each pair is one lane's. Angles are
 * made in double and brought into one turn there: a float's 24 bits would be gone after a few thousand
 * turns.
 *
 * Where a norm is over all heads of a row, a block of threads takes them all: it reads the row once more than
 * its warps do, and nothing else is launched for it. */

#include "cuda/kernels/attention/kv_f16.h"
#include "cuda/kernels/attention/kv_q4.h"
#include "cuda/kernels/attention/kv_q8.h"
#include "cuda/kernels/measure_row.h"

#define WARPS   4
#define THREADS (WARPS * SIMT_LANES)
#define TURN    6.283185307179586 /* 2π */

#define ROW_WARPS   16 /* of a block that takes a row */
#define ROW_THREADS (ROW_WARPS * SIMT_LANES)

/* Blocks that take a row, per multiprocessor: as many as it has threads for. Left to itself, nvcc spills on
 * Blackwell. */
static constexpr uint32_t rows_at_once(void)
{
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ == 1200)
    return 1536 / ROW_THREADS;
#else
    return 2048 / ROW_THREADS;
#endif
}

/* Of x / √(mean x² + ε), or of the same of x − mean x. All lanes. */
__device__ static inline struct row_norm measure_head(const struct norm *norm, const float *x, uint32_t dim)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES;
    float mean = 0;
    if (is_centered(norm->kind)) {
        for (uint32_t i = lane; i < dim; i += SIMT_LANES)
            mean += x[i];
        mean = simt_warp_sum(mean) / (float)dim;
    }
    float squares = 0;
    for (uint32_t i = lane; i < dim; i += SIMT_LANES)
        squares += (x[i] - mean) * (x[i] - mean);
    return row_norm{mean, 1 / sqrtf(simt_warp_sum(squares) / (float)dim + norm->epsilon)};
}

/* A head by what was measured, times the weights from `first` on, plus the biases. In place; all lanes. */
__device__ static inline void norm_head(const struct row_norm &norm, const struct device_vector *vector,
                                        uint32_t first, float *x, uint32_t dim)
{
    for (uint32_t i = threadIdx.x % SIMT_LANES; i < dim; i += SIMT_LANES)
        x[i] = (x[i] - norm.mean) * norm.factor * vector->weight[first + i] +
               (vector->bias ? vector->bias[first + i] : 0);
}

__device__ static inline void turn_head(const struct heads_step *step, float *x, uint32_t position)
{
    const uint32_t n_pairs = step->rotary.dims / 2;
    uint32_t stride = 0, apart = 0; /* between pairs, and between the two of one */
    switch (step->rotary.kind) {
    case ROTARY_NONE:
        return;
    case ROTARY_PAIRS:
        stride = 2;
        apart = 1;
        break;
    case ROTARY_HALVES:
        stride = 1;
        apart = n_pairs;
        break;
    }
    for (uint32_t i = threadIdx.x % SIMT_LANES; i < n_pairs; i += SIMT_LANES) {
        double angle = position * step->frequencies[i];
        float turned = (float)(angle - rint(angle / TURN) * TURN);
        float c = cosf(turned) * step->rotary.magnitude, s = sinf(turned) * step->rotary.magnitude;
        float *a = x + stride * i, *b = a + apart;
        float first = *a, second = *b;
        *a = first * c - second * s;
        *b = first * s + second * c;
    }
}

/* What queries at a position are multiplied by. */
__device__ static inline float query_scale(const struct heads_step *step, uint32_t position)
{
    if (step->growth.factor == 0)
        return step->attention_scale;
    return step->attention_scale *
           fmaf(step->growth.factor, logf((float)(1 + position / step->growth.span)), 1.0f);
}

/* The block's row of all queries, or of all keys. */
__device__ static inline float *heads_of(const struct heads_step *step, bool query)
{
    return query ? step->q + (size_t)blockIdx.x * step->q_stride
                 : step->k + (size_t)blockIdx.x * step->kv_stride;
}

/* A head of values by its own measure, in place; all lanes. */
__device__ static inline void norm_values(const struct heads_step *step, float *v)
{
    const struct row_norm norm = measure_head(&step->norm, v, step->kv.dim);
    for (uint32_t i = threadIdx.x % SIMT_LANES; i < step->kv.dim; i += SIMT_LANES)
        v[i] = (v[i] - norm.mean) * norm.factor;
    simt_warp_barrier();
}

/* One head by one warp, in the warp's own `x`, [dim]; of_row: what the norm of all heads measured, NULL: the
 * head is measured by itself, if it is normed at all. */
template <class KV>
__device__ static inline void finish_head(const struct heads_step *step, const struct slots *slots,
                                          const struct step_row &row, bool query, uint32_t nth,
                                          const struct row_norm *of_row, float *x)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES, dim = step->kv.dim;
    const struct device_vector *norm = query ? &step->q_norm : &step->k_norm;
    float *from = heads_of(step, query) + (size_t)nth * dim;
    for (uint32_t i = lane; i < dim; i += SIMT_LANES)
        x[i] = from[i];
    if (of_row) /* each lane has its own elements so far */
        norm_head(*of_row, norm, nth * dim, x, dim);
    else if (norm->weight)
        norm_head(measure_head(&step->norm, x, dim), norm, 0, x, dim);
    simt_warp_barrier();
    turn_head(step, x, row.position);
    simt_warp_barrier();
    if (query) {
        const float scale = query_scale(step, row.position);
        for (uint32_t i = lane; i < dim; i += SIMT_LANES)
            from[i] = x[i] * scale;
    } else {
        uint32_t block =
            slots->tables[(size_t)row.slot * slots->table_size + row.position / BACKEND_BLOCK_TOKENS];
        float *v = step->v + (size_t)blockIdx.x * step->kv_stride + (size_t)nth * dim;
        if (step->norms_values)
            norm_values(step, v);
        KV::store(&step->kv, kv_keys(&step->kv, block, step->layer, nth),
                  kv_values(&step->kv, block, step->layer, nth), row.position % BACKEND_BLOCK_TOKENS, x, v);
    }
}

/* grid (rows, heads of q and k / WARPS). Reads q, k and v once, writes q, and k and v into the pool. */
template <class KV>
static __global__ void heads(struct heads_step step, struct slots slots, const struct step_row *rows)
{
    simt_start();
    const struct step_row row = rows[blockIdx.x];
    if (row.position == ROW_DEAD)
        return;
    const uint32_t head = blockIdx.y * WARPS + threadIdx.x / SIMT_LANES;
    if (head < step.n_heads + (step.only_queries ? 0 : step.kv.n_heads)) {
        const bool query = head < step.n_heads;
        finish_head<KV>(&step, &slots, row, query, query ? head : head - step.n_heads, NULL,
                        simt_shared<float>() + threadIdx.x / SIMT_LANES * step.kv.dim);
    }
}

struct row_shared {
    struct sums_shared sums;
    /* then a head of each warp, [ROW_WARPS][dim] */
};

/* grid (rows, 2, or 1 without keys): all heads of q, or of k. The row is measured as a whole before any head
 * is written. */
template <class KV>
static __global__ void __launch_bounds__(ROW_THREADS, rows_at_once())
    heads_of_row(struct heads_step step, struct slots slots, const struct step_row *rows)
{
    simt_start();
    const struct step_row row = rows[blockIdx.x];
    if (row.position == ROW_DEAD)
        return;
    const bool query = blockIdx.y == 0;
    const uint32_t n_heads = query ? step.n_heads : step.kv.n_heads, dim = step.kv.dim;
    struct row_shared *shared = simt_shared<struct row_shared>();
    struct block_sums sums = {&shared->sums, 0};
    const struct row_norm norm = measure_row(heads_of(&step, query), n_heads * dim, step.norm, &sums);
    for (uint32_t head = threadIdx.x / SIMT_LANES; head < n_heads; head += ROW_WARPS) {
        finish_head<KV>(&step, &slots, row, query, head, &norm,
                        (float *)(shared + 1) + threadIdx.x / SIMT_LANES * dim);
        simt_warp_barrier(); /* the next head takes the place of this one */
    }
}

template <class KV>
static int launch_for(struct device_stream *queue, const struct heads_step *step, const struct slots *slots,
                      const struct step_row *rows, uint32_t n_rows)
{
    const uint32_t n_heads = step->n_heads + (step->only_queries ? 0 : step->kv.n_heads);
    if (step->norms_row)
        return simt_launch(queue, "heads_of_row", heads_of_row<KV>, {n_rows, step->only_queries ? 1u : 2u, 1},
                           {ROW_THREADS, 1, 1},
                           sizeof(struct row_shared) + ROW_WARPS * step->kv.dim * sizeof(float), *step,
                           *slots, rows);
    return simt_launch(queue, "heads", heads<KV>, {n_rows, (n_heads + WARPS - 1) / WARPS, 1}, {THREADS, 1, 1},
                       WARPS * step->kv.dim * sizeof(float), *step, *slots, rows);
}

int kernels_heads(struct device_stream *queue, const struct heads_step *step, const struct slots *slots,
                  const struct step_row *rows, uint32_t n_rows)
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
