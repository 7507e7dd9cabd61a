/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_MEMORY_COPIES_H
#define CUDA_HOST_MEMORY_COPIES_H

/* Copies KV blocks and snapshots of states to the host and back, through pinned staging, and blocks over
 * other blocks, in the order of the stream. */

#include "cuda/kernels/kernels.h"
#include "cuda/host/memory/memory.h"
#include "cuda/host/memory/pools.h"
#include "cuda/host/memory/states.h"
#include "engine/backend/backend.h"

#define COPIES_AT_ONCE 2
#define COPIES_TICKET  (1ull << 63) /* copies' tickets are above, steps' below */

struct copy_flight {
    uint64_t ticket;  /* 0: free */
    uint8_t *staging; /* NULL: given back */
    /* Data still to be copied from the staging to the host. */
    uint8_t *host;
    size_t bytes;
};

struct copies {
    struct device *device;
    const struct pools *pools;
    const struct device_states *states;
    struct copy_flight flights[COPIES_AT_ONCE];
    size_t staging_bytes;
    uint64_t begun;
};

/* Takes the staging. The caller fills in the device, the pools and the states before the first copy. */
void copies_init(struct copies *copies, struct device_memory *memory, const struct pools *pools,
                 const struct device_states *states);

/* Frees staging that no copy uses, except the first, which suffices for every copy; simultaneous copies take
 * it again. Returns the freed bytes. */
size_t copies_give_back(struct copies *copies);

/* Bytes of staging that exist. */
size_t copies_bytes(const struct copies *copies);

/* As backend_ops.copy_out, copy_in and poll of their tickets. A copy of more blocks than a staging holds is
 * waited for inside the call, except its last part. */
int copies_begin(struct copies *copies, const struct backend_copy *copy, bool out, uint64_t *ret_ticket);
int copies_poll(struct copies *copies, uint64_t ticket, int timeout_ms, struct error *err);

/* As backend_ops.copy_block. */
int copies_block(struct copies *copies, uint32_t group, uint32_t from, uint32_t to);

#endif
