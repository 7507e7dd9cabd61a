/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_MEMBER_FILE_H
#define COMMON_FILES_MEMBER_FILE_H

/* A file that says where to reach one pool of a fleet. A fleet is a folder of such files; a file's name is
 * the pool's name (docs/FLEET.md). A pool writes its own (`quern serve --member`), people or other programs
 * may write others, and gateways read them.
 *
 *     connect = "tcp://HOST:PORT"
 *     server-key = "40 characters of Z85"
 *     server-key-next = "…"     the key that will soon replace it; optional
 *
 * The syntax is that of quern.conf. Since '#' is a character of Z85, keys must be in quotes. Unknown and
 * repeated names are errors, and so is a last line without a newline: it may be truncated. */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/files/certificate.h"

#define MEMBER_FILE_MAX_BYTES    ((size_t)4 << 10)
#define MEMBER_FILE_MAX_ENDPOINT 255
#define MEMBER_FILE_MAX_NAME     64

struct member_file {                            /* zeroed: empty */
    char connect[MEMBER_FILE_MAX_ENDPOINT + 1]; /* the endpoint for clients; streams are on the next port */
    char server_key[CERTIFICATE_KEY_LEN + 1];   /* Z85 */
    char server_key_next[CERTIFICATE_KEY_LEN + 1]; /* "": none */
};

/* Whether a file of this name belongs to a pool: 1 to 64 letters, digits and "._-", no dot at the start. */
bool member_file_is_name(const char *name);

/* Parses the contents of a file; `path` is for error texts. 0; -EINVAL with the path and, if possible, the
 * line; -ENOMEM. */
int member_file_parse(const void *data, size_t len, const char *path, struct member_file *ret_member,
                      struct error *err);

/* Reads a file, which must be regular and not writable by its group or others (-EPERM). Also -errno if it
 * cannot be read. */
int member_file_read(const char *path, struct member_file *ret_member, struct error *err);

/* Writes PATH atomically: under a hidden name in the same folder, then renamed. Replaces an existing file. On
 * failure PATH is unchanged: -errno with a reason. */
int member_file_write(const char *path, const struct member_file *member, struct error *err);

#endif
