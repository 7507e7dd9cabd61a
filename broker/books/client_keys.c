/* SPDX-License-Identifier: MIT */
/* See client_keys.h.
 *
 *   unchanged ──looks otherwise──▶ changing ──looks the same again──▶ read ──▶ unchanged
 *                                     ▲ │
 *                                     └─┘ looks otherwise
 *
 * How the folder looks is one number: a sum over its files of a hash of name, inode, size and times. So an
 * edit in place, a rename and a change of mode are all seen, where a watch (inotify) would miss what another
 * machine does to a shared folder. Looking costs a stat for each file, a millisecond or two for a thousand.
 *
 * Trouble of our own (no descriptor, no memory, a disk that fails) is nobody's key taken away: the folder is
 * then read at the next look. */

#include "broker/books/client_keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

#include "common/files/certificate.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"

#define GONE 1 /* how a folder looks that is not there */

/* ---- the table ---- */

struct client_key *client_keys_find(const struct client_keys *keys, const uint8_t bytes[CLIENT_KEY_BYTES])
{
    struct client_key *key;
    HASH_FIND(by_bytes, keys->by_bytes, bytes, CLIENT_KEY_BYTES, key);
    return key;
}

struct client_key *client_keys_of(const struct client_keys *keys, uint32_t number)
{
    struct client_key *key;
    HASH_FIND(by_number, keys->by_number, &number, sizeof number, key);
    return key;
}

static int enter(struct client_keys *keys, const uint8_t bytes[CLIENT_KEY_BYTES], const char *name)
{
    struct client_key *key;
    HASH_FIND(by_bytes, keys->by_bytes, bytes, CLIENT_KEY_BYTES, key);
    if (!key) {
        if (!(key = calloc(1, sizeof *key)))
            return -ENOMEM;
        memcpy(key->bytes, bytes, CLIENT_KEY_BYTES);
        key->number = ++keys->last_number;
        HASH_ADD(by_bytes, keys->by_bytes, bytes, CLIENT_KEY_BYTES, key);
        HASH_ADD(by_number, keys->by_number, number, sizeof key->number, key);
    }
    snprintf(key->name, sizeof key->name, "%s", name);
    key->found = true;
    return 0;
}

static void take_away(struct client_keys *keys, struct client_key *key)
{
    HASH_DELETE(by_bytes, keys->by_bytes, key);
    HASH_DELETE(by_number, keys->by_number, key);
    free(key);
}

/* ---- the folder ---- */

static bool counts(const char *name)
{
    static const char secret[] = "_secret";
    size_t len = strlen(name), tail = sizeof secret - 1;
    return name[0] != '.' && (len < tail || strcmp(name + len - tail, secret) != 0);
}

static bool is_our_trouble(int r)
{
    return r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EIO || r == -EINTR;
}

static int open_folder(const char *folder, DIR **ret_dir, struct error *err)
{
    struct stat st;
    DIR *dir = opendir(folder);
    if (!dir || fstat(dirfd(dir), &st) < 0) {
        int r = error_set(err, -errno, "client-keys: %s: %s", folder, strerror(errno));
        if (dir)
            closedir(dir);
        return r;
    }
    if (st.st_mode & S_IWOTH) {
        closedir(dir);
        return error_set(err, -EPERM,
                         "client-keys: anyone can write to %s (mode %04o) and so gain access: chmod o-w %s",
                         folder, (unsigned)st.st_mode & 07777, folder);
    }
    *ret_dir = dir;
    return 0;
}

/* The next file that counts; NULL at the end. */
static const char *next_file(DIR *dir, struct stat *ret_status)
{
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (!counts(entry->d_name))
            continue;
        if (fstatat(dirfd(dir), entry->d_name, ret_status, 0) < 0) {
            *ret_status = (struct stat){.st_mode = S_IFREG}; /* a link to nowhere: reading it says so */
            return entry->d_name;
        }
        if (!S_ISDIR(ret_status->st_mode))
            return entry->d_name;
    }
    return NULL;
}

/* How the folder looks; never 0. -errno. */
static int look_at(const char *folder, uint64_t *ret_look, struct error *err)
{
    DIR *dir;
    struct stat st;
    const char *name;
    int r = open_folder(folder, &dir, err);
    if (r < 0)
        return r;
    uint64_t look = 0;
    for (size_t n = 0; (name = next_file(dir, &st)); n++) {
        if (n == CLIENT_KEYS_MAX) {
            closedir(dir);
            return error_set(err, -E2BIG, "client-keys: %s has more than %d files", folder, CLIENT_KEYS_MAX);
        }
        uint64_t words[] = {st.st_dev,
                            st.st_ino,
                            st.st_mode,
                            (uint64_t)st.st_size,
                            (uint64_t)st.st_mtim.tv_sec,
                            (uint64_t)st.st_mtim.tv_nsec,
                            (uint64_t)st.st_ctim.tv_sec,
                            (uint64_t)st.st_ctim.tv_nsec};
        look += hash64(words, sizeof words, hash64(name, strlen(name), 0));
    }
    closedir(dir);
    *ret_look = look > GONE ? look : look + GONE + 1;
    return 0;
}

