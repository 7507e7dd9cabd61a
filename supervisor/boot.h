/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_BOOT_H
#define SUPERVISOR_BOOT_H

/* The boot number: how often a broker has started in this run directory. It is the high part of every epoch,
 * so it must never repeat or fall. */

#include <stdint.h>

#include "common/error.h"

/* RUNDIR/boot holds the last number that this supervisor may use: it takes many at once, so that a broker
 * that died is followed without waiting for a disk. What it has not used when it ends is passed over. */
#define BOOT_TAKEN_AT_ONCE 1000

struct boot { /* zeroed: none is taken */
    uint64_t number, last;
};

/* The next number; 1 at the first start. What is on disk is not below it when this returns. Call it with the
 * run directory locked. -errno with the reason, and the number as it was; -EINVAL: the file holds none. */
int boot_raise(struct boot *boot, const char *rundir, struct error *err);

#endif
