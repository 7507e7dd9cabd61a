/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_BOOT_H
#define SUPERVISOR_BOOT_H

/* The boot number: how often a broker has started in this run directory. It is the high part of every epoch,
 * so it must never repeat or fall. */

#include <stdint.h>

#include "common/error.h"

/* RUNDIR/boot holds the last number that this supervisor may use: it reserves many at once, so that a dead
 * broker is replaced without waiting for a disk. Unused numbers are skipped. */
#define BOOT_TAKEN_AT_ONCE 1000

struct boot { /* zeroed: none is taken */
    uint64_t number, last;
};

/* The next number; 1 at the first start. On return the number on disk is at least as high. Call it with the
 * run directory locked. -errno with a reason, and the number unchanged; -EINVAL if the file holds no
 * number. */
int boot_raise(struct boot *boot, const char *rundir, struct error *err);

#endif
