/* SPDX-License-Identifier: MIT */
/* The run directory: where it is, whether it may be trusted, and who holds it. */

#include "common/files/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMOVE_AGAIN    100
#define REMOVE_AGAIN_US 10000

/* `path` holds two paths. */
static int make_absolute(const char *wanted, char path[2 * PATH_MAX], struct error *err)
{
    char here[PATH_MAX];
    while (strncmp(wanted, "./", 2) == 0)
        wanted += 2 + strspn(wanted + 2, "/");
    if (wanted[0] == '/') {
        snprintf(path, 2 * PATH_MAX, "%s", wanted);
        return 0;
    }
    if (!getcwd(here, sizeof here))
        return error_set(err, -errno, "run directory %.200s: the current directory: %s", wanted,
                         strerror(errno));
    const bool is_here = wanted[0] == 0 || strcmp(wanted, ".") == 0;
    snprintf(path, 2 * PATH_MAX, "%s%s%s", here, is_here || strcmp(here, "/") == 0 ? "" : "/",
             is_here ? "" : wanted);
    return 0;
}

/* Only where somebody named it: anyone may have made what is found at the default path. */
static void follow_link(char path[2 * PATH_MAX])
{
    struct stat st;
    char real[PATH_MAX];
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        path[--len] = 0;
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, real))
        strcpy(path, real);
}

int rundir_path(const char *wanted, char ret_path[RUNDIR_PATH_MAX + 1], struct error *err)
{
    char path[2 * PATH_MAX];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int r = wanted ? make_absolute(wanted, path, err) : 0;
    if (r < 0)
        return r;
    if (wanted)
        follow_link(path);
    else if (runtime && runtime[0] == '/')
        snprintf(path, sizeof path, "%s/quern", runtime);
    else
        snprintf(path, sizeof path, "/tmp/quern-%u", (unsigned)getuid());
    if (strlen(path) > RUNDIR_PATH_MAX)
        return error_set(err, -ENAMETOOLONG, "run directory %.80s… is longer than %d bytes", path,
                         RUNDIR_PATH_MAX);
    strcpy(ret_path, path);
    return 0;
}

int rundir_check(const char *path, struct error *err)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return error_set(err, -errno, "run directory %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return error_set(err, -ENOTDIR, "run directory %s is not a directory", path);
    if (st.st_uid != getuid())
        return error_set(err, -EPERM, "run directory %s belongs to user %u, not to the current user (%u)",
                         path, (unsigned)st.st_uid, (unsigned)getuid());
    if ((st.st_mode & 0777) != 0700)
        return error_set(err, -EPERM, "run directory %s has mode %04o; 0700 is required", path,
                         (unsigned)st.st_mode & 0777);
    return 0;
}

int rundir_prepare(const char *path, struct error *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_set(err, -errno, "run directory %s: %s", path, strerror(errno));
    return rundir_check(path, err);
}

int rundir_lock(const char *path, int *ret_fd, struct error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int r = errno == EWOULDBLOCK ? -EBUSY : -errno;
        close(fd);
        if (r == -EBUSY)
            return error_set(err, r, "another pool is running in %s (it holds the lock)", path);
        return error_set(err, r, "%s: %s", path, strerror(-r));
    }
    *ret_fd = fd;
    return 0;
}

int rundir_temporary(char ret_path[RUNDIR_PATH_MAX + 1], struct error *err)
{
    const char *parent = getenv("TMPDIR");
    if (!parent || parent[0] != '/' || strlen(parent) > RUNDIR_PATH_MAX - 16)
        parent = "/tmp";
    char path[RUNDIR_PATH_MAX + 1];
    snprintf(path, sizeof path, "%s/quern-XXXXXX", parent);
    if (!mkdtemp(path))
        return error_set(err, -errno, "temporary run directory %s: %s", path, strerror(errno));
    strcpy(ret_path, path);
    return 0;
}

/* False: it may be possible in a moment. */
static bool try_remove(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
    struct dirent *entry;
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    return rmdir(path) == 0 || (errno != ENOTEMPTY && errno != EEXIST);
}

void rundir_remove(const char *path)
{
    for (int i = 0; !try_remove(path) && i < REMOVE_AGAIN; i++)
        usleep(REMOVE_AGAIN_US);
}
