/* SPDX-License-Identifier: MIT */
/* What happens to rows between products, element by element: rounding, activations, gates, the logits' scale
 * and cap. Four columns to a thread; blockIdx.y is the row. */

#include "cuda/kernels/activations.h"

#include <errno.h>

#define THREADS 128

static struct simt_dim grid_of(uint32_t n_columns, uint32_t n_rows)
{
    return simt_dim{(n_columns / 4 + THREADS - 1) / THREADS, n_rows, 1};
}

/* The first of the thread's columns; a warp is inside of a stride or beyond, as a whole. */
static __device__ inline uint32_t first_column(void)
{
    return (blockIdx.x * THREADS + threadIdx.x) * 4;
}

/* ---- rounding ---- */

static __global__ void quantize_rows(struct device_activations x, uint32_t n_columns)
{
    simt_start();
    const uint32_t column = first_column(), row = blockIdx.y;
    if (column < x.stride)
        quantize_four(read_columns(x.values + (size_t)row * x.stride, column, n_columns), &x, row, column);
}

int kernels_quantize(struct device_stream *queue, const struct device_activations *x, uint32_t n_columns,
                     uint32_t n_rows)
{
    if (x->stride % LAYOUT_COLUMNS != 0)
        return -EINVAL;
    return simt_launch(queue, "quantize", quantize_rows, grid_of(x->stride, n_rows), {THREADS, 1, 1}, 0, *x,
                       n_columns);
}

/* ---- activations ---- */

static __global__ void activate_rows(struct activate_step step)
{
    simt_start();
    const uint32_t column = first_column(), row = blockIdx.y;
    if (column >= step.out.stride)
        return;
    struct float_four x = read_columns(step.up + (size_t)row * step.up_stride, column, step.n_columns),
                      factor = {{1, 1, 1, 1}};
    if (step.gate) {
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            factor.v[i] = gated_factor(step.activation, x.v[i]);
        x = read_columns(step.gate + (size_t)row * step.stride, column, step.n_columns);
    }
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        x.v[i] = activated(step.activation, x.v[i]) * factor.v[i];
    if (column + 4 > step.n_columns) { /* the activation of 0 is 0, the factor need not be there */
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            x.v[i] = column + i < step.n_columns ? x.v[i] : 0;
    }
    write_activations(x, &step.out, row, column);
}

int kernels_activate(struct device_stream *queue, const struct activate_step *activate, uint32_t n_rows)
{
    if (activate->out.stride % LAYOUT_COLUMNS != 0 || activate->stride % 4 != 0 ||
        activate->up_stride % 4 != 0)
        return -EINVAL;
    return simt_launch(queue, "activate", activate_rows, grid_of(activate->out.stride, n_rows),
                       {THREADS, 1, 1}, 0, *activate);
}

/* ---- gates ---- */

static __global__ void gate_rows(struct gate_step step)
{
    simt_start();
    const uint32_t column = first_column(), row = blockIdx.y;
    if (column >= step.out.stride)
        return;
    const struct float_four gate =
        read_columns(step.gate + (size_t)row * step.stride, column, step.n_columns);
    struct float_four x =
        read_columns(step.out.values + (size_t)row * step.out.stride, column, step.n_columns);
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        x.v[i] = x.v[i] / (1.0f + expf(-gate.v[i]));
    write_activations(x, &step.out, row, column);
}

int kernels_gate(struct device_stream *queue, const struct gate_step *gate, uint32_t n_rows)
{
    if (gate->out.stride % LAYOUT_COLUMNS != 0 || gate->stride % 4 != 0)
        return -EINVAL;
    return simt_launch(queue, "gate", gate_rows, grid_of(gate->out.stride, n_rows), {THREADS, 1, 1}, 0,
                       *gate);
}

/* ---- logits ---- */

/* cap · tanh(x / cap), by tanh y = 1 − 2 / (e^2y + 1). */
static __global__ void finish_logits(float *logits, uint32_t stride, uint32_t n_vocab, float scale, float cap)
{
    simt_start();
    float *row = logits + (size_t)blockIdx.y * stride;
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t id = blockIdx.x * THREADS * 4 + i * THREADS + threadIdx.x;
        if (id >= n_vocab)
            continue;
        float x = row[id] * scale;
        if (cap > 0)
            x = cap * (1.0f - 2.0f / (expf(x * (2 / cap)) + 1.0f));
        row[id] = x;
    }
}

int kernels_logits(struct device_stream *queue, float *logits, uint32_t stride, uint32_t n_vocab, float scale,
                   float cap, uint32_t n_rows)
{
    if (scale == 1 && cap <= 0)
        return 0;
    return simt_launch(queue, "logits", finish_logits, grid_of(n_vocab + 3, n_rows), {THREADS, 1, 1}, 0,
                       logits, stride, n_vocab, scale, cap);
}
