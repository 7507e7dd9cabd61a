/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_OUTPUT_FILE_H
#define COMMON_FILES_OUTPUT_FILE_H

/* A file that is written completely or not at all.
 *
 *     struct output_file file;
 *     int r = output_file_open(&file, path, err);
 *     if (r == 0) {
 *         r = output_file_write(&file, data, len, err);
 *         r = r == 0 ? output_file_commit(&file, err) : output_file_discard(&file, r);
 *     }
 *
 * The bytes go to a new file in the same folder, which replaces PATH when they are on disk. Until then PATH
 * keeps its old contents, even after a failure or a kill. Symbolic links are followed. The new file gets the
 * owner, group and permissions of the old one as far as permitted; a file without write permission is not
 * replaced.
 *
 * Anything but a regular file (/dev/null, a pipe, a terminal), and the file that is this process's stdout, is
 * written directly, because it cannot be replaced. */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct output_file {
    int fd;       /* to write to; a regular file may also be mapped, for reading and writing */
    bool direct;  /* written in place: output is visible at once */
    char *target; /* PATH with links resolved; NULL if direct */
    char *part;   /* the new file's name; NULL: it has none yet */
    char *path;   /* as given by the caller, for errors */
};

/* -errno with a reason that names the path; no cleanup is needed in that case. */
int output_file_open(struct output_file *file, const char *path, struct error *err);

/* The same for a caller that must map the file: -EINVAL, without opening it, for anything but a regular
 * file. */
int output_file_open_regular(struct output_file *file, const char *path, struct error *err);

/* Appends all bytes. -errno with a reason. */
int output_file_write(struct output_file *file, const void *data, size_t len, struct error *err);

/* Replaces PATH and closes; after a failure the new file is discarded. -errno with a reason. */
int output_file_commit(struct output_file *file, struct error *err);

/* Discards what was written and closes. Returns `code`, so that a failure can be passed on in one line. */
int output_file_discard(struct output_file *file, int code);

#endif
