/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROCESSES_FAULTS_FAULT_H
#define TESTS_PROCESSES_FAULTS_FAULT_H

/* Makes calls into libc fail on demand. A program linked with fault.c (ld --wrap) counts the calls made by
 * Quern's own code and makes the n-th call of a kind fail, once: with n = 1, 2, 3 … each call site gets its
 * turn. Calls made by other libraries are unaffected; calls into libzmq fail too if fault_sockets.c is also
 * linked.
 *
 * A test arms a fault in its own process (fault_arm), or starts programs with $QUERN_FAULT set to
 * ROLE:KIND:N:FILE. ROLE is "supervisor"; "worker", for the first worker; "gateway"; "command", for quern
 * itself; "broker", for the process that the supervisor starts; or "next", for a broker that is started while
 * FILE.next exists. The name of the failed call is written to FILE; a process that finds FILE does not fail,
 * so a restarted process serves. */

#include <stdbool.h>

enum fault_kind {
    FAULT_NONE,
    FAULT_MEMORY,      /* malloc, calloc, realloc, reallocarray, strdup, strndup, asprintf, aligned_alloc,
                          zmq_msg_init_data, zmq_msg_init_size: ENOMEM */
    FAULT_DESCRIPTORS, /* open, openat, fopen, opendir, fcntl that duplicates, socket, socketpair, pipe2,
                          eventfd, epoll_create1, signalfd, accept, accept4, memfd_create: EMFILE; bind,
                          listen: EADDRINUSE */
    FAULT_SPACE,       /* write, pwrite, fsync, rename, link, mkdir, mkostemp, fallocate, posix_fallocate,
                          ftruncate, epoll_ctl that adds: ENOSPC; send: ENOBUFS */
    FAULT_MAPPING,     /* mmap: ENOMEM */
    FAULT_SHORT,       /* write: half of it */
    FAULT_THREADS,     /* pthread_create, posix_spawn: EAGAIN */
    FAULT_SOCKETS,     /* zmq_ctx_new, zmq_socket, zmq_setsockopt, zmq_connect, zmq_bind …: EMFILE */
    FAULT_SENDING,     /* zmq_send, zmq_msg_send: EAGAIN */
    FAULT_RECEIVING,   /* zmq_msg_recv, poll: EINTR */
    FAULT_KIND_COUNT
};

/* From now on the n-th call of the kind fails, counting this thread's calls or those of every thread. */
void fault_arm(enum fault_kind kind, unsigned n, bool every_thread);
/* The call that failed since then ("malloc"); NULL: none. */
const char *fault_fired(void);
/* No call fails any more; the result of fault_fired stays. */
void fault_disarm(void);

/* For wrappers of calls: whether this call must fail; sets errno. */
bool fault_strikes(enum fault_kind kind, const char *call, int error);

static inline const char *fault_kind_name(enum fault_kind kind)
{
    static const char *const names[] = {"none",  "memory",  "descriptors", "space",   "mapping",
                                        "short", "threads", "sockets",     "sending", "receiving"};
    return names[kind];
}

#endif
