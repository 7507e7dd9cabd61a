/* SPDX-License-Identifier: MIT */
/* Any bytes as a file with secrets, for each of those who read one: it is taken as its bytes in memory are,
 * or whole, or refused with a reason on one line that begins with its name; and of one that was refused
 * nothing is left.
 *
 * An input is a byte whose three lowest bits say whether others may read the file, and its bytes. */

#include "tests/fuzz/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/certificate.h"
#include "common/files/rundir.h"
#include "gateway/http/keys.h"
#include "gateway/http/tls.h"

static char folder[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 8];

static void end(void)
{
    rundir_remove(folder);
}

static void begin(void)
{
    if (rundir_temporary(folder, NULL) < 0)
        abort();
    snprintf(path, sizeof path, "%s/file", folder);
    atexit(end);
}

static void write_file(const uint8_t *data, size_t len, mode_t mode)
{
    unlink(path); /* a file that is cut first is waited for by some file systems when it is closed */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, len) != (ssize_t)len || fchmod(fd, mode) < 0)
        abort();
    close(fd);
}

static void check_reason(int r, const struct error *err)
{
    if (r < 0 && (strncmp(err->text, path, strlen(path)) != 0 || strchr(err->text, '\n')))
        abort();
}

static bool same(const struct certificate *a, const struct certificate *b)
{
    return strcmp(a->public_key, b->public_key) == 0 && strcmp(a->secret_key, b->secret_key) == 0;
}

static void try_certificate(const uint8_t *data, size_t len, mode_t mode)
{
    struct certificate parsed = {0}, read = {0}, secret = {0};
    struct error err = {0};
    const int due = certificate_parse(data, len, path, &parsed, NULL);
    int r = certificate_read(path, &read, &err);
    check_reason(r, &err);
    if ((r < 0) != (due < 0) || !same(&parsed, &read))
        abort();
    r = certificate_read_secret(path, &secret, &err);
    check_reason(r, &err);
    if ((r == 0) != (due == 0 && parsed.secret_key[0] && (mode & 077) == 0))
        abort();
    if (r == 0 ? !same(&secret, &parsed) : secret.public_key[0] || secret.secret_key[0])
        abort();
}

static bool same_key(const struct key *a, const struct key *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->secret, b->secret) == 0 &&
           a->secret_len == b->secret_len && a->most_requests == b->most_requests &&
           a->most_tokens == b->most_tokens;
}

static void try_keys(const uint8_t *data, size_t len, mode_t mode)
{
    struct keys parsed = {0}, read = {0};
    struct error err = {0};
    const int due = keys_parse((struct bytes){data, len}, path, &parsed, NULL);
    int r = keys_read(path, &read, &err);
    check_reason(r, &err);
    if ((r == 0) != (due == 0 && (mode & 07) == 0) || (r < 0 && read.list))
        abort();
    if (r == 0 && read.n != parsed.n)
        abort();
    for (size_t i = 0; i < read.n; i++)
        if (!same_key(&read.list[i], &parsed.list[i]))
            abort();
    keys_deinit(&parsed);
    keys_deinit(&read);
}

static void try_tls(const uint8_t *data, size_t len, mode_t mode)
{
    struct tls tls = {0};
    struct error err = {0};
    const bool good = len <= TLS_MOST_BYTES && !memchr(data, 0, len) && (mode & S_IROTH) == 0;
    int r = tls_read(path, path, &tls, &err);
    check_reason(r, &err);
    if ((r == 0) != good || (r < 0 && (tls.certificate.text || tls.key.text)))
        abort();
    if (r == 0 && (tls.key.len != len || memcmp(tls.key.text, data, len) != 0 || tls.key.text[len] != 0 ||
                   strcmp(tls.certificate.text, tls.key.text) != 0))
        abort();
    tls_deinit(&tls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    if (!folder[0])
        begin();
    const mode_t mode = 0600 | (data[0] & 1 ? 040 : 0) | (data[0] & 2 ? 04 : 0) | (data[0] & 4 ? 01 : 0);
    write_file(data + 1, len - 1, mode);
    try_certificate(data + 1, len - 1, mode);
    try_keys(data + 1, len - 1, mode);
    try_tls(data + 1, len - 1, mode);
    return 0;
}
