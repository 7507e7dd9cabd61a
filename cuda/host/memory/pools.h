/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_MEMORY_POOLS_H
#define CUDA_HOST_MEMORY_POOLS_H

/* The KV pools of a backend, one for each group of layers (engine/backend/kv_groups.h), and which layer uses
 * which pool.
 *
 * A kernel works on one layer: it gets the layer's keys and values in the pool of its group, and the slots
 * with the group's tables. Layers may differ in their heads, so each has its own place in a block. */

#include "cuda/kernels/kernels.h"
#include "cuda/host/memory/memory.h"
#include "engine/backend/backend.h"

struct pools_shape {
    uint32_t n_slots, n_context;
    uint32_t ahead;            /* rows in flight at once */
    enum backend_kv_type type; /* F16, Q8 or Q4 */
    uint32_t n_blocks;         /* of the first group */
    bool alike; /* the other groups have as many; else the same fraction of what they want as the first */
};

struct pools {
    uint32_t n_groups;
    struct backend_group groups[BACKEND_MOST_GROUPS];
    struct device_kv kv[BACKEND_MOST_GROUPS]; /* type, pool, n_blocks and block_bytes */
    struct pools_layer {
        uint32_t group;
        struct device_kv kv; /* of this layer alone */
    } * layers; /* [n_layers]; for layers with attention, also those that use another layer's keys and values
                 */
};

/* Blocks of the first group that this many slots want. */
uint64_t pools_wanted(const struct model *model, const struct pools_shape *shape);

/* Takes or counts the pools' device memory. -ENOMEM: of the host. */
int pools_init(struct pools *pools, struct device_memory *memory, const struct model *model,
               const struct pools_shape *shape);
void pools_deinit(struct pools *pools);

/* The slots with the tables of a group. */
struct slots pools_slots(const struct slots *slots, uint32_t group);

/* A number that differs for blocks of a different geometry or grouping (backend_info.kv_layout). */
uint64_t pools_layout(const struct pools *pools, uint32_t n_layers);

#endif
