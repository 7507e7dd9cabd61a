/* SPDX-License-Identifier: MIT */
#ifndef WORKER_START_DIGEST_FILE_H
#define WORKER_START_DIGEST_FILE_H

/* Digests of models that this user's workers have read before, so that the next start need not read all of
 * the files for them: in $XDG_CACHE_HOME/quern/digests, else ~/.cache/quern/digests.
 *
 * That is a table of 1,024 places of 64 bytes, each a file. A key (model/files.h: device, inode, size,
 * times of all files) has one place, and a later one takes it over. So who holds a place open while he reads
 * a stranger's model could spoil that one, and not what is known of others. Each has a sum of its own, so
 * processes read and write without a lock, and what was torn, damaged or written by another version counts as
 * not there. They may be removed at any time. */

#include <stdbool.h>
#include <stdint.h>

/* The descriptor of the key's place, made with its folders where it is not there; -1: there is no home, no
 * right to write, or it could be somebody else's work (another owner, others may write). It is the caller's.
 */
int digest_file_open(const uint8_t key[16]);

/* True: the digest is there. `fd` may be -1, in both. */
bool digest_file_find(int fd, const uint8_t key[16], uint8_t ret_digest[16]);

/* Keeps it. 0 or -errno, of which nothing follows but that the next start reads the files. */
int digest_file_keep(int fd, const uint8_t key[16], const uint8_t digest[16]);

#endif
