/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_TLS_H
#define GATEWAY_HTTP_TLS_H

/* A server's certificate and key: the contents of their files. */

#include "common/error.h"
#include "common/files/secret_file.h"

#define TLS_MOST_BYTES (256u << 10) /* of a file */

struct tls {                             /* zeroed: none */
    struct secret_file certificate, key; /* PEM */
};

/* Reads both files. 0 or -errno with a reason that names the file; -EPERM: others can read the key. Whether
 * the two match is checked when they are used. */
int tls_read(const char *certificate, const char *key, struct tls *ret_tls, struct error *err);

/* Overwrites the key. */
void tls_deinit(struct tls *tls);

#endif
