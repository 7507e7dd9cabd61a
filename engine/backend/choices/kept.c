/* SPDX-License-Identifier: MIT */
/* A place is two files: "0a3" is the table, written beside it and renamed, so that readers see an old one or
 * a new one; "0a3.lock" is empty, and locked by whoever measures. It stays: whoever removed it would leave
 * two processes with locks on two files. */

#include "engine/backend/choices/kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files/cache_folder.h"
#include "common/hash.h"

#define N_PLACES 1024u
#define MAGIC    0x0131736563696f68ull /* and the version of the file */
#define LOOK_NS  (20 * CLOCK_NS_PER_MS)

struct kept_file {
    uint64_t magic, sum; /* the sum is of the choices */
    struct choices choices;
};

struct path {
    char text[PATH_MAX];
};

static bool path_of(const struct choices_key *key, const char *end, struct path *ret_path)
{
    if (!cache_folder_find("choices", ret_path->text))
        return false;
    const size_t len = strlen(ret_path->text);
    snprintf(ret_path->text + len, sizeof ret_path->text - len, "/%03x%s",
             (unsigned)(hash64(key, sizeof *key, 0) % N_PLACES), end);
    return true;
}

static uint64_t sum_of(const struct choices *choices)
{
    return hash64(choices, sizeof *choices, MAGIC);
}

/* ---- reading ---- */

int kept_parse(const void *bytes, size_t len, struct choices *ret_choices, struct error *err)
{
    const struct kept_file *file = bytes;
    if (len != sizeof *file)
        return error_set(err, -EINVAL, "it has the wrong size");
    if (file->magic != MAGIC)
        return error_set(err, -EINVAL, "it is no table of this version");
    if (file->sum != sum_of(&file->choices))
        return error_set(err, -EINVAL, "its checksum is wrong");
    int r = choices_check(&file->choices, err);
    if (r == 0)
        *ret_choices = file->choices;
    return r;
}

/* Up to `size` bytes; how many there are. */
static size_t read_bytes(int fd, void *bytes, size_t size)
{
    size_t at = 0;
    ssize_t n = 1;
    while (at < size && n > 0) {
        n = read(fd, (uint8_t *)bytes + at, size - at);
        at += n > 0 ? (size_t)n : 0;
    }
    return at;
}

static int read_table(const char *path, struct choices *ret_choices, struct error *why)
{
    struct error reason = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return error_set(why, errno == ENOENT ? -ENOENT : -EINVAL, "%s: %s", path, strerror(errno));
    const size_t size = sizeof(struct kept_file) + 1; /* a byte more than there may be */
    void *bytes = malloc(size);
    int r = bytes ? 0 : -ENOMEM;
    if (r == 0 && !cache_folder_is_ours(fd))
        r = error_set(&reason, -EINVAL, "it is not a regular file that only this user can write to");
    if (r == 0)
        r = kept_parse(bytes, read_bytes(fd, bytes, size), ret_choices, &reason);
    free(bytes);
    close(fd);
    return r < 0 ? error_set(why, r, "%s: %s", path, r == -ENOMEM ? "out of memory" : reason.text) : 0;
}

int kept_find(const struct choices_key *key, struct choices *ret_choices, struct error *why)
{
    struct path path;
    struct choices *found = malloc(sizeof *found);
    if (!found)
        return error_set(why, -EINVAL, "out of memory");
    int r = path_of(key, "", &path) ? read_table(path.text, found, why)
                                    : error_set(why, -ENOENT, "no cache folder");
    if (r == 0 && memcmp(&found->key, key, sizeof *key) != 0)
        r = error_set(why, -ESTALE, "%s: it was measured for another device, driver, build or model",
                      path.text);
    if (r == 0)
        *ret_choices = *found;
    free(found);
    return r;
}

void kept_list(void (*see)(void *arg, const struct choices *choices), void *arg)
{
    struct path folder, path;
    struct error unused;
    struct choices *choices = malloc(sizeof *choices);
    DIR *dir = choices && cache_folder_find("choices", folder.text) ? opendir(folder.text) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strlen(entry->d_name) != 3 || entry->d_name[0] == '.' ||
            snprintf(path.text, sizeof path.text, "%s/%s", folder.text, entry->d_name) >=
                (int)sizeof path.text)
            continue;
        if (read_table(path.text, choices, &unused) == 0)
            see(arg, choices);
    }
    if (dir)
        closedir(dir);
    free(choices);
}

/* ---- locking ---- */

int kept_lock(const struct choices_key *key, uint32_t timeout_ms, bool (*progress)(void *arg), void *arg)
{
    struct path path;
    if (!path_of(key, ".lock", &path))
        return -ENOENT;
    int fd = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return -errno;
    const uint64_t end = clock_ns() + timeout_ms * CLOCK_NS_PER_MS;
    int r = cache_folder_is_ours(fd) ? 0 : -EPERM;
    while (r == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            r = -errno;
        else if (clock_ns() >= end)
            r = -ETIMEDOUT;
        else
            nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        if (progress)
            progress(arg);
    }
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

void kept_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

/* ---- writing ---- */

static int write_whole(int fd, const struct kept_file *file)
{
    for (size_t at = 0; at < sizeof *file;) {
        const ssize_t n = write(fd, (const uint8_t *)file + at, sizeof *file - at);
        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int kept_write(const struct choices *choices, struct error *err)
{
    struct path path, part;
    char end[32];
    snprintf(end, sizeof end, ".%ld", (long)getpid());
    if (!path_of(&choices->key, "", &path) || !path_of(&choices->key, end, &part))
        return error_set(err, -ENOENT, "neither $XDG_CACHE_HOME nor $HOME names a folder");
    struct kept_file *file = calloc(1, sizeof *file);
    if (!file)
        return error_set(err, -ENOMEM, "out of memory");
    *file = (struct kept_file){.magic = MAGIC, .sum = sum_of(choices), .choices = *choices};
    unlink(part.text); /* of a process that died with this number */
    const int fd = open(part.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = fd < 0 ? -errno : write_whole(fd, file);
    if (fd >= 0)
        close(fd);
    if (r == 0 && rename(part.text, path.text) < 0)
        r = -errno;
    if (r < 0 && fd >= 0)
        unlink(part.text);
    free(file);
    return r < 0 ? error_set(err, r, "%s: %s", path.text, strerror(-r)) : 0;
}

void kept_forget(const struct choices_key *key)
{
    struct path path;
    if (path_of(key, "", &path))
        unlink(path.text);
}
