/* SPDX-License-Identifier: MIT */
/* See folder.h. Of each file:
 *
 *   new ──looks the same again──▶ read ──looks otherwise──▶ changing ──looks the same again──▶ read
 *                                   └──missing──▶ missing once ──missing again──▶ forgotten
 *
 * How a file looks is one number, a hash of inode, size, mode and times, which are only compared for being
 * equal. A write into an existing file does not change the folder's own times, so each file is looked at: 1
 * ms for a thousand. inotify says nothing of what other hosts do on a network file system.
 *
 * Trouble of our own (no descriptor, no memory, a disk that fails) is no change: the file is read at the next
 * look. */

#include "gateway/fleet/folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/hash.h"
#include "common/log.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct folder_file {
    char name[NAME_MAX + 1];
    uint64_t seen, read;     /* how it looked at the last look, and when it was read; 0: never */
    bool found;              /* at this look */
    bool missed;             /* at the last one */
    bool counts;             /* `file` was read */
    bool troubled;           /* it was logged that it cannot be read for now */
    bool doubled;            /* it was logged that another one has its address or key */
    struct member_file file; /* as last read whole */
    UT_hash_handle hh;
};

static bool is_skipped(const char *name)
{
    static const char secret[] = "_secret";
    size_t len = strlen(name), tail = sizeof secret - 1;
    return name[0] == '.' || (len >= tail && strcmp(name + len - tail, secret) == 0);
}

static bool is_our_trouble(int r)
{
    return r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EIO || r == -EINTR || r == -ESTALE;
}

/* NULL, with errno and a reason: it cannot be read, or not only its owner may write it. */
static DIR *open_folder(const char *path, struct error *err)
{
    struct stat status;
    DIR *dir = opendir(path);
    if (!dir || fstat(dirfd(dir), &status) < 0) {
        error_set(err, -errno, "fleet: %s: %s", path, strerror(errno));
    } else if (status.st_mode & (S_IWGRP | S_IWOTH)) {
        error_set(
            err, -EPERM,
            "fleet: the group of %s or others can write to it (mode %04o) and so redirect prompts: chmod "
            "go-w %s",
            path, (unsigned)status.st_mode & 07777, path);
        errno = EPERM;
    } else {
        return dir;
    }
    int r = errno;
    if (dir)
        closedir(dir);
    errno = r;
    return NULL;
}

int folder_check(const char *path, struct error *err)
{
    DIR *dir = open_folder(path, err);
    if (!dir)
        return -errno;
    closedir(dir);
    return 0;
}

static uint64_t look_of(const struct stat *status)
{
    const uint64_t words[] = {status->st_dev,
                              status->st_ino,
                              status->st_mode,
                              (uint64_t)status->st_size,
                              (uint64_t)status->st_mtim.tv_sec,
                              (uint64_t)status->st_mtim.tv_nsec,
                              (uint64_t)status->st_ctim.tv_sec,
                              (uint64_t)status->st_ctim.tv_nsec};
    uint64_t look = hash64(words, sizeof words, 0);
    return look != 0 ? look : 1;
}

/* The file's entry, a new one if there is none; NULL when out of memory. */
static struct folder_file *entry_of(struct folder *folder, const char *name)
{
    struct folder_file *file;
    HASH_FIND_STR(folder->files, name, file);
    if (file || !(file = calloc(1, sizeof *file)))
        return file;
    snprintf(file->name, sizeof file->name, "%s", name);
    HASH_ADD_STR(folder->files, name, file);
    if (!file->hh.tbl) {
        free(file);
        return NULL;
    }
    return file;
}

/* Reads a file that has settled. False: it has to be tried again. */
static bool read_file(const struct folder *folder, struct folder_file *file)
{
    char path[PATH_MAX];
    struct error err;
    int r = 0;
    if (snprintf(path, sizeof path, "%s/%s", folder->path, file->name) >= PATH_MAX)
        r = error_set(&err, -ENAMETOOLONG, "%.80s…/%.80s: the name is too long", folder->path, file->name);
    else if (!member_file_is_name(file->name))
        r = error_set(&err, -EINVAL, "%s: the name of a member is 1 to %d letters, digits and \"._-\"", path,
                      MEMBER_FILE_MAX_NAME);
    if (r == 0)
        r = member_file_read(path, &file->file, &err);
    if (is_our_trouble(r) || r == -ENOENT) {
        if (r != -ENOENT && !file->troubled)
            log_error("fleet: %s; trying again", err.text);
        file->troubled = r != -ENOENT;
        return false;
    }
    file->troubled = false;
    if (r == 0) {
        file->counts = true;
        file->doubled = false;
    } else {
        log_warn("fleet: %s%s", err.text, file->counts ? "; keeping its previous contents" : "");
    }
    return true;
}

