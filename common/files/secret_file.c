/* SPDX-License-Identifier: MIT */
/* See secret_file.h.
 *
 * The room is taken at once, for the largest file that is possible: a buffer that grew would leave a copy of
 * the secret behind at each step, in memory that was freed. Pages of it that nothing was read to cost
 * nothing. */

#include "common/files/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Its room has a byte more than may be used: for one too many, or the zero at the end. */
static int read_all(int fd, size_t most, struct secret_file *file)
{
    ssize_t n = 1;
    file->text = malloc(most + 1);
    if (!file->text)
        return -ENOMEM;
    while (n != 0 && file->len <= most) {
        n = read(fd, file->text + file->len, most + 1 - file->len);
        if (n < 0 && errno != EINTR)
            return -errno;
        file->len += n > 0 ? (size_t)n : 0;
    }
    if (file->len > most)
        return -EFBIG;
    file->text[file->len] = 0;
    return 0;
}

int secret_file_read(const char *path, size_t most, struct secret_file *ret_file, struct error *err)
{
    struct secret_file file = {0};
    /* A pipe is not waited for, and a terminal does not become ours. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int r = fd < 0 || fstat(fd, &file.status) < 0 ? -errno : 0;
    if (r == 0 && !S_ISREG(file.status.st_mode))
        r = error_set(err, -EINVAL, "%s: not a regular file", path);
    else if (r < 0 || (r = read_all(fd, most, &file)) < 0)
        r == -EFBIG ? error_set(err, r, "%s is larger than %zu bytes", path, most)
                    : error_set(err, r, "%s: %s", path, strerror(-r));
    else if (memchr(file.text, 0, file.len))
        r = error_set(err, -EINVAL, "%s contains a zero byte", path);
    if (fd >= 0)
        close(fd);
    if (r == 0)
        *ret_file = file;
    else
        secret_file_deinit(&file);
    return r;
}

int secret_file_check_private(const struct stat *status, const char *path, const char *holds,
                              struct error *err)
{
    const mode_t others = status->st_uid == geteuid() ? 0077 : 0007;
    if (status->st_mode & others)
        return error_set(err, -EPERM, "%s holds %s and others can read it (mode %04o): chmod 600 %s", path,
                         holds, (unsigned)status->st_mode & 0777, path);
    return 0;
}

void secret_file_deinit(struct secret_file *file)
{
    if (file->text)
        explicit_bzero(file->text, file->len);
    free(file->text);
    *file = (struct secret_file){0};
}
