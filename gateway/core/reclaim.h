/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_RECLAIM_H
#define GATEWAY_CORE_RECLAIM_H

/* Decides when to return free memory to the system. After a burst the allocator keeps its memory, whether it
 * held bodies, answers, or libquern's requests. So the process's memory is watched: while it is much larger
 * than its minimum so far, the allocator is told once a second to return free memory, and less often if that
 * gains nothing. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reclaim {
    size_t least;    /* the minimum so far in bytes; 0 before the first check */
    size_t before;   /* bytes held when the allocator was last told; 0: not since memory was small */
    uint64_t due_ns; /* when it may be told again */
    uint64_t wait_ns;
};

/* Bytes of private memory of this process: resident, without mapped files and shared memory. 0: unknown. */
size_t reclaim_held(void);

/* Whether the caller should tell the allocator now; `held`: bytes that the process holds. */
bool reclaim_is_due(struct reclaim *reclaim, size_t held, uint64_t now_ns);

#endif
