/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_GIVE_BACK_H
#define ENGINE_BACKEND_GIVE_BACK_H

/* Gives back memory of an open backend. Not every backend can, and computing does not need it, so it is not
 * part of the table in backend.h: backend_choice and plugins carry it beside that table. */

#include <stdint.h>

#include "engine/backend/backend.h"

/* Blocks and snapshots that nothing holds, and that no flight or copy uses: numbers, ascending. */
struct backend_idle {
    const uint32_t *blocks[BACKEND_MOST_GROUPS]; /* [n_blocks], of each group */
    uint32_t n_blocks[BACKEND_MOST_GROUPS];
    const uint32_t *snapshots; /* [n_snapshots] */
    uint32_t n_snapshots;
};

/* Bytes given back, counting only memory that the machine or the device had in use. */
struct backend_given {
    uint64_t kv, states; /* contents of idle blocks; states of closed slots, and idle snapshots */
    uint64_t workspace;  /* of steps */
    uint64_t library;    /* device memory that only large products of a library need */
    uint64_t staging;    /* pinned memory of the host */
};

/* Returns memory that is unused at the moment to the machine or the device. This includes the contents of
 * idle blocks and snapshots, which become undefined. Later calls allocate again what they need; if that
 * fails, they do without it, or submit returns -ENOMEM. info.memory_bytes follows. Waits for flights that use
 * the memory. 0 or a fault. */
typedef int backend_give_back(struct backend *backend, const struct backend_idle *idle,
                              struct backend_given *ret_given);

extern backend_give_back backend_cpu_give_back;

#endif
