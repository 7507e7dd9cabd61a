/* SPDX-License-Identifier: MIT */
/* See fleet_secret.h. */

#include "common/files/fleet_secret.h"

#include <errno.h>
#include <string.h>

#include "common/files/secret_file.h"
#include "common/hash.h"

static int parse(const struct secret_file *file, const char *path, struct fleet_secret *ret_secret,
                 struct error *err)
{
    const size_t len = strcspn(file->text, "\r\n");
    const size_t rest = strspn(file->text + len, "\r\n");
    if (len + rest != file->len)
        return error_set(err, -EINVAL,
                         "%s: more than one line, or a NUL byte; the secret of a fleet is one line", path);
    for (size_t i = 0; i < len; i++)
        if (file->text[i] <= ' ' || file->text[i] > '~')
            return error_set(err, -EINVAL, "%s: a space or an unprintable character at byte %zu", path, i);
    if (len < FLEET_SECRET_LEAST || len > FLEET_SECRET_MOST)
        return error_set(err, -EINVAL, "%s: the secret has %zu characters; %d to %d are allowed", path, len,
                         FLEET_SECRET_LEAST, FLEET_SECRET_MOST);
    *ret_secret = (struct fleet_secret){.seed = hash64(file->text, len, 0)};
    memcpy(ret_secret->text, file->text, len);
    return 0;
}

int fleet_secret_read(const char *path, struct fleet_secret *ret_secret, struct error *err)
{
    struct secret_file file;
    int r = secret_file_read(path, 2 * FLEET_SECRET_MOST, &file, err);
    if (r < 0)
        return r;
    r = secret_file_check_private(&file.status, path, "the secret of a fleet", err);
    if (r == 0)
        r = parse(&file, path, ret_secret, err);
    secret_file_deinit(&file);
    return r;
}

bool fleet_secret_is(const struct fleet_secret *secret, const void *text, size_t len)
{
    const volatile char *ours = secret->text, *theirs = text;
    unsigned differs = 0;
    if (len == 0 || strlen(secret->text) != len)
        return false;
    for (size_t i = 0; i < len; i++)
        differs |= (unsigned char)ours[i] ^ (unsigned char)theirs[i];
    return differs == 0;
}
