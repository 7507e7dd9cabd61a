/* SPDX-License-Identifier: MIT */
#ifndef WORKER_START_SANDBOX_H
#define WORKER_START_SANDBOX_H

/* What a worker gives up before it reads its model, so that who takes it over by way of a hostile model file,
 * template or text holds no more than this one process: no program is started, no file written, made or
 * removed, few are read, no other process is touched, and nobody is spoken to but those who connect to the
 * two sockets that it was started with: it makes no socket, binds none and connects none.
 *
 * Three steps: files, and the calls of a worker that loads, before a byte of the model is read; the calls of
 * one that serves, when it has loaded it. Each is 0, or -errno with a reason when this kernel or build does
 * not know it; the process then goes on as it was. All last until the process ends. */

#include <stddef.h>

#include "common/error.h"

struct sandbox {
    const char *const *files; /* [n_files] of its model, which may be read; for the first step alone */
    size_t n_files;
};

enum sandbox_stage { SANDBOX_LOADING, SANDBOX_SERVING };

/* Files and folders, by Landlock: only the model, /proc, /sys and what the C library looks up may be read,
 * nothing be written, made or removed. What other processes have open is out of sight. What is open stays
 * open. For the calling thread and those that it will start, so before there are others (-EBUSY: a driver has
 * started some, and the process is best left alone). */
int sandbox_confine_files(const struct sandbox *sandbox, struct error *err);

/* System calls, by seccomp, for all threads: those that this stage needs, everything else ends the process
 * with SIGSYS and, where the thread does not block signals, with a line on stderr "NAME: the sandbox stops
 * it: it called CALL". `name` is borrowed for good. Loading allows what serving does, packing weights
 * and the second stage; serving comes after everything was opened. */
int sandbox_confine_calls(enum sandbox_stage stage, const char *name, struct error *err);

#endif
