/* SPDX-License-Identifier: MIT */
/* Whole KV blocks between the pool and a dense array, on their way to or from the host. */

#include "cuda/kv.h"

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

size_t kernels_kv_layer_bytes(uint32_t n_kv_heads, uint32_t dim)
{
    size_t padded = ((size_t)dim + KV_VECTOR - 1) / KV_VECTOR * KV_VECTOR;
    return n_kv_heads * 2 * padded * BACKEND_BLOCK_TOKENS * sizeof(half_t);
}

int kernels_copy_blocks(struct device_stream *queue, const struct device_kv *kv, const uint32_t *blocks,
                        uint32_t n, uint8_t *dense, bool out)
{
    uint32_t parts = (uint32_t)((kv->block_bytes / sizeof(struct simt_16) + VECTORS - 1) / VECTORS);
    return simt_launch(queue, "copy_blocks", copy_blocks, {parts, n, 1}, {THREADS, 1, 1}, 0, *kv, blocks,
                       dense, out);
}
