/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_SHM_H
#define COMMON_SYSTEM_SHM_H

/* Shared memory in memfds: sealable, without a name that could leak, passed by inheritance or descriptor. */

#include <stddef.h>

/* Creates a segment of `size` zero bytes, fully allocated, so that lack of memory is -ENOSPC or -ENOMEM here
 * and not a SIGBUS later; -EFBIG if RLIMIT_FSIZE forbids this size. The descriptor is close-on-exec; only its
 * user can access the segment. */
int shm_create(const char *name, size_t size, int *ret_fd);

/* Enlarges it in the same way; its contents are kept. */
int shm_grow(int fd, size_t size);

/* shm_extend grows it without allocating memory, except for the last page; shm_commit then allocates it part
 * by part, from any number of threads. A later SIGBUS is ruled out only when all parts are committed. */
int shm_extend(int fd, size_t size);
int shm_commit(int fd, size_t offset, size_t size);

/* The text for an error code of these functions: -EFBIG names the limit, all others are strerror's. */
const char *shm_reason(int code);

/* Maps `size` bytes of the segment, for reading and writing or for reading only. -EINVAL: the segment is
 * smaller than `size`. */
int shm_map(int fd, size_t size, void **ret_memory);
int shm_map_readonly(int fd, size_t size, const void **ret_memory);

/* Forbids resizing (F_SEAL_SHRINK | F_SEAL_GROW), so that a mapping can never fault, and adding further
 * seals: a process that inherits the segment cannot stop others from writing to it. */
int shm_seal_size(int fd);

/* Also forbids all further writes. No writable mapping may exist: -EBUSY otherwise. */
int shm_seal_content(int fd);

#endif
