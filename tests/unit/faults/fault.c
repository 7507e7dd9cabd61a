/* SPDX-License-Identifier: MIT */
/* Counters are atomic: libzmq's threads free what they sent through functions of ours. */

#include "tests/unit/faults/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static _Atomic enum fault_kind armed;
static _Atomic unsigned left;          /* calls until the one that fails */
static _Atomic bool counts_all;        /* the calls of every thread, not of some */
static _Thread_local bool counts_here; /* this thread's too */
static const char *_Atomic fired;      /* the call that failed */
static char fired_file[256];

/* What the linker calls what libc has. */
#define REAL(type, name, ...) type __real_##name(__VA_ARGS__)
#define WRAP(type, name, ...)                                                                                \
    type __real_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__)

REAL(int, open64, const char *, int, ...);
REAL(ssize_t, write, int, const void *, size_t);

static void tell(const char *call)
{
    int fd = __real_open64(fired_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    ssize_t n = __real_write(fd, call, strlen(call));
    (void)n;
    close(fd);
}

bool fault_strikes(enum fault_kind kind, const char *call, int error)
{
    if (armed != kind || !(counts_here || counts_all) || left == 0 || --left > 0)
        return false;
    fired = call;
    if (fired_file[0])
        tell(call);
    errno = error;
    return true;
}

void fault_arm(enum fault_kind kind, unsigned n, bool every_thread)
{
    fired = NULL;
    counts_here = true;
    counts_all = every_thread;
    left = n;
    armed = kind;
}

const char *fault_fired(void)
{
    return fired;
}

void fault_disarm(void)
{
    armed = FAULT_NONE;
    counts_here = counts_all = false;
}

/* ---- memory ---- */

WRAP(void *, malloc, size_t size)
{
    return fault_strikes(FAULT_MEMORY, "malloc", ENOMEM) ? NULL : __real_malloc(size);
}

WRAP(void *, calloc, size_t n, size_t size)
{
    return fault_strikes(FAULT_MEMORY, "calloc", ENOMEM) ? NULL : __real_calloc(n, size);
}

WRAP(void *, realloc, void *memory, size_t size)
{
    return fault_strikes(FAULT_MEMORY, "realloc", ENOMEM) ? NULL : __real_realloc(memory, size);
}

WRAP(void *, reallocarray, void *memory, size_t n, size_t size)
{
    return fault_strikes(FAULT_MEMORY, "reallocarray", ENOMEM) ? NULL : __real_reallocarray(memory, n, size);
}

WRAP(char *, strdup, const char *text)
{
    return fault_strikes(FAULT_MEMORY, "strdup", ENOMEM) ? NULL : __real_strdup(text);
}

/* ---- descriptors ---- */

int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    return fault_strikes(FAULT_DESCRIPTORS, "open", EMFILE) ? -1 : __real_open64(path, flags, mode);
}

WRAP(int, socket, int domain, int type, int protocol)
{
    return fault_strikes(FAULT_DESCRIPTORS, "socket", EMFILE) ? -1 : __real_socket(domain, type, protocol);
}

WRAP(int, socketpair, int domain, int type, int protocol, int *fds)
{
    return fault_strikes(FAULT_DESCRIPTORS, "socketpair", EMFILE)
               ? -1
               : __real_socketpair(domain, type, protocol, fds);
}

WRAP(int, pipe2, int *fds, int flags)
{
    return fault_strikes(FAULT_DESCRIPTORS, "pipe2", EMFILE) ? -1 : __real_pipe2(fds, flags);
}

WRAP(int, eventfd, unsigned value, int flags)
{
    return fault_strikes(FAULT_DESCRIPTORS, "eventfd", EMFILE) ? -1 : __real_eventfd(value, flags);
}

WRAP(int, epoll_create1, int flags)
{
    return fault_strikes(FAULT_DESCRIPTORS, "epoll_create1", EMFILE) ? -1 : __real_epoll_create1(flags);
}

WRAP(int, accept4, int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    return fault_strikes(FAULT_DESCRIPTORS, "accept4", EMFILE) ? -1
                                                               : __real_accept4(fd, address, size, flags);
}

WRAP(int, memfd_create, const char *name, unsigned flags)
{
    return fault_strikes(FAULT_DESCRIPTORS, "memfd_create", EMFILE) ? -1 : __real_memfd_create(name, flags);
}

/* ---- space ---- */

ssize_t __wrap_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len)
{
    if (fault_strikes(FAULT_SPACE, "write", ENOSPC))
        return -1;
    return __real_write(fd, data, fault_strikes(FAULT_SHORT, "short write", 0) ? len / 2 : len);
}

WRAP(int, fsync, int fd)
{
    return fault_strikes(FAULT_SPACE, "fsync", ENOSPC) ? -1 : __real_fsync(fd);
}

WRAP(int, rename, const char *from, const char *to)
{
    return fault_strikes(FAULT_SPACE, "rename", ENOSPC) ? -1 : __real_rename(from, to);
}

WRAP(int, fallocate64, int fd, int mode, off_t at, off_t len)
{
    return fault_strikes(FAULT_SPACE, "fallocate", ENOSPC) ? -1 : __real_fallocate64(fd, mode, at, len);
}

WRAP(int, ftruncate64, int fd, off_t len)
{
    return fault_strikes(FAULT_SPACE, "ftruncate", ENOSPC) ? -1 : __real_ftruncate64(fd, len);
}

WRAP(void *, mmap64, void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
    return fault_strikes(FAULT_MAPPING, "mmap", ENOMEM)
               ? MAP_FAILED
               : __real_mmap64(at, len, protection, flags, fd, offset);
}

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *),
     void *arg)
{
    return fault_strikes(FAULT_THREADS, "pthread_create", EAGAIN)
               ? EAGAIN
               : __real_pthread_create(thread, attributes, main, arg);
}

/* ---- from outside ---- */

/* Of "next", which is a broker, the file decides. */
static bool is_role(const char *role, int argc, char **argv)
{
    bool broker = argc > 1 && strcmp(argv[1], "--supervision-fd") == 0, worker = false, named = false,
         listens = false;
    for (int i = 1; i < argc; i++) {
        worker |= strncmp(argv[i], "--stream", 8) == 0;
        named |= strstr(argv[i], "worker-0") != NULL;
        listens |= strcmp(argv[i], "--listen") == 0;
    }
    if (strcmp(role, "worker") == 0)
        return worker && named;
    if (strcmp(role, "gateway") == 0)
        return listens;
    return !worker && broker == (strcmp(role, "supervisor") != 0);
}

__attribute__((constructor)) static void arm_by_environment(int argc, char **argv)
{
    char role[16], kind[16], next[sizeof fired_file + 8];
    unsigned n;
    const char *text = getenv("QUERN_FAULT");
    if (!text || sscanf(text, "%15[^:]:%15[^:]:%u:%255s", role, kind, &n, fired_file) != 4 ||
        !is_role(role, argc, argv) || access(fired_file, F_OK) == 0)
        return;
    snprintf(next, sizeof next, "%s.next", fired_file);
    if (strcmp(role, "next") == 0 && access(next, F_OK) < 0)
        return;
    left = n;
    counts_all = true;
    for (int k = 1; k < FAULT_KIND_COUNT; k++)
        if (strcmp(kind, fault_kind_name((enum fault_kind)k)) == 0)
            armed = (enum fault_kind)k;
}
