/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_OUTPUT_FILE_H
#define COMMON_FILES_OUTPUT_FILE_H

/* A file that is written whole or not at all.
 *
 *     struct output_file file;
 *     int r = output_file_open(&file, path, err);
 *     if (r == 0) {
 *         r = output_file_write(&file, data, len, err);
 *         r = r == 0 ? output_file_commit(&file, err) : output_file_discard(&file, r);
 *     }
 *
 * The bytes go to a new file in the same folder, which takes the place of PATH when they are on the disk.
 * Until then PATH keeps its old contents, also after a failure or a kill. A symbolic link is followed; a file
 * that is replaced hands owner, group and permissions on as far as it may; one that may not be written is not
 * replaced.
 *
 * What is there and is no regular file (/dev/null, a pipe, a terminal), and what our own stdout goes to, is
 * written directly: it cannot be replaced. */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct output_file {
    int fd;       /* to write to; a regular file may be mapped too, for reading and writing */
    bool direct;  /* not a new file: what is written is out at once */
    char *target; /* PATH with links resolved; NULL when direct */
    char *part;   /* the new file's name; NULL while it has none */
    char *path;   /* as the caller said it, for errors */
};

/* -errno with a reason that names the path; nothing is to be cleaned up then. */
int output_file_open(struct output_file *file, const char *path, struct error *err);

/* The same for a caller that needs a regular file, to map it: anything else there is -EINVAL and is not
 * opened. */
int output_file_open_regular(struct output_file *file, const char *path, struct error *err);

/* Writes all of it at the end of what was written. -errno with a reason. */
int output_file_write(struct output_file *file, const void *data, size_t len, struct error *err);

/* Puts the file in its place and closes it; after a failure it is discarded. -errno with a reason. */
int output_file_commit(struct output_file *file, struct error *err);

/* Gives up what was written and closes. Returns `code`, so that a failure can be passed on in one line. */
int output_file_discard(struct output_file *file, int code);

#endif
