/* SPDX-License-Identifier: MIT */
/* Stands between a program and mmap (ld --wrap), and is somebody else who has the same file: as soon as a
 * model is mapped, it is truncated to its half, emptied, or written to, as QUERN_FILE_IS says. Linked into
 * programs of the tests only. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);

static void change(const char *path, size_t size)
{
    const char *how = getenv("QUERN_FILE_IS");
    if (how && strcmp(how, "truncated") == 0 && truncate(path, (off_t)size / 2) < 0)
        abort();
    if (how && strcmp(how, "emptied") == 0 && truncate(path, 0) < 0)
        abort();
    if (how && strcmp(how, "written") == 0 &&
        utimensat(AT_FDCWD, path, (const struct timespec[]){{1, 0}, {1, 0}}, 0) < 0)
        abort();
}

static void *changed(void *memory, size_t size, int protection, int flags, int fd)
{
    char link[64], path[4096];
    if (memory == MAP_FAILED || protection != PROT_READ || !(flags & MAP_SHARED) || fd < 0)
        return memory;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n > 5 && memcmp(path + n - 5, ".gguf", 5) == 0) {
        path[n] = 0;
        change(path, size);
    }
    return memory;
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return changed(__real_mmap(at, size, protection, flags, fd, offset), size, protection, flags, fd);
}

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return changed(__real_mmap64(at, size, protection, flags, fd, offset), size, protection, flags, fd);
}
