/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_BOOT_H
#define SUPERVISOR_BOOT_H

/* The boot number: how often a broker has started in this run directory. It is the high part of every epoch,
 * so it must never repeat or fall. */

#include <stdint.h>

#include "common/error.h"

/* Raises the number kept in RUNDIR/boot and returns it; 1 at the first start. The new number is on disk
 * before it is returned. Call it with the run directory locked. -errno with the reason; -EINVAL when the file
 * holds no number. */
int boot_raise(const char *rundir, uint64_t *ret_boot, struct error *err);

#endif
