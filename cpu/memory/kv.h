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
 * [32 tokens][value_dim / 2], with the first half of each 32 dimensions (or of the last, shorter group) in
 * the low halves. In both, the numbers of a head are followed by the scales, in half precision: one for 32
 * dimensions of a token, keys [⌈dim / 32⌉][32 tokens], values [32 tokens][⌈value_dim / 32⌉]. So the stored
 * numbers of a token depend on that token alone and share no bytes with those of other tokens. */

#include "common/error.h"
#include "cpu/kernels/kernels.h"
#include "cpu/memory/memory.h"
#include "engine/backend/backend.h"
#include "model/model.h"

/* The location and size of a layer's keys and values. */
struct kv_layer {
    uint32_t group;
    size_t offset;                    /* within a block of the group */
    uint32_t n_heads, dim, value_dim; /* n_heads 0: the layer has none */
    size_t head_keys, head_values;    /* numbers of one head in one block */
    size_t key_bytes, value_bytes;    /* bytes of these, with their scales */
    size_t bytes;                     /* in a block */
};

struct kv {
    enum backend_kv_type type; /* never BACKEND_KV_DEFAULT */
    uint32_t n_layers;
    struct backend_group groups[BACKEND_MOST_GROUPS];
    uint32_t n_groups;
    uint8_t *pools[BACKEND_MOST_GROUPS]; /* [the group's n_blocks][its block_bytes] */
    struct kv_layer *layers;             /* [n_layers] */
};

/* Parameters of the pools. */
struct kv_config {
    const struct model *model;
    enum backend_kv_type type; /* BACKEND_KV_DEFAULT: F16; F32 if the model ranks */
    uint32_t n_blocks;         /* of each group; 0: as many as the slots can use, limited to memory_share */
    uint32_t n_slots, n_context, max_rows;
};

/* Allocates the pools. -E2BIG if n_blocks needs more memory than the machine has, -ENOMEM if that memory is
 * in use; the reason has the amount needed, the amount available, and who uses the rest. */
int kv_init(struct kv *kv, const struct kv_config *config, struct memory *memory, struct error *err);

/* Discards the contents of n blocks of a group, in ascending order, as far as they fill whole pages. Returns
 * how many of the bytes were committed. */
uint64_t kv_forget(const struct kv *kv, uint32_t group, const uint32_t *blocks, uint32_t n);

/* An id that differs between blocks of different geometry, type or order (backend_info.kv_layout). */
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

/* The same without copying: halves for BACKEND_KV_F16; floats for BACKEND_KV_F32. */
void kv_halves(const struct kv *kv, uint32_t block, uint32_t layer, uint32_t head, const uint16_t **ret_keys,
               const uint16_t **ret_values);
void kv_floats(const struct kv *kv, uint32_t block, uint32_t layer, uint32_t head, const float **ret_keys,
               const float **ret_values);

#endif
