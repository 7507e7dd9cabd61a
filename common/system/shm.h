/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_SHM_H
#define COMMON_SYSTEM_SHM_H

/* Shared memory as memfds: sealable, without a name to leak, handed on by inheritance or by descriptor. */

#include <stddef.h>

/* Creates a segment of `size` zero bytes, fully allocated, so that a full machine is -ENOSPC or -ENOMEM here
 * and not a SIGBUS later; -EFBIG when the process may not make it so large (RLIMIT_FSIZE). The descriptor is
 * close-on-exec, the segment its user's alone. */
int shm_create(const char *name, size_t size, int *ret_fd);

/* Makes it larger, the same way; what it held stays. */
int shm_grow(int fd, size_t size);

/* Grows it without allocating memory, except for the last page; then the memory is committed part by part,
 * from any number of threads. Only when all parts are committed is a later SIGBUS ruled out. */
int shm_extend(int fd, size_t size);
int shm_commit(int fd, size_t offset, size_t size);

/* The text for an error code of these functions: -EFBIG names the limit, all others are strerror's. */
const char *shm_reason(int code);

/* Maps `size` bytes of the segment, for reading and writing or for reading only. -EINVAL when the segment is
 * smaller than `size`. */
int shm_map(int fd, size_t size, void **ret_memory);
int shm_map_readonly(int fd, size_t size, const void **ret_memory);

/* Forbids resizing (F_SEAL_SHRINK | F_SEAL_GROW), so that a mapping can never fault, and adding further
 * seals: a process that inherits the segment cannot stop others from writing to it. */
int shm_seal_size(int fd);

/* Forbids every further write too. Every writable mapping must be gone: -EBUSY otherwise. */
int shm_seal_content(int fd);

#endif
