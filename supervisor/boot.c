/* SPDX-License-Identifier: MIT */
/* The persisted boot number.
 *
 * A decimal number and a newline in RUNDIR/boot. It is replaced as a whole (write aside, sync, rename, sync
 * the directory), so a crash leaves the old number or the new one, and the new one once it is used. A file
 * that holds anything else is an error and not a fresh start: a number that falls would let frames of an
 * earlier boot pass for newer ones. For the same reason a file that was removed meanwhile, or put back, does
 * not take a supervisor back behind what it has used. */

#include "supervisor/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/number.h"

static int read_number(const char *path, uint64_t *ret_number, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
        *ret_number = 0;
        return 0;
    }
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    char text[32]; /* more than the largest number has; what fills it is none */
    ssize_t n = read(fd, text, sizeof text);
    int r = -errno;
    close(fd);
    if (n < 0)
        return error_set(err, r, "%s: %s", path, strerror(-r));
    bool is_line = n > 0 && n < (ssize_t)sizeof text && text[n - 1] == '\n' && !memchr(text, 0, (size_t)n);
    if (is_line)
        text[n - 1] = 0;
    /* So many more must be a number too. */
    if (!is_line || number_read(text, 0, UINT64_MAX - BOOT_TAKEN_AT_ONCE, ret_number, NULL) < 0)
        return error_set(err, -EINVAL, "%s does not hold a boot number", path);
    return 0;
}

/* What was renamed in it is on disk. File systems that cannot say so are left alone. */
static int sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
    close(fd);
    return r;
}

static int replace_number(const char *rundir, const char *path, uint64_t number, struct error *err)
{
    char aside[PATH_MAX];
    snprintf(aside, sizeof aside, "%s.new", path);
    int fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", aside, strerror(errno));
    char text[32];
    int len = snprintf(text, sizeof text, "%" PRIu64 "\n", number);
    ssize_t n = write(fd, text, (size_t)len);
    int r = n == len ? 0 : n < 0 ? -errno : -ENOSPC;
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    close(fd);
    if (r == 0 && rename(aside, path) < 0)
        r = -errno;
    if (r == 0)
        r = sync_directory(rundir);
    return r < 0 ? error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int boot_raise(struct boot *boot, const char *rundir, struct error *err)
{
    if (boot->number == boot->last) {
        char path[PATH_MAX - 8];
        snprintf(path, sizeof path, "%s/boot", rundir);
        uint64_t before;
        int r = read_number(path, &before, err);
        if (r == 0 && before < boot->last)
            before = boot->last;
        if (r == 0)
            r = replace_number(rundir, path, before + BOOT_TAKEN_AT_ONCE, err);
        if (r < 0)
            return r;
        *boot = (struct boot){before, before + BOOT_TAKEN_AT_ONCE};
    }
    boot->number++;
    return 0;
}
