/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILES_CERTIFICATE_H
#define COMMON_FILES_CERTIFICATE_H

/* CURVE certificates: the text files in which ZeroMQ programs keep their keys.
 *
 *     metadata
 *         name = "…"
 *     curve
 *         public-key = "40 characters of Z85"
 *         secret-key = "40 characters of Z85"
 *
 * A pair is two files: NAME has only the public key and goes to the clients; NAME_secret has both and stays
 * with its owner. czmq and pyzmq use the same format. */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define CERTIFICATE_KEY_LEN 40

struct certificate {
    char public_key[CERTIFICATE_KEY_LEN + 1]; /* zero-terminated Z85; "": none */
    char secret_key[CERTIFICATE_KEY_LEN + 1];
};

/* Whether the text is a key: 40 characters of Z85. */
bool certificate_is_key(const char *text);

/* Reads a certificate from memory. Comments, blank lines, other sections and CRLF are skipped; values may
 * have double quotes, single quotes or none. A text that is just one key is a public key. -EINVAL with
 * `name` and the line if a key is malformed, duplicate or missing. */
int certificate_parse(const void *data, size_t len, const char *name, struct certificate *ret_certificate,
                      struct error *err);

/* The same for a file (see common/files/secret_file.h). Reasons name it. */
int certificate_read(const char *path, struct certificate *ret_certificate, struct error *err);

/* Reads a certificate with its secret key: from the file or, if that has only the public key, from the file
 * with "_secret" added to its name. -EPERM if others can read the secret (secret_file_check_private). */
int certificate_read_secret(const char *path, struct certificate *ret_certificate, struct error *err);

/* Writes FOLDER/NAME (mode 0644) and FOLDER/NAME_secret (mode 0600). Existing files are never overwritten:
 * -EEXIST names one. On failure neither file exists, and neither is ever visible half written. */
int certificate_write(const char *folder, const char *name, const struct certificate *certificate,
                      struct error *err);

#endif
