/* SPDX-License-Identifier: MIT */
/* Rows of a gated delta net on both sides of the recurrence (delta_rule.cu): the convolution, unit vectors
 * and gates before it, the norm of each head and its gate behind it.
 *
 * Before it a warp takes one head of a row. The rows before that one are those of its set in this step, or
 * the tail of the slot's state, which nobody writes before the launch has ended. Every product, and every
 * sum, is a row's own, whatever else the launch has. */

#include "cuda/kernels/activations.h"

#include <errno.h>

/* ---- before ---- */

#define WARPS   4
#define THREADS (WARPS * SIMT_LANES)

/* What a launch computes once. */
struct prepare_shape {
    uint32_t channels; /* of a row of the tail */
    float query_scale; /* 1 ÷ √key_dim */
};

/* A head of a row on its way through the convolution. */
struct convolved {
    const float *from; /* the row's, as the products made it */
    float *to;
    uint32_t stride, dim; /* between rows of `from` */
    uint32_t channel;     /* its first, in the tail and among the taps */
    uint32_t nth;         /* row of its set */
    float scale;          /* it becomes a vector of this length; 0: it does not */
};

/* Channel d of the head: the taps over the rows up to this one, the oldest first, and SiLU. */
__device__ static inline float convolve(const struct delta_step *step, const struct convolved *head,
                                        const float *tail, uint32_t channels, uint32_t d)
{
    const uint32_t n_taps = step->net.n_taps, n_tail = n_taps - 1;
    const float *taps = step->taps + (size_t)(head->channel + d) * n_taps;
    float sum = 0;
    SIMT_UNROLL_BY(1)
    for (uint32_t t = 0; t < n_taps; t++) {
        const uint32_t at = head->nth + t; /* counts from the oldest of the tail */
        const float u = at < n_tail ? tail[(size_t)at * channels + head->channel + d]
                                    : *(head->from + d - (size_t)(n_tail - t) * head->stride);
        sum = fmaf(u, taps[t], sum);
    }
    return activation_silu(sum);
}

/* All lanes. */
__device__ static inline void convolve_head(const struct delta_step *step, const struct convolved *head,
                                            const float *tail, uint32_t channels)
{
    float squares = 0;
    for (uint32_t d = threadIdx.x % SIMT_LANES; d < head->dim; d += SIMT_LANES) {
        const float u = convolve(step, head, tail, channels, d);
        squares = fmaf(u, u, squares);
        head->to[d] = u;
    }
    if (head->scale == 0)
        return;
    const float factor = head->scale / sqrtf(simt_warp_sum(squares) + DELTA_NET_EPSILON);
    for (uint32_t d = threadIdx.x % SIMT_LANES; d < head->dim; d += SIMT_LANES) /* each its own again */
        head->to[d] *= factor;
}

/* How much the states of a head decay and the row counts. In double: decays near 1 are raised to the power of
 * the length. */
__device__ static inline void make_gates(const struct delta_step *step, uint32_t row, uint32_t head)
{
    float *beta = step->betas + (size_t)row * step->gate_stride + head;
    float *decay = step->decays + (size_t)row * step->gate_stride + head;
    const double x = (double)*decay + (double)step->step_bias[head];
    const double softplus = x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    *decay = (float)exp((double)step->rates[head] * softplus);
    *beta = (float)(1 / (1 + exp(-(double)*beta)));
}

/* grid (rows, heads of queries, keys and values / WARPS). Reads q, k, v and up to n_taps − 1 rows before, and
 * the taps; writes queries, keys and values. */
