/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_RESIDENT_H
#define COMMON_SYSTEM_RESIDENT_H

/* How much of the machine's memory this process holds. */

#include <stdbool.h>
#include <stdint.h>

struct resident {
    uint64_t bytes;  /* in total */
    uint64_t shared; /* the part in files and in memory that other processes may share */
};

/* Reads it from /proc; the kernel's count may lag by some pages per thread. False: not known. */
bool resident_read(struct resident *ret_resident);

#endif
