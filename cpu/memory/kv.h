/* SPDX-License-Identifier: MIT */
#ifndef CPU_MEMORY_KV_H
#define CPU_MEMORY_KV_H

/* The KV pools, one for each group of layers: blocks of 32 positions, as floats, in half precision, as
 * bfloat16, or in 8 or 4 bits.
 *
 * A block is contiguous: [layer of the group][keys, values][kv head]; keys are [dim][32 tokens], so that a
 * vector holds one dimension of eight tokens, values [32 tokens][value_dim], value_dim being the head's
 * rounded up to 8. In 8 bits the numbers are rounded to −127 … 127, in 4 bits to −8 … 7 with two dimensions
 * of a token in a byte: keys [⌈dim / 2⌉][32 tokens], two neighbours each, the first in the low half; values
 * [32 tokens][value_dim / 2], of each 32 dimensions, or the last few, the first half in the low halves. In
 * either, those of a head are followed by the scales, in half precision: one for 32 dimensions of a token,
 * keys [⌈dim / 32⌉][32 tokens], values [32 tokens][⌈value_dim / 32⌉]. So the stored numbers of a token depend
 * on that token alone, and no other token's are in their bytes. */

#include "common/error.h"
#include "cpu/kernels/kernels.h"
#include "cpu/memory/memory.h"
#include "engine/backend/backend.h"
#include "model/model.h"

/* Where a layer's keys and values are, and how many. */
struct kv_layer {
    uint32_t group;
    size_t offset;                    /* in a block of it */
    uint32_t n_heads, dim, value_dim; /* n_heads 0: the layer has none */
    size_t head_keys, head_values;    /* numbers of one head in one block */
    size_t key_bytes, value_bytes;    /* of those, with their scales */
    size_t bytes;                     /* of a block */
};

struct kv {
    enum backend_kv_type type; /* never BACKEND_KV_DEFAULT */
    uint32_t n_layers;
    struct backend_group groups[BACKEND_MOST_GROUPS];
    uint32_t n_groups;
    uint8_t *pools[BACKEND_MOST_GROUPS]; /* [the group's n_blocks][its block_bytes] */
    struct kv_layer *layers;             /* [n_layers] */
};

/* What the pools are made of. */
struct kv_config {
    const struct model *model;
    enum backend_kv_type type; /* BACKEND_KV_DEFAULT: F16, of a model that ranks F32 */
    uint32_t n_blocks;         /* of each group; 0: as many as the slots can use, limited to memory_share */
    uint32_t n_slots, n_context, max_rows;
};

/* Allocates the pools. -E2BIG if the machine never has the memory that n_blocks needs, -ENOMEM if it is
 * taken: with the amount needed, what there is, and who has it. */
int kv_init(struct kv *kv, const struct kv_config *config, struct memory *memory, struct error *err);

/* Forgets the contents of the n blocks of a group, ascending, as far as they fill pages. Returns the bytes
 * that were committed. */
uint64_t kv_forget(const struct kv *kv, uint32_t group, const uint32_t *blocks, uint32_t n);

/* An id that differs for blocks of another geometry, type or order (backend_info.kv_layout). */
uint64_t kv_layout(const struct kv *kv);

static inline uint8_t *kv_block(const struct kv *kv, uint32_t group, uint32_t block)
{
    return kv->pools[group] + block * kv->groups[group].block_bytes;
}

/* Writes one position of a layer: keys and values [n_heads][dim]. In 8 and 4 bits, a token with a
 * number that is not finite gets NaN scales, so the fault stays visible. */
void kv_store(const struct kv *kv, const struct kernels *kernels, uint32_t block, uint32_t layer,
              uint32_t offset, const float *keys, const float *values);

/* Reads one head of a block as floats: keys [dim][32 tokens], values [32 tokens][value_dim]. */
void kv_load(const struct kv *kv, const struct kernels *kernels, uint32_t block, uint32_t layer,
             uint32_t head, float *ret_keys, float *ret_values);

/* The same in place, in half precision. For BACKEND_KV_F16; and as floats, for BACKEND_KV_F32. */
void kv_halves(const struct kv *kv, uint32_t block, uint32_t layer, uint32_t head, const uint16_t **ret_keys,
               const uint16_t **ret_values);
void kv_floats(const struct kv *kv, uint32_t block, uint32_t layer, uint32_t head, const float **ret_keys,
               const float **ret_values);

#endif