static __global__ void delta_prepare(struct delta_step step, struct step_memory memory,
                                     struct prepare_shape shape)
{
    simt_start();
    const uint32_t row = blockIdx.x, n_key_heads = step.net.n_key_heads, key_dim = step.net.key_dim;
    const struct step_row at = memory.rows[row];
    if (at.position == ROW_DEAD)
        return;
    const uint32_t head = blockIdx.y * WARPS + threadIdx.x / SIMT_LANES;
    const bool query = head < n_key_heads, key = !query && head < 2 * n_key_heads;
    const uint32_t nth_head = query ? head : key ? head - n_key_heads : head - 2 * n_key_heads;
    if (!query && !key && nth_head >= step.net.n_value_heads)
        return; /* the whole warp, and nothing of the block's is to come */
    const uint32_t dim = query || key ? key_dim : step.net.value_dim, first = nth_head * dim;
    const uint32_t stride = query ? step.q_stride : step.kv_stride;
    const uint32_t to_stride = query || key ? step.key_stride : step.value_stride;
    const struct convolved convolved = {.from = (query ? step.q
                                                 : key ? step.k
                                                       : step.v) +
                                                (size_t)row * stride + first,
                                        .to = (query ? step.queries
                                               : key ? step.keys
                                                     : step.values) +
                                              (size_t)row * to_stride + first,
                                        .stride = stride,
                                        .dim = dim,
                                        .channel = (query ? 0
                                                    : key ? 1
                                                          : 2) *
                                                       n_key_heads * key_dim +
                                                   first,
                                        .nth = row - memory.sets[at.set].first_row,
                                        .scale = query ? shape.query_scale
                                                 : key ? 1.0f
                                                       : 0.0f};
    const float *tail = step.states.slots + at.slot * step.states.n + step.offset;
    convolve_head(&step, &convolved, tail, shape.channels);
    if (!query && !key && threadIdx.x % SIMT_LANES == 0)
        make_gates(&step, row, nth_head);
}

int kernels_delta_prepare(struct device_stream *queue, const struct delta_step *step,
                          const struct step_memory *memory, uint32_t n_rows)
{
    const uint32_t n_heads = 2 * step->net.n_key_heads + step->net.n_value_heads;
    const struct prepare_shape shape = {kernels_state_padded(delta_net_channels(&step->net)),
                                        1.0f / sqrtf((float)step->net.key_dim)};
    return simt_launch(queue, "delta_prepare", delta_prepare, {n_rows, (n_heads + WARPS - 1) / WARPS, 1},
                       {THREADS, 1, 1}, 0, *step, *memory, shape);
}

/* ---- behind ---- */

#define GATE_WARPS   8
#define GATE_THREADS (GATE_WARPS * SIMT_LANES)
#define GATE_COLUMNS (GATE_THREADS * 4)

/* 1 / √(mean x² + ε) of a head; all lanes. */
__device__ static inline float measure_head(const float *x, uint32_t dim, float epsilon)
{
    float squares = 0;
    for (uint32_t d = threadIdx.x % SIMT_LANES; d < dim; d += SIMT_LANES)
        squares = fmaf(x[d], x[d], squares);
    return 1.0f / sqrtf(simt_warp_sum(squares) / (float)dim + epsilon);
}

/* grid (columns / GATE_COLUMNS, rows). A block measures the heads that its columns are of, whole even where
 * they go on in the next block; then four columns to a thread. */
static __global__ void delta_gate(struct delta_gate_step step)
{
    simt_start();
    float *factors = simt_shared<float>();
    const uint32_t from = blockIdx.x * GATE_COLUMNS, n = step.n_heads * step.dim, row = blockIdx.y;
    const uint32_t end = from + GATE_COLUMNS < n ? from + GATE_COLUMNS : n, first = from / step.dim;
    const float *heads = step.heads + (size_t)row * step.stride;
    for (uint32_t head = first + threadIdx.x / SIMT_LANES; head * step.dim < end; head += GATE_WARPS) {
        const float factor = measure_head(heads + (size_t)head * step.dim, step.dim, step.epsilon);
        if (threadIdx.x % SIMT_LANES == 0)
            factors[head - first] = factor;
    }
    simt_barrier();
    const uint32_t column = from + threadIdx.x * 4;
    if (column >= step.out.stride) /* as in activate_rows */
        return;
    struct float_four x = read_columns(heads, column, n);
    const struct float_four gate = read_columns(step.gate + (size_t)row * step.gate_stride, column, n);
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        if (column + i < n) {
            const uint32_t head = (column + i) / step.dim, d = (column + i) % step.dim;
            x.v[i] = x.v[i] * factors[head - first] * step.weight[d] * activation_silu(gate.v[i]);
        }
    write_activations(x, &step.out, row, column);
}

int kernels_delta_gate(struct device_stream *queue, const struct delta_gate_step *step, uint32_t n_rows)
{
    if (step->out.stride % LAYOUT_COLUMNS != 0 || step->stride % 4 != 0 || step->gate_stride % 4 != 0)
        return -EINVAL;
    return simt_launch(queue, "delta_gate", delta_gate,
                       {(step->out.stride + GATE_COLUMNS - 1) / GATE_COLUMNS, n_rows, 1},
                       {GATE_THREADS, 1, 1}, (GATE_COLUMNS / step->dim + 2) * sizeof(float), *step);
}
