/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_CERTIFICATE_H
#define COMMON_FILES_CERTIFICATE_H

/* CURVE certificates: the text files in which programs that speak ZeroMQ keep their keys.
 *
 *     metadata
 *         name = "…"
 *     curve
 *         public-key = "40 characters of Z85"
 *         secret-key = "40 characters of Z85"
 *
 * A pair is two files: NAME, which has the public key alone and goes to the clients, and NAME_secret, which
 * has both and stays with its owner. czmq and pyzmq write and read the same. */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define CERTIFICATE_KEY_LEN 40

struct certificate {
    char public_key[CERTIFICATE_KEY_LEN + 1]; /* zero-terminated Z85; "" where there is none */
    char secret_key[CERTIFICATE_KEY_LEN + 1];
};

/* Whether the text is a key: 40 characters of Z85. */
bool certificate_is_key(const char *text);

/* Reads a certificate out of memory. Comments, blank lines, other sections and CRLF are passed over; values
 * may stand in double quotes, single quotes or none. A text that is one key and nothing else is a public key.
 * -EINVAL with `name` and the line, when a key is not one, comes twice, or none is there. */
int certificate_parse(const void *data, size_t len, const char *name, struct certificate *ret_certificate,
                      struct error *err);

/* The same of a file (common/files/secret_file.h says which). Its name is in every reason. */
int certificate_read(const char *path, struct certificate *ret_certificate, struct error *err);

/* Reads a certificate with its secret key: from the file, or, where that holds only the public one, from the
 * file beside it whose name has "_secret" added. -EPERM when others can read the secret: everyone, or the
 * group of a file that the caller owns (a file of another owner may be meant for the group). */
int certificate_read_secret(const char *path, struct certificate *ret_certificate, struct error *err);

/* Writes FOLDER/NAME (mode 0644) and FOLDER/NAME_secret (mode 0600). What is there is never overwritten:
 * -EEXIST names it. Neither file is there on failure, and none is ever there half written. */
int certificate_write(const char *folder, const char *name, const struct certificate *certificate,
                      struct error *err);

#endif
