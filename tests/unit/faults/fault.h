/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_FAULTS_FAULT_H
#define TESTS_UNIT_FAULTS_FAULT_H

/* Calls into libc that fail when they are told to. A program that is linked with fault.c (ld --wrap) counts
 * the calls that Quern's own code makes, wherever they stand, and has the n-th of a kind fail, once: with n =
 * 1, 2, 3 … each call site has its turn. What other libraries call is left alone.
 *
 * It is told by $QUERN_FAULT, ROLE:KIND:N:FILE. ROLE is "supervisor"; "broker", for the process that one
 * starts; or "next", for a broker that is started when FILE.next is there. In FILE stands then which call
 * failed; a process that finds the file there fails no more, so the one that is started again serves. */

enum fault_kind {
    FAULT_NONE,
    FAULT_MEMORY,      /* malloc, calloc, realloc, reallocarray, strdup: ENOMEM */
    FAULT_DESCRIPTORS, /* open, socket, socketpair, pipe2, eventfd, epoll_create1, accept4, memfd_create:
                          EMFILE */
    FAULT_SPACE,       /* write, fsync, rename, fallocate, ftruncate: ENOSPC */
    FAULT_MAPPING,     /* mmap: ENOMEM */
    FAULT_SHORT,       /* write: half of it */
    FAULT_KIND_COUNT
};

static inline const char *fault_kind_name(enum fault_kind kind)
{
    static const char *const names[] = {"none", "memory", "descriptors", "space", "mapping", "short"};
    return names[kind];
}

#endif
