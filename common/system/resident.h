/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_RESIDENT_H
#define COMMON_SYSTEM_RESIDENT_H

/* What this process holds of the machine's memory. */

#include <stdbool.h>
#include <stdint.h>

struct resident {
    uint64_t bytes;  /* in all */
    uint64_t shared; /* of those, of files and of memory that other processes may have too */
};

/* Reads it from /proc; the kernel's count may lag behind by some pages of each thread. False: not known. */
bool resident_read(struct resident *ret_resident);

#endif