/* 0, or -errno when that is our own trouble. */
static int look_at(struct folder *folder, DIR *dir, const char *name)
{
    struct stat status;
    if (fstatat(dirfd(dir), name, &status, 0) < 0) {
        if (errno == ENOENT || errno == ENOTDIR ||
            errno == ELOOP) /* removed meanwhile, or a link to nowhere */
            return 0;
        return -errno;
    }
    if (S_ISDIR(status.st_mode))
        return 0;
    struct folder_file *file = entry_of(folder, name);
    if (!file)
        return -ENOMEM;
    const uint64_t look = look_of(&status);
    file->found = true;
    file->missed = false;
    if (look != file->read && look == file->seen && read_file(folder, file))
        file->read = look;
    file->seen = look;
    return 0;
}

static void forget(struct folder *folder, struct folder_file *file)
{
    HASH_DEL(folder->files, file);
    free(file);
}

static void forget_missing(struct folder *folder)
{
    struct folder_file *file, *next;
    HASH_ITER(hh, folder->files, file, next)
    {
        if (file->found)
            continue;
        if (file->missed)
            forget(folder, file);
        else
            file->missed = true;
    }
}

static int look_at_all(struct folder *folder, DIR *dir, struct error *err)
{
    struct dirent *entry;
    size_t n = 0;
    int r = 0;
    errno = 0;
    while (r == 0 && (entry = readdir(dir))) {
        if (is_skipped(entry->d_name))
            continue;
        if (++n > FLEET_MEMBERS)
            return error_set(err, -E2BIG, "fleet: %s has more than %d files", folder->path, FLEET_MEMBERS);
        r = look_at(folder, dir, entry->d_name);
        errno = 0;
    }
    if (r == 0)
        r = -errno;
    return r < 0 ? error_set(err, r, "fleet: %s: %s", folder->path, strerror(-r)) : 0;
}

bool folder_look(struct folder *folder)
{
    struct error err;
    struct folder_file *file, *next;
    HASH_ITER(hh, folder->files, file, next)
    {
        file->found = false;
    }
    DIR *dir = open_folder(folder->path, &err);
    int r = dir ? look_at_all(folder, dir, &err) : -errno;
    if (dir)
        closedir(dir);
    if (r == 0)
        forget_missing(folder);
    else if (!folder->troubled)
        log_error("%s; keeping the current members", err.text);
    if (r == 0 && folder->troubled)
        log_info("fleet: %s can be read again", folder->path);
    folder->troubled = r < 0;
    return r == 0;
}

static int by_name(const struct folder_file *a, const struct folder_file *b)
{
    return strcmp(a->name, b->name);
}

/* The member before it that has its address or its key; NULL: none. */
static const struct member *double_of(const struct folder_file *file, const struct member *members, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(members[i].file.connect, file->file.connect) == 0 ||
            strcmp(members[i].file.server_key, file->file.server_key) == 0)
            return &members[i];
    return NULL;
}

int folder_members(struct folder *folder, struct member **ret_members, size_t *ret_n)
{
    size_t n = 0;
    struct folder_file *file;
    struct member *members = calloc(HASH_COUNT(folder->files) + 1, sizeof *members);
    if (!members)
        return -ENOMEM;
    HASH_SORT(folder->files, by_name);
    for (file = folder->files; file; file = file->hh.next) {
        if (!file->counts)
            continue;
        const struct member *other = double_of(file, members, n);
        if (other && !file->doubled)
            log_warn("fleet: %s/%s ignored: %s has the same %s", folder->path, file->name, other->name,
                     strcmp(other->file.connect, file->file.connect) == 0 ? "address" : "key");
        file->doubled = other != NULL;
        if (other)
            continue;
        memcpy(members[n].name, file->name, sizeof members[n].name); /* it is no longer: it counts */
        members[n++].file = file->file;
    }
    *ret_members = members;
    *ret_n = n;
    return 0;
}

void folder_deinit(struct folder *folder)
{
    struct folder_file *file, *next;
    HASH_ITER(hh, folder->files, file, next)
    {
        forget(folder, file);
    }
    *folder = (struct folder){0};
}
