/* SPDX-License-Identifier: MIT */
/* A new file beside the old one, renamed over it at the end.
 *
 * The new file has no name until it is complete (O_TMPFILE), so that a process that is killed leaves nothing
 * behind; where the file system cannot do that, it is called PATH.part-N from the start. rename(2) is what
 * makes the change one step for everybody else; fsync(2) before it, so that a crash of the machine cannot
 * leave the name without the bytes. */

#include "common/files/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_NAMES 100 /* tried for a new file before giving up */

static int fail(const struct output_file *file, int code, struct error *err)
{
    return error_set(err, code, "%s: %s", file->path, strerror(-code));
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Takes the first free name of the form TARGET.part-N, with the open file `fd` or, for −1, with a new one. 0
 * or a descriptor; -errno. */
static int take_name(struct output_file *file, int fd)
{
    int r = -EEXIST;
    for (int i = 0; i < MAX_NAMES && r == -EEXIST; i++) {
        char link[64], *part;
        if (asprintf(&part, "%s.part-%d", file->target, i) < 0)
            return -ENOMEM;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        r = fd < 0 ? open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)
                   : linkat(AT_FDCWD, link, AT_FDCWD, part, AT_SYMLINK_FOLLOW);
        if (r < 0) {
            r = -errno;
            free(part);
        } else {
            file->part = part;
        }
    }
    return r;
}

static int create_beside(struct output_file *file)
{
    char *copy = strdup(file->target);
    if (!copy)
        return -ENOMEM;
    int fd = open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    int r = fd < 0 ? -errno : fd;
    free(copy);
    /* EISDIR is what a kernel says that does not know the flag. */
    return r == -EOPNOTSUPP || r == -EISDIR ? take_name(file, -1) : r;
}

/* Owner, group and mode of the old file. Where its group cannot be had, ours gets what everybody has. */
static int hand_on_permissions(int fd, const struct stat *old)
{
    mode_t mode = old->st_mode & 0777;
    if (fchown(fd, old->st_uid, old->st_gid) < 0 && fchown(fd, (uid_t)-1, old->st_gid) < 0)
        mode = (mode & 0707) | (mode & 0007) << 3;
    return fchmod(fd, mode) < 0 ? -errno : 0;
}

/* Sets fd, direct and target. */
static int open_target(struct output_file *file, bool regular_only, struct error *err)
{
    struct stat there, own;
    bool exists = stat(file->path, &there) == 0;
    if (!exists && errno != ENOENT)
        return fail(file, -errno, err);
    size_t len = strlen(file->path);
    if (!exists && (len == 0 || file->path[len - 1] == '/'))
        return error_set(err, -ENOENT, "\"%s\" is not a file name", file->path);
    if (!exists && lstat(file->path, &there) == 0)
        return error_set(err, -ENOENT, "%s: dangling symbolic link", file->path);
    bool is_stdout = exists && fstat(STDOUT_FILENO, &own) == 0 && same_file(&there, &own);
    file->direct = is_stdout || (exists && !S_ISREG(there.st_mode));
    if (file->direct && regular_only)
        return error_set(err, -EINVAL, "%s: not a regular file", file->path);
    if (file->direct) {
        file->fd = is_stdout ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                             : open(file->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return file->fd < 0 ? fail(file, -errno, err) : 0;
    }
    if (exists && access(file->path, W_OK) < 0)
        return fail(file, -errno, err);
    file->target = exists ? realpath(file->path, NULL) : strdup(file->path);
    if (!file->target)
        return fail(file, -errno, err);
    int r = create_beside(file);
    if (r < 0)
        return fail(file, r, err);
    file->fd = r;
    r = exists ? hand_on_permissions(file->fd, &there) : 0;
    return r < 0 ? fail(file, r, err) : 0;
}

static int open_output(struct output_file *ret_file, const char *path, bool regular_only, struct error *err)
{
    struct output_file file = {.fd = -1, .path = strdup(path)};
    if (!file.path)
        return error_set(err, -ENOMEM, "%s: out of memory", path);
    int r = open_target(&file, regular_only, err);
    if (r < 0)
        return output_file_discard(&file, r);
    *ret_file = file;
    return 0;
}

int output_file_open(struct output_file *file, const char *path, struct error *err)
{
    return open_output(file, path, false, err);
}

int output_file_open_regular(struct output_file *file, const char *path, struct error *err)
{
    return open_output(file, path, true, err);
}

int output_file_write(struct output_file *file, const void *data, size_t len, struct error *err)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = write(file->fd, at, len);
        if (n < 0 && errno != EINTR)
            return fail(file, -errno, err);
        at += n < 0 ? 0 : n;
        len -= n < 0 ? 0 : (size_t)n;
    }
    return 0;
}

/* A rename is on the disk when its folder is. A folder that cannot be synced is no failure: the bytes are. */
static void sync_folder(const char *target)
{
    char *copy = strdup(target);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(copy);
}

int output_file_commit(struct output_file *file, struct error *err)
{
    int r = 0;
    if (!file->direct) {
        r = fsync(file->fd) < 0 && errno != EINVAL ? -errno : 0; /* EINVAL: this file system knows no fsync */
        if (r == 0 && !file->part)
            r = take_name(file, file->fd);
        if (r == 0 && rename(file->part, file->target) < 0)
            r = -errno;
        if (r < 0)
            return output_file_discard(file, fail(file, r, err));
        free(file->part);
        file->part = NULL;
        sync_folder(file->target);
    }
    /* What a network's file system could not write it may say only now. */
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) < 0 && errno != EINTR)
        r = fail(file, -errno, err);
    return output_file_discard(file, r);
}

int output_file_discard(struct output_file *file, int code)
{
    if (file->part)
        unlink(file->part);
    if (file->fd >= 0)
        close(file->fd);
    free(file->part);
    free(file->target);
    free(file->path);
    *file = (struct output_file){.fd = -1};
    return code;
}
