/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_RECLAIM_H
#define GATEWAY_CORE_RECLAIM_H

/* When free memory is returned to the system. The allocator keeps what a burst took, whoever held it: bodies,
 * answers, or libquern's requests. So the process itself is watched: while it holds much more than it did at
 * its smallest, the allocator is asked once a second to return what is free, and less often where that gains
 * nothing. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reclaim {
    size_t least;    /* bytes held at the smallest; 0 before the first look */
    size_t before;   /* bytes held when the allocator was last asked; 0: not since it held little */
    uint64_t due_ns; /* when it may be asked again */
    uint64_t wait_ns;
};

/* Bytes of memory that are this process's alone: resident, without mapped files and what it shares. Returns 0
 * where the system does not tell. */
size_t reclaim_held(void);

/* Whether the allocator is to be asked now; `held` is what the process holds. The caller then asks it. */
bool reclaim_is_due(struct reclaim *reclaim, size_t held, uint64_t now_ns);

#endif
