/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SANDBOX_H
#define WORKER_SANDBOX_H

/* What a worker gives up once it has its model and its sockets, so that who takes it over by way of a hostile
 * model file, template or text holds no more than this one process: no program is started, no file written,
 * few are read, no new kind of socket is opened, no other process is touched.
 *
 * Two steps, because files are confined thread by thread and calls for all threads at once. Each is 0, or
 * -errno with a reason when this kernel or build does not know it; the process then goes on as it was. Both
 * last until the process ends. */

#include <stdbool.h>

#include "common/error.h"

struct sandbox {
    bool network;            /* it speaks TCP: what the resolver of names needs stays possible */
    bool abstract;           /* it speaks to sockets in the abstract name space (ipc://@NAME) */
    char socket_folder[128]; /* where it makes and removes sockets; "": nowhere */
};

/* Files and folders, by Landlock: only /proc, /sys and what the C library looks up may be read, nothing be
 * written or made but sockets. What is open stays open. For the calling thread and those that it will start,
 * so before there are others (-EBUSY: a driver has started some, and the process is best left alone), and
 * after the model was mapped. */
int sandbox_confine_files(const struct sandbox *sandbox, struct error *err);

/* System calls, by seccomp, for all threads: those that serving needs, everything else ends the process with
 * SIGSYS and, where the thread does not block signals, with a line on stderr "NAME: the sandbox stops it: it
 * called CALL". `name` is borrowed for good. After everything was opened. */
int sandbox_confine_calls(const struct sandbox *sandbox, const char *name, struct error *err);

#endif
