/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PROCESSES_FAULTS_FAULT_H
#define TESTS_PROCESSES_FAULTS_FAULT_H

/* Calls into libc that fail when they are told to. A program that is linked with fault.c (ld --wrap) counts
 * the calls that Quern's own code makes, wherever they stand, and has the n-th of a kind fail, once: with n =
 * 1, 2, 3 … each call site has its turn. What other libraries call is left alone; calls into libzmq fail too
 * where fault_sockets.c is linked as well.
 *
 * A test arms it in its own process (fault_arm), or starts programs that are told by $QUERN_FAULT,
 * ROLE:KIND:N:FILE. ROLE is "supervisor"; "worker", for the first of them; "gateway"; "command", for quern
 * itself; "broker", for the process that the supervisor starts; or "next", for a broker that is started when
 * FILE.next is there. In
 * FILE stands then which call failed; a process that finds the file there fails no more, so the one that is
 * started again serves. */

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

/* From now on the n-th call of the kind that this thread makes fails, or that any thread makes. */
void fault_arm(enum fault_kind kind, unsigned n, bool every_thread);
/* The call that failed since then, as "malloc"; NULL: none did. */
const char *fault_fired(void);
/* None fails any more; what fault_fired says stays. */
void fault_disarm(void);

/* For whoever stands in for a call: whether it is this one that fails, with errno set. */
bool fault_strikes(enum fault_kind kind, const char *call, int error);

static inline const char *fault_kind_name(enum fault_kind kind)
{
    static const char *const names[] = {"none",  "memory",  "descriptors", "space",   "mapping",
                                        "short", "threads", "sockets",     "sending", "receiving"};
    return names[kind];
}

#endif
