/* SPDX-License-Identifier: MIT */
#ifndef WORKER_START_SANDBOX_H
#define WORKER_START_SANDBOX_H

/* Drops rights of a worker before it reads its model, so that a hostile model file, template or text that
 * takes it over controls only this process: it cannot start programs, write, create or remove files, read
 * more than a few files, or affect other processes, and it communicates only over the two sockets that it
 * inherited: it cannot create, bind or connect sockets.
 *
 * Three steps: files, then the system calls of loading, both before a byte of the model is read; finally the
 * system calls of serving. Each returns 0, or -errno with a reason if the kernel or the build does not
 * support it; the process is then unchanged. All last until the process ends. */

#include <stddef.h>

#include "common/error.h"

struct sandbox {
    const char *const *files; /* [n_files] of its model, which may be read; only for the first step */
    size_t n_files;
};

enum sandbox_stage { SANDBOX_LOADING, SANDBOX_SERVING };

/* Files and folders, by Landlock: only the model, /proc, /sys and what the C library needs may be read, and
 * nothing may be written, created or removed. Open files of other processes are inaccessible; the process's
 * own stay open. Applies to the calling thread and threads that it starts later, so call it before there are
 * others (-EBUSY: a driver has started some). */
int sandbox_confine_files(const struct sandbox *sandbox, struct error *err);

/* System calls, by seccomp, for all threads: those that the stage needs are allowed; any other ends the
 * process with SIGSYS and, unless the thread blocks signals, a line on stderr "NAME: the sandbox stops it:
 * it called CALL". `name` must live as long as the process. Loading allows the calls of serving, of packing
 * weights and of the second stage; serving comes after everything is open. */
int sandbox_confine_calls(enum sandbox_stage stage, const char *name, struct error *err);

#endif
