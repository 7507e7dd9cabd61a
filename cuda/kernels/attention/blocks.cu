/* SPDX-License-Identifier: MIT */
/* How large KV blocks are. */

#include "cuda/kernels/attention/kv_f16.h"
#include "cuda/kernels/attention/kv_q4.h"
#include "cuda/kernels/attention/kv_q8.h"

/* A 16-byte load is eight neighbours of SIDES dims. */
template <class KV> static void lay_out(struct device_kv *kv, size_t bits)
{
    const uint32_t to = KV_VECTOR * KV::SIDES;
    const size_t scale_bytes = KV::SCALED ? (kv->dim + KV_SCALED - 1) / KV_SCALED * sizeof(half_t) : 0;
    kv->padded = (kv->dim + to - 1) / to * to;
    kv->part_bytes = (kv->padded * bits / 8 + scale_bytes) * BACKEND_BLOCK_TOKENS;
    kv->layer_bytes = kv->n_heads * 2 * kv->part_bytes;
    kv->block_bytes = kv->n_layers * kv->layer_bytes;
    kv->offset = 0;
}

void kernels_kv_lay_out(struct device_kv *kv)
{
    switch (kv->type) {
    case BACKEND_KV_Q8:
        lay_out<kv_q8>(kv, 8);
        return;
    case BACKEND_KV_Q4:
        lay_out<kv_q4>(kv, 4);
        return;
    case BACKEND_KV_DEFAULT:
    case BACKEND_KV_F16:
    case BACKEND_KV_BF16:
    case BACKEND_KV_F32:
        break; /* the others are refused before */
    }
    lay_out<kv_f16>(kv, 16);
}
