/* SPDX-License-Identifier: MIT */
#ifndef COMMON_RUNDIR_H
#define COMMON_RUNDIR_H

/* The run directory of a pool: its ipc sockets, its lock, the broker's persisted boot number.
 *
 * Default: $XDG_RUNTIME_DIR/quern, or /tmp/quern-UID. Mode 0700 and owned by the caller, or it is refused:
 * whoever can write there could put his own sockets in ours' place. */

#include <stddef.h>

#include "common/error.h"

/* A unix socket path holds 107 bytes, the longest name inside a run directory about 40. */
#define RUNDIR_PATH_MAX 64

/* Writes the path: `wanted` if not NULL, else the default. -ENAMETOOLONG beyond RUNDIR_PATH_MAX bytes. */
int rundir_path(const char *wanted, char ret_path[RUNDIR_PATH_MAX + 1], struct error *err);

/* Creates the directory if missing and checks owner and mode. -EPERM when they are not ours. */
int rundir_prepare(const char *path, struct error *err);

/* Takes PATH/lock (flock, close-on-exec). A second ipc bind would silently steal the sockets of a running
 * pool, so the lock decides: -EBUSY when another pool holds it. The lock lives as long as the descriptor. */
int rundir_lock(const char *path, int *ret_fd, struct error *err);

/* Makes a fresh private directory under $TMPDIR or /tmp, for a pool that ends with its command. */
int rundir_temporary(char ret_path[RUNDIR_PATH_MAX + 1], struct error *err);

/* Removes what a pool leaves in its run directory (plain files and sockets), then the directory itself. */
void rundir_remove(const char *path);

#endif
