/* SPDX-License-Identifier: MIT */
/* Any files in the folder of the keys that may connect: those are let in whose certificate lies there under a
 * name that counts, and nobody else; also after files came and went, and who stayed keeps his number.
 *
 * An input is files: a byte whose bits say when it is there (1: it comes later, 2: it is gone by then) and
 * what it is (the rest, modulo 8: a folder, a pipe, a link to nowhere, or a file), one how long its name is,
 * the name, two how long it is, and its bytes. Those whose names cannot be, or were used, are passed over. */

#include "tests/fuzz/driver.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

#include "broker/books/client_keys.h"
#include "common/files/certificate.h"
#include "common/clock.h"
#include "common/files/rundir.h"

enum { MOST_FILES = 8, A_FOLDER = 0, A_PIPE, A_LINK };

struct file {
    unsigned kind;
    bool later, leaves;
    char name[256];
    const uint8_t *data;
    size_t len;
    bool there;
    uint32_t number; /* of its key, when it was looked at last; 0: it had none */
};

static char folder[RUNDIR_PATH_MAX + 1];
static int folder_fd;

static void end(void)
{
    rundir_remove(folder);
}

static void begin(void)
{
    if (rundir_temporary(folder, NULL) < 0 ||
        (folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        abort();
    atexit(end);
}

/* ---- the folder ---- */

static void put(struct file *file)
{
    file->there = true;
    if (file->kind == A_FOLDER && mkdirat(folder_fd, file->name, 0700) < 0)
        abort();
    if (file->kind == A_PIPE && mkfifoat(folder_fd, file->name, 0600) < 0)
        abort();
    if (file->kind == A_LINK && symlinkat("nowhere/at/all", folder_fd, file->name) < 0)
        abort();
    if (file->kind <= A_LINK)
        return;
    int fd = openat(folder_fd, file->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, file->data, file->len) != (ssize_t)file->len)
        abort();
    close(fd);
}

static void take(struct file *file)
{
    if (file->there && unlinkat(folder_fd, file->name, file->kind == A_FOLDER ? AT_REMOVEDIR : 0) < 0)
        abort();
    file->there = false;
}

/* ---- who is let in ---- */

/* Whether the file lets somebody in. */
static bool admits(const struct file *file, uint8_t ret_bytes[CLIENT_KEY_BYTES])
{
    static const char secret[] = "_secret";
    struct certificate certificate;
    const size_t len = strlen(file->name), tail = sizeof secret - 1;
    return file->there && file->kind > A_LINK && file->name[0] != '.' &&
           (len < tail || strcmp(file->name + len - tail, secret) != 0) &&
           certificate_parse(file->data, file->len, file->name, &certificate, NULL) == 0 &&
           zmq_z85_decode(ret_bytes, certificate.public_key);
}

static bool has_file(const struct client_key *key, const struct file *files, unsigned n)
{
    uint8_t bytes[CLIENT_KEY_BYTES];
    for (unsigned i = 0; i < n; i++)
        if (admits(&files[i], bytes) && memcmp(bytes, key->bytes, sizeof bytes) == 0 &&
            strncmp(key->name, files[i].name, CLIENT_KEY_NAME - 1) == 0)
            return true;
    return false;
}

static void check(const struct client_keys *keys, struct file *files, unsigned n)
{
    uint8_t bytes[CLIENT_KEY_BYTES];
    struct client_key *key, *next;
    HASH_ITER(by_bytes, keys->by_bytes, key, next)
    {
        if (!has_file(key, files, n) || key->number == 0 || client_keys_of(keys, key->number) != key)
            abort();
    }
    if (HASH_CNT(by_bytes, keys->by_bytes) != HASH_CNT(by_number, keys->by_number))
        abort();
    for (unsigned i = 0; i < n; i++) {
        if (!admits(&files[i], bytes))
            continue;
        key = client_keys_find(keys, bytes);
        if (!key || (files[i].number > 0 && files[i].number != key->number))
            abort();
        files[i].number = key->number;
    }
}

static void change(struct client_keys *keys, struct file *files, unsigned n)
{
    const unsigned before = HASH_CNT(by_bytes, keys->by_bytes);
    uint64_t now = 0;
    bool any_gone = false;
    for (unsigned i = 0; i < n; i++) {
        if (files[i].leaves)
            take(&files[i]);
        else if (files[i].later)
            put(&files[i]);
    }
    for (int looks = 0; looks < 3; looks++) /* it is read once it was found the same twice */
        any_gone |= client_keys_look(keys, now += CLOCK_NS_PER_S);
    if (HASH_CNT(by_bytes, keys->by_bytes) < before && !any_gone)
        abort();
}

/* ---- the input ---- */

static bool is_used(const struct file *files, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(files[i].name, name) == 0)
            return true;
    return false;
}

/* The next file of the input; what is behind it. False in *ret_good: it cannot be. */
static size_t read_file(const uint8_t *data, size_t len, struct file *ret_file, bool *ret_good)
{
    const size_t name_len = data[1] < len - 2 ? data[1] : len - 2;
    size_t at = 2 + name_len;
    *ret_file = (struct file){
        .kind = (data[0] >> 2) % 8, .later = data[0] & 1, .leaves = (data[0] & 1) == 0 && (data[0] & 2)};
    memcpy(ret_file->name, data + 2, name_len);
    *ret_good = name_len > 0 && strlen(ret_file->name) == name_len && !strchr(ret_file->name, '/') &&
                strcmp(ret_file->name, ".") != 0 && strcmp(ret_file->name, "..") != 0;
    if (len - at >= 2) {
        ret_file->len = data[at] | (size_t)data[at + 1] << 8;
        at += 2;
    }
    ret_file->len = ret_file->len < len - at ? ret_file->len : len - at;
    ret_file->data = data + at;
    return at + ret_file->len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct file files[MOST_FILES];
    struct client_keys keys;
    struct error err;
    unsigned n = 0;
    if (!folder[0])
        begin();
    for (size_t at = 0; len - at >= 2 && n < MOST_FILES;) {
        bool good;
        at += read_file(data + at, len - at, &files[n], &good);
        n += good && !is_used(files, n, files[n].name);
    }
    for (unsigned i = 0; i < n; i++)
        if (!files[i].later)
            put(&files[i]);
    if (client_keys_init(&keys, folder, 0, &err) < 0)
        abort();
    check(&keys, files, n);
    change(&keys, files, n);
    check(&keys, files, n);
    client_keys_deinit(&keys);
    for (unsigned i = 0; i < n; i++)
        take(&files[i]);
    return 0;
}
