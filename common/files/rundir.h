/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_RUNDIR_H
#define COMMON_FILES_RUNDIR_H

/* The run directory of a pool: its ipc sockets, its lock, the broker's persisted boot number.
 *
 * Default: $XDG_RUNTIME_DIR/quern, or /tmp/quern-UID. Mode 0700 and owned by the caller, or it is refused:
 * anyone who can write there could replace our sockets by their own. */

#include <stddef.h>

#include "common/error.h"

/* A unix socket path holds 107 bytes, the longest name inside a run directory about 40. */
#define RUNDIR_PATH_MAX 64

/* Writes the path: `wanted` if not NULL, else the default. It is absolute, so that every process of a pool
 * means the same, and where `wanted` is a symbolic link, that of the directory behind it. -ENAMETOOLONG
 * beyond RUNDIR_PATH_MAX bytes; -errno where the current directory cannot be told. */
int rundir_path(const char *wanted, char ret_path[RUNDIR_PATH_MAX + 1], struct error *err);

/* Whether a directory that is there may be trusted: -ENOENT, -ENOTDIR, or -EPERM when the owner or mode is
 * wrong. Clients check it as the broker does: otherwise an attacker who created /tmp/quern-UID first could
 * impersonate the pool. */
int rundir_check(const char *path, struct error *err);

/* Creates the directory if missing and checks it. */
int rundir_prepare(const char *path, struct error *err);

/* Locks the directory itself (flock, close-on-exec). A second ipc bind would silently steal the sockets of a
 * running pool, so the lock decides: -EBUSY when another pool holds it. It lives as long as the descriptor,
 * cannot be deleted with a file, and keeps cleaners of /tmp from what lies in the directory. */
int rundir_lock(const char *path, int *ret_fd, struct error *err);

/* Makes a fresh private directory under $TMPDIR or /tmp, for a pool that ends with its command. */
int rundir_temporary(char ret_path[RUNDIR_PATH_MAX + 1], struct error *err);

/* Removes what a pool leaves in its run directory (plain files and sockets), then the directory itself. What
 * stands in the way of that and may pass is waited for, a second at most: a table of descriptors that is
 * full, a process of the pool that has not seen its end yet and makes something there. */
void rundir_remove(const char *path);

#endif
