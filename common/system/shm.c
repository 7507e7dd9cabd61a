/* SPDX-License-Identifier: MIT */
/* Thin, errno-returning steps around memfd_create(2): create, map, seal. */

#include "common/system/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

int shm_create(const char *name, size_t size, int *ret_fd)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    /* The kernel lets everybody open it who sees the process in /proc and may write a file of this mode. */
    int r = fchmod(fd, 0600) < 0 ? -errno : shm_grow(fd, size);
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

/* The limit on files counts here too, and passing it is a signal. */
static bool may_reach(size_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur;
}

const char *shm_reason(int code)
{
    return code == -EFBIG
               ? "exceeds the file size limit, which applies to shared memory (ulimit -f, LimitFSIZE)"
               : strerror(-code);
}

int shm_commit(int fd, size_t offset, size_t size)
{
    /* fallocate alone both sizes the segment and commits its pages; a signal may cut it short. */
    int r;
    do
        r = fallocate(fd, 0, (off_t)offset, (off_t)size) < 0 ? -errno : 0;
    while (r == -EINTR);
    return r;
}

int shm_grow(int fd, size_t size)
{
    return may_reach(size) ? shm_commit(fd, 0, size) : -EFBIG;
}

int shm_extend(int fd, size_t size)
{
    return may_reach(size) ? shm_commit(fd, size - 1, 1) : -EFBIG;
}

static int map(int fd, size_t size, int protection, void **ret_memory)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size < 0 || (size_t)st.st_size < size)
        return -EINVAL;
    void *memory = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    *ret_memory = memory;
    return 0;
}

int shm_map(int fd, size_t size, void **ret_memory)
{
    return map(fd, size, PROT_READ | PROT_WRITE, ret_memory);
}

int shm_map_readonly(int fd, size_t size, const void **ret_memory)
{
    void *memory;
    int r = map(fd, size, PROT_READ, &memory);
    if (r == 0)
        *ret_memory = memory;
    return r;
}

int shm_seal_size(int fd)
{
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ? -errno : 0;
}

int shm_seal_content(int fd)
{
    return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ? -errno : 0;
}
