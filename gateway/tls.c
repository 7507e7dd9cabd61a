/* SPDX-License-Identifier: MIT */
/* See tls.h. */

#include "gateway/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int fd, char **ret_text)
{
    char *text = malloc(TLS_MOST_BYTES + 1);
    size_t len = 0;
    ssize_t n = text ? 1 : 0;
    while (n > 0 && len <= TLS_MOST_BYTES) {
        n = read(fd, text + len, TLS_MOST_BYTES + 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    int r = !text ? -ENOMEM : n < 0 ? -errno : len > TLS_MOST_BYTES ? -EFBIG : 0;
    if (r < 0) {
        free(text);
        return r;
    }
    text[len] = 0;
    *ret_text = text;
    return 0;
}

static int read_file(const char *path, bool secret, char **ret_text, struct error *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int r = fd < 0 || fstat(fd, &status) < 0 ? -errno : 0;
    if (r == 0 && !S_ISREG(status.st_mode))
        r = error_set(err, -EINVAL, "%s: not a regular file", path);
    else if (r == 0 && secret && (status.st_mode & S_IROTH))
        r = error_set(err, -EPERM, "%s: everybody can read this secret key: chmod o= it", path);
    else if (r < 0 || (r = read_all(fd, ret_text)) < 0)
        error_set(err, r, "%s: %s", path, strerror(-r));
    if (fd >= 0)
        close(fd);
    return r;
}

int tls_read(const char *certificate, const char *key, struct tls *ret_tls, struct error *err)
{
    struct tls tls = {0};
    int r = read_file(certificate, false, &tls.certificate, err);
    if (r == 0)
        r = read_file(key, true, &tls.key, err);
    if (r == 0)
        *ret_tls = tls;
    else
        tls_deinit(&tls);
    return r;
}

void tls_deinit(struct tls *tls)
{
    if (tls->key)
        explicit_bzero(tls->key, strlen(tls->key));
    free(tls->key);
    free(tls->certificate);
    *tls = (struct tls){0};
}
