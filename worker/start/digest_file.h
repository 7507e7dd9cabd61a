/* SPDX-License-Identifier: MIT */
#ifndef WORKER_START_DIGEST_FILE_H
#define WORKER_START_DIGEST_FILE_H

/* Digests of models that this user's workers have read before, so that the next start need not read the whole
 * files: in $XDG_CACHE_HOME/quern/digests, else ~/.cache/quern/digests.
 *
 * This is a table of 1,024 places of 64 bytes, each a file. A key (model/files.h: device, inode, size, times
 * of all files) determines the place; a later key may take it over. A process that holds a place open while
 * it reads an untrusted model could corrupt only that place. Each place has a checksum, so processes read and
 * write without locks, and torn, damaged or incompatible places count as missing. They may be removed at any
 * time. */

#include <stdbool.h>
#include <stdint.h>

/* The descriptor of the key's place, created with its folders if missing; the caller closes it; -1 if there
 * is no home directory or no permission, or if others own it or may write to it. */
int digest_file_open(const uint8_t key[16]);

/* True: found. `fd` may be -1, in both functions. */
bool digest_file_find(int fd, const uint8_t key[16], uint8_t ret_digest[16]);

/* Stores it. 0 or -errno; a failure only means that the next start reads the files. */
int digest_file_keep(int fd, const uint8_t key[16], const uint8_t digest[16]);

#endif