/* 0, also when the file holds no key, which is said; -errno when that may be our own trouble. */
static int read_key(struct client_keys *keys, const char *name, mode_t mode)
{
    char path[PATH_MAX];
    uint8_t bytes[CLIENT_KEY_BYTES];
    struct certificate certificate = {0};
    struct error err;
    int r = 0;
    if (snprintf(path, sizeof path, "%s/%s", keys->folder, name) >= PATH_MAX)
        r = error_set(&err, -ENAMETOOLONG, "%.80s…/%.80s is too long a name", keys->folder, name);
    else if (!S_ISREG(mode)) /* a pipe would be waited for */
        r = error_set(&err, -EINVAL, "%s is not a file", path);
    if (r == 0)
        r = certificate_read(path, &certificate, &err);
    if (r == 0 && !zmq_z85_decode(bytes, certificate.public_key))
        r = error_set(&err, -EINVAL, "%s: invalid public-key", path);
    if (r == 0 && certificate.secret_key[0])
        log_warn("client-keys: %s also holds the secret key, which only the client may have", path);
    explicit_bzero(&certificate, sizeof certificate);
    if (r == 0)
        return enter(keys, bytes, name);
    if (is_our_trouble(r))
        return r;
    log_warn("client-keys: no client can connect: %s", err.text);
    return 0;
}

/* Reads the folder into the table. What failed half-way has only added keys. */
static int read_folder(struct client_keys *keys, bool *ret_any_gone, struct error *err)
{
    DIR *dir;
    struct stat st;
    struct client_key *key, *next;
    const char *name;
    int r = open_folder(keys->folder, &dir, err);
    if (r < 0)
        return r;
    HASH_ITER(by_bytes, keys->by_bytes, key, next)
    {
        key->found = false;
    }
    while (r == 0 && (name = next_file(dir, &st))) {
        r = read_key(keys, name, st.st_mode);
        if (r < 0)
            error_set(err, r, "client-keys: %s/%s: %s", keys->folder, name, strerror(-r));
    }
    closedir(dir);
    if (r < 0)
        return r;
    *ret_any_gone = false;
    HASH_ITER(by_bytes, keys->by_bytes, key, next)
    {
        if (key->found)
            continue;
        log_info("client-keys: %s was removed", key->name);
        take_away(keys, key);
        *ret_any_gone = true;
    }
    unsigned n = HASH_CNT(by_bytes, keys->by_bytes);
    log_info("client-keys: %s has the keys of %u client%s", keys->folder, n, n == 1 ? "" : "s");
    return 0;
}

/* ---- from outside ---- */

int client_keys_init(struct client_keys *keys, const char *folder, uint64_t now, struct error *err)
{
    bool any_gone;
    *keys = (struct client_keys){.folder = folder, .look_ns = now};
    int r = look_at(folder, &keys->read, err);
    if (r == 0)
        r = read_folder(keys, &any_gone, err);
    keys->seen = keys->read;
    if (r < 0)
        client_keys_deinit(keys);
    return r;
}

void client_keys_deinit(struct client_keys *keys)
{
    struct client_key *key, *next;
    HASH_ITER(by_bytes, keys->by_bytes, key, next)
    {
        take_away(keys, key);
    }
    *keys = (struct client_keys){0};
}

/* The folder is gone, and with it everybody. */
static bool take_all_away(struct client_keys *keys)
{
    struct client_key *key, *next;
    bool any = keys->by_bytes != NULL;
    log_error("client-keys: %s is gone: no client can connect", keys->folder);
    HASH_ITER(by_bytes, keys->by_bytes, key, next)
    {
        take_away(keys, key);
    }
    return any;
}

/* What it was said to be changes nothing, and is said once. */
static bool stays(struct client_keys *keys, const struct error *err)
{
    if (!keys->unreadable)
        log_error("%s; the keys are unchanged", err->text);
    keys->unreadable = true;
    keys->seen = 0;
    return false;
}

bool client_keys_look(struct client_keys *keys, uint64_t now)
{
    uint64_t look = GONE;
    bool any_gone = false;
    struct error err;
    if (!keys->folder || now < keys->look_ns)
        return false;
    keys->look_ns = now + CLIENT_KEYS_EVERY_MS * CLOCK_NS_PER_MS;
    int r = look_at(keys->folder, &look, &err);
    if (r < 0 && r != -ENOENT && r != -ENOTDIR)
        return stays(keys, &err);
    bool settled = look == keys->seen;
    keys->seen = look;
    if (look != keys->read && !settled)
        return false;
    if (look != keys->read && look == GONE)
        any_gone = take_all_away(keys);
    else if (look != keys->read && read_folder(keys, &any_gone, &err) < 0)
        return stays(keys, &err);
    keys->unreadable = false;
    keys->read = look;
    return any_gone;
}
