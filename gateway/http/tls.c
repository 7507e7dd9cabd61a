/* SPDX-License-Identifier: MIT */
/* See tls.h. */

#include "gateway/http/tls.h"

#include <errno.h>

int tls_read(const char *certificate, const char *key, struct tls *ret_tls, struct error *err)
{
    struct tls tls = {0};
    int r = secret_file_read(certificate, TLS_MOST_BYTES, &tls.certificate, err);
    if (r == 0)
        r = secret_file_read(key, TLS_MOST_BYTES, &tls.key, err);
    if (r == 0 && (tls.key.status.st_mode & S_IROTH))
        r = error_set(err, -EPERM, "%s: everyone can read this private key: chmod o= %s", key, key);
    if (r == 0)
        *ret_tls = tls;
    else
        tls_deinit(&tls);
    return r;
}

void tls_deinit(struct tls *tls)
{
    secret_file_deinit(&tls->certificate);
    secret_file_deinit(&tls->key);
}
