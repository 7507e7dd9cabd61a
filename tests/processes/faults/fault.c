/* SPDX-License-Identifier: MIT */
/* Counters are atomic: libzmq's threads free what they sent through functions of ours. */

#include "tests/processes/faults/fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

WRAP(char *, strndup, const char *text, size_t most)
{
    return fault_strikes(FAULT_MEMORY, "strndup", ENOMEM) ? NULL : __real_strndup(text, most);
}

WRAP(void *, aligned_alloc, size_t alignment, size_t size)
{
    return fault_strikes(FAULT_MEMORY, "aligned_alloc", ENOMEM) ? NULL
                                                                : __real_aligned_alloc(alignment, size);
}

static int print(char **ret_text, const char *format, va_list args)
{
    return fault_strikes(FAULT_MEMORY, "asprintf", ENOMEM) ? -1 : vasprintf(ret_text, format, args);
}

int __wrap_asprintf(char **ret_text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **ret_text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = print(ret_text, format, args);
    va_end(args);
    return n;
}

/* The same where libc's functions are fortified. */
int __wrap___asprintf_chk(char **ret_text, int flag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int __wrap___asprintf_chk(char **ret_text, int flag, const char *format, ...)
{
    va_list args;
    (void)flag;
    va_start(args, format);
    int n = print(ret_text, format, args);
    va_end(args);
    return n;
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

REAL(int, openat64, int, const char *, int, ...);
int __wrap_openat64(int folder, const char *path, int flags, ...);
int __wrap_openat64(int folder, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    return fault_strikes(FAULT_DESCRIPTORS, "openat", EMFILE) ? -1
                                                              : __real_openat64(folder, path, flags, mode);
}

WRAP(int, accept, int fd, struct sockaddr *address, socklen_t *size)
{
    return fault_strikes(FAULT_DESCRIPTORS, "accept", EMFILE) ? -1 : __real_accept(fd, address, size);
}

WRAP(FILE *, fopen64, const char *path, const char *mode)
{
    return fault_strikes(FAULT_DESCRIPTORS, "fopen", EMFILE) ? NULL : __real_fopen64(path, mode);
}

WRAP(DIR *, opendir, const char *path)
{
    return fault_strikes(FAULT_DESCRIPTORS, "opendir", EMFILE) ? NULL : __real_opendir(path);
}

/* Whatever comes third is passed on: it is as wide as a pointer, or not looked at. */
REAL(int, fcntl64, int, int, ...);
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *third = va_arg(args, void *);
    va_end(args);
    bool duplicates = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
    return duplicates && fault_strikes(FAULT_DESCRIPTORS, "fcntl", EMFILE)
               ? -1
               : __real_fcntl64(fd, command, third);
}

WRAP(int, signalfd, int fd, const sigset_t *signals, int flags)
{
    return fault_strikes(FAULT_DESCRIPTORS, "signalfd", EMFILE) ? -1 : __real_signalfd(fd, signals, flags);
}

WRAP(int, bind, int fd, const struct sockaddr *address, socklen_t size)
{
    return fault_strikes(FAULT_DESCRIPTORS, "bind", EADDRINUSE) ? -1 : __real_bind(fd, address, size);
}

WRAP(int, listen, int fd, int backlog)
{
    return fault_strikes(FAULT_DESCRIPTORS, "listen", EADDRINUSE) ? -1 : __real_listen(fd, backlog);
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

WRAP(ssize_t, pwrite64, int fd, const void *data, size_t len, off_t at)
{
    return fault_strikes(FAULT_SPACE, "pwrite", ENOSPC) ? -1 : __real_pwrite64(fd, data, len, at);
}

WRAP(ssize_t, send, int fd, const void *data, size_t len, int flags)
{
    return fault_strikes(FAULT_SPACE, "send", ENOBUFS) ? -1 : __real_send(fd, data, len, flags);
}

WRAP(int, link, const char *from, const char *to)
{
    return fault_strikes(FAULT_SPACE, "link", ENOSPC) ? -1 : __real_link(from, to);
}

WRAP(int, mkdir, const char *path, mode_t mode)
{
    return fault_strikes(FAULT_SPACE, "mkdir", ENOSPC) ? -1 : __real_mkdir(path, mode);
}

WRAP(int, mkostemp64, char *path, int flags)
{
    return fault_strikes(FAULT_SPACE, "mkostemp", ENOSPC) ? -1 : __real_mkostemp64(path, flags);
}

WRAP(int, posix_fallocate64, int fd, off_t at, off_t len)
{
    return fault_strikes(FAULT_SPACE, "posix_fallocate", ENOSPC) ? ENOSPC
                                                                 : __real_posix_fallocate64(fd, at, len);
}

WRAP(int, epoll_ctl, int epoll, int operation, int fd, struct epoll_event *event)
{
    return operation == EPOLL_CTL_ADD && fault_strikes(FAULT_SPACE, "epoll_ctl", ENOSPC)
               ? -1
               : __real_epoll_ctl(epoll, operation, fd, event);
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

WRAP(int, posix_spawn, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
     const posix_spawnattr_t *attributes, char *const argv[], char *const environment[])
{
    return fault_strikes(FAULT_THREADS, "posix_spawn", EAGAIN)
               ? EAGAIN
               : __real_posix_spawn(pid, path, actions, attributes, argv, environment);
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
    const char *slash = strrchr(argv[0], '/');
    if (strcmp(role, "command") == 0)
        return strcmp(slash ? slash + 1 : argv[0], "quern") == 0;
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
