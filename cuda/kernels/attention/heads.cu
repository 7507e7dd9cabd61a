/* SPDX-License-Identifier: MIT */
/* Heads between the q k v products and attention: norm, rotary turn, scale, and into the KV pool.
 *
 * A warp takes one head of q, or one of k together with its v. The head lies in shared memory while it is
 * normed and turned, so that any size and either kind of pairs will do; each pair is one lane's. Angles are
 * made in double and brought into one turn there: a float's 24 bits would be gone after a few thousand
 * turns. */

#include "cuda/kernels/attention/kv_f16.h"
#include "cuda/kernels/attention/kv_q8.h"
#include "cuda/kernels/trait_kinds.h"

#define WARPS   4
#define THREADS (WARPS * SIMT_LANES)
#define TURN    6.283185307179586 /* 2π */

/* x / √(mean x² + ε) · weight, or the same of x − mean x plus bias. In place; all lanes. */
__device__ static inline void norm_head(const struct norm *norm, const struct device_vector *vector, float *x,
                                        uint32_t dim)
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
    float scale = 1 / sqrtf(simt_warp_sum(squares) / (float)dim + norm->epsilon);
    for (uint32_t i = lane; i < dim; i += SIMT_LANES)
        x[i] = (x[i] - mean) * scale * vector->weight[i] + (vector->bias ? vector->bias[i] : 0);
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

/* grid (rows, heads of q and k / WARPS). Reads q, k and v once, writes q, and k and v into the pool. */
template <class KV>
static __global__ void heads(struct heads_step step, struct slots slots, const struct step_row *rows)
{
    simt_start();
    const struct step_row row = rows[blockIdx.x];
    if (row.position == ROW_DEAD)
        return;
    const uint32_t lane = threadIdx.x % SIMT_LANES, dim = step.kv.dim;
    const uint32_t head = blockIdx.y * WARPS + threadIdx.x / SIMT_LANES;
    if (head < step.n_heads + step.kv.n_heads) {
        const bool query = head < step.n_heads;
        const uint32_t nth = query ? head : head - step.n_heads;
        const struct device_vector *norm = query ? &step.q_norm : &step.k_norm;
        float *x = simt_shared<float>() + threadIdx.x / SIMT_LANES * dim;
        float *from = (query ? step.q + (size_t)blockIdx.x * step.q_stride
                             : step.k + (size_t)blockIdx.x * step.kv_stride) +
                      (size_t)nth * dim;
        for (uint32_t i = lane; i < dim; i += SIMT_LANES)
            x[i] = from[i];
        if (norm->weight)
            norm_head(&step.norm, norm, x, dim); /* each lane has its own elements so far */
        simt_warp_barrier();
        turn_head(&step, x, row.position);
        simt_warp_barrier();
        if (query) {
            for (uint32_t i = lane; i < dim; i += SIMT_LANES)
                from[i] = x[i] * step.attention_scale;
        } else {
            uint32_t block =
                slots.tables[(size_t)row.slot * slots.table_size + row.position / BACKEND_BLOCK_TOKENS];
            KV::store(&step.kv, kv_keys(&step.kv, block, step.layer, nth),
                      kv_values(&step.kv, block, step.layer, nth), row.position % BACKEND_BLOCK_TOKENS, x,
                      step.v + (size_t)blockIdx.x * step.kv_stride + (size_t)nth * dim);
        }
    }
}

int kernels_heads(struct device_stream *queue, const struct heads_step *step, const struct slots *slots,
                  const struct step_row *rows, uint32_t n_rows)
{
    uint32_t n_heads = step->n_heads + step->kv.n_heads;
    return simt_launch(queue, "heads", step->kv.type == BACKEND_KV_Q8 ? heads<kv_q8> : heads<kv_f16>,
                       {n_rows, (n_heads + WARPS - 1) / WARPS, 1}, {THREADS, 1, 1},
                       WARPS * step->kv.dim * sizeof(float), *step, *slots, rows);
}
