/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_GIVE_BACK_H
#define ENGINE_BACKEND_GIVE_BACK_H

/* Memory that an open backend gives back. Not every backend can, and who only computes does without, so it is
 * no part of the table in backend.h: backend_choice and plugins have it beside that table. */

#include <stdint.h>

#include "engine/backend/backend.h"

/* Blocks and snapshots that nobody holds, and that no flight or copy uses: numbers, ascending. */
struct backend_idle {
    const uint32_t *blocks[BACKEND_MOST_GROUPS]; /* [n_blocks], of each group */
    uint32_t n_blocks[BACKEND_MOST_GROUPS];
    const uint32_t *snapshots; /* [n_snapshots] */
    uint32_t n_snapshots;
};

/* Bytes that were given back, as far as they were in use by the machine or the device. */
struct backend_given {
    uint64_t kv, states; /* contents of idle blocks; states of closed slots, and idle snapshots */
    uint64_t workspace;  /* of steps */
    uint64_t library;    /* what only large products of a library need, on the device */
    uint64_t staging;    /* pinned memory of the host */
};

/* Gives memory back to the machine or the device that nothing uses at the moment, contents of idle blocks and
 * snapshots among it, which are undefined then. What a later call needs is taken again, and if that fails,
 * done without it or refused with -ENOMEM by submit; info.memory_bytes follows. Waits for flights that use
 * it. 0 or a fault. */
typedef int backend_give_back(struct backend *backend, const struct backend_idle *idle,
                              struct backend_given *ret_given);

extern backend_give_back backend_cpu_give_back;

#endif
