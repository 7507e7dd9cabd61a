/* SPDX-License-Identifier: MIT */
/* How large KV blocks are. */

#include "cuda/kernels/attention/kv_f16.h"
#include "cuda/kernels/attention/kv_q8.h"

/* A 16-byte load is eight neighbours of SIDES dims. */
template <class KV> static void lay_out(struct device_kv *kv, size_t number_bytes, size_t scale_bytes)
{
    const uint32_t to = KV_VECTOR * KV::SIDES;
    kv->padded = (kv->dim + to - 1) / to * to;
    kv->part_bytes = (kv->padded * number_bytes + scale_bytes) * BACKEND_BLOCK_TOKENS;
    kv->layer_bytes = kv->n_heads * 2 * kv->part_bytes;
    kv->block_bytes = kv->n_layers * kv->layer_bytes;
    kv->offset = 0;
}

void kernels_kv_lay_out(struct device_kv *kv)
{
    if (kv->type == BACKEND_KV_Q8)
        lay_out<kv_q8>(kv, 1, (kv->dim + KV_SCALED - 1) / KV_SCALED * sizeof(half_t));
    else
        lay_out<kv_f16>(kv, sizeof(half_t), 0);
}
