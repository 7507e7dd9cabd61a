/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_RUNDIR_H
#define COMMON_FILES_RUNDIR_H

/* The run directory of a pool: its ipc sockets, its lock, the broker's persisted boot number.
 *
 * Default: $XDG_RUNTIME_DIR/quern, or /tmp/quern-UID. It must have mode 0700 and belong to the caller, or it
 * is rejected: anyone who can write there could replace the pool's sockets. */

#include <stddef.h>

#include "common/error.h"

/* A unix socket path may have 107 bytes; the longest name inside a run directory has about 40. */
#define RUNDIR_PATH_MAX 64

/* Writes the path: `wanted` if not NULL, else the default. It is absolute, so that all processes of a pool
 * use the same directory; if `wanted` is a symbolic link, it is the path of the link's target. -ENAMETOOLONG
 * beyond RUNDIR_PATH_MAX bytes; -errno if the current directory cannot be determined. */
int rundir_path(const char *wanted, char ret_path[RUNDIR_PATH_MAX + 1], struct error *err);

/* Whether an existing directory can be trusted: -ENOENT, -ENOTDIR, or -EPERM if the owner or mode is wrong.
 * Clients check it as the broker does: otherwise an attacker who created /tmp/quern-UID first could
 * impersonate the pool. */
int rundir_check(const char *path, struct error *err);

/* Creates the directory if missing and checks it. */
int rundir_prepare(const char *path, struct error *err);

/* Locks the directory itself (flock, close-on-exec). A second ipc bind would silently steal the sockets of a
 * running pool, so the lock decides: -EBUSY if another pool holds it. It lives as long as the descriptor,
 * cannot be deleted like a lock file, and keeps cleaners of /tmp from the directory's contents. */
int rundir_lock(const char *path, int *ret_fd, struct error *err);

/* Creates a fresh private directory in $TMPDIR or /tmp, for a pool that ends with its command. */
int rundir_temporary(char ret_path[RUNDIR_PATH_MAX + 1], struct error *err);

/* Removes what a pool leaves in its run directory (plain files and sockets), then the directory itself.
 * Waits, for at most a second, for temporary obstacles: a full descriptor table, or a process of the pool
 * that has not noticed the pool's end and still creates files there. */
void rundir_remove(const char *path);

#endif
