/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_SECRET_FILE_H
#define COMMON_FILES_SECRET_FILE_H

/* Small files that hold secrets, read whole: keys and certificates. Their permissions are checked afterwards,
 * with the status of the file that was read. */

#include <stddef.h>
#include <sys/stat.h>

#include "common/error.h"

struct secret_file { /* zeroed: none */
    char *text;      /* [len], followed by a zero */
    size_t len;
    struct stat status; /* of the file that was read, whatever now has its name */
};

/* Reads the file to its end. Only a regular file is accepted (-EINVAL); opening never blocks. At most `most`
 * bytes (-EFBIG), no zero bytes (-EINVAL). -errno with a reason that names the file; on failure the bytes
 * read are overwritten. */
int secret_file_read(const char *path, size_t most, struct secret_file *ret_file, struct error *err);

/* -EPERM if others can read a file of this status: everyone, or the group of a file that the caller owns (a
 * file of another owner may be meant for the group). `holds` describes the contents, for the reason: "a
 * secret key". */
int secret_file_check_private(const struct stat *status, const char *path, const char *holds,
                              struct error *err);

/* Overwrites the text and frees it. */
void secret_file_deinit(struct secret_file *file);

#endif
