/* SPDX-License-Identifier: MIT */
/* How large KV blocks are; and whole ones between the pool and a dense array, on their way to or from the
 * host.
 */

#include "cuda/kv_f16.h"
#include "cuda/kv_q8.h"

#define THREADS 256
#define VECTORS (THREADS * 4) /* of 16 bytes, that a block of threads moves */

/* grid (parts of a block, blocks); a thread moves four vectors of 16 bytes. Reads and writes each byte once.
 */
static __global__ void copy_blocks(struct device_kv kv, const uint32_t *blocks, uint8_t *dense, bool out)
{
    const size_t n = kv.block_bytes / sizeof(struct simt_16);
    struct simt_16 *in_pool = (struct simt_16 *)(kv.pool + blocks[blockIdx.y] * kv.block_bytes);
    struct simt_16 *in_dense = (struct simt_16 *)(dense + blockIdx.y * kv.block_bytes);
    const struct simt_16 *from = out ? in_pool : in_dense;
    struct simt_16 *to = out ? in_dense : in_pool;
    for (uint32_t i = 0; i < VECTORS / THREADS; i++) {
        size_t at = (size_t)blockIdx.x * VECTORS + i * THREADS + threadIdx.x;
        if (at < n)
            to[at] = from[at];
    }
}

/* A 16-byte load is eight neighbours of SIDES dims. */
template <class KV> static void lay_out(struct device_kv *kv, size_t number_bytes, size_t scale_bytes)
{
    const uint32_t to = KV_VECTOR * KV::SIDES;
    kv->padded = (kv->dim + to - 1) / to * to;
    kv->part_bytes = (kv->padded * number_bytes + scale_bytes) * BACKEND_BLOCK_TOKENS;
    kv->layer_bytes = kv->n_heads * 2 * kv->part_bytes;
    kv->block_bytes = kv->n_layers * kv->layer_bytes;
}

void kernels_kv_lay_out(struct device_kv *kv)
{
    if (kv->type == BACKEND_KV_Q8)
        lay_out<kv_q8>(kv, 1, (kv->dim + KV_SCALED - 1) / KV_SCALED * sizeof(half_t));
    else
        lay_out<kv_f16>(kv, sizeof(half_t), 0);
}

int kernels_copy_blocks(struct device_stream *queue, const struct device_kv *kv, const uint32_t *blocks,
                        uint32_t n, uint8_t *dense, bool out)
{
    uint32_t parts = (uint32_t)((kv->block_bytes / sizeof(struct simt_16) + VECTORS - 1) / VECTORS);
    return simt_launch(queue, "copy_blocks", copy_blocks, {parts, n, 1}, {THREADS, 1, 1}, 0, *kv, blocks,
                       dense, out);
}
