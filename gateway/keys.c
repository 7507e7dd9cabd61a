/* SPDX-License-Identifier: MIT */
/* See keys.h. */

#include "gateway/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/number.h"

#define FILE_BYTES_MOST (4u << 20)

static int take_bound(struct key *key, const char *word, struct error *err)
{
    const char *value = strchr(word, '=');
    size_t len = value ? (size_t)(value - word) : 0;
    if (value && len == 8 && memcmp(word, "requests", len) == 0)
        return number_read(value + 1, 1, INT64_MAX, &key->most_requests, err);
    if (value && len == 6 && memcmp(word, "tokens", len) == 0)
        return number_read(value + 1, 1, INT64_MAX, &key->most_tokens, err);
    return error_set(err, -EINVAL, "\"%.40s\" is neither requests=N nor tokens=N", word);
}

/* The line is zero-terminated and may be changed. */
static int take_line(char *line, struct key *ret_key, struct error *err)
{
    static const char blank[] = " \t\r";
    char *rest, *name = strtok_r(line, blank, &rest), *secret = strtok_r(NULL, blank, &rest), *word;
    struct key key = {.name = ""};
    int r = 0;
    if (!secret)
        return error_set(err, -EINVAL, "a line is NAME KEY [requests=N] [tokens=N]");
    if (strlen(name) >= sizeof key.name)
        return error_set(err, -EINVAL, "the name has more than %zu bytes", sizeof key.name - 1);
    key.secret_len = strlen(secret);
    if (key.secret_len < KEY_BYTES_LEAST || key.secret_len > KEY_BYTES_MOST)
        return error_set(err, -EINVAL, "the key of %s has %zu bytes; %d to %d are possible", name,
                         key.secret_len, KEY_BYTES_LEAST, KEY_BYTES_MOST);
    strcpy(key.name, name);
    strcpy(key.secret, secret);
    while (r == 0 && (word = strtok_r(NULL, blank, &rest)))
        r = take_bound(&key, word, err);
    if (r == 0)
        *ret_key = key;
    return r;
}

static int add(struct keys *keys, const struct key *key, struct error *err)
{
    if (keys_find(keys, (struct bytes){key->secret, key->secret_len}))
        return error_set(err, -EINVAL, "the key of %s stands there already", key->name);
    if (keys->n >= KEYS_MOST)
        return error_set(err, -EINVAL, "there are more than %d keys", KEYS_MOST);
    struct key *list = reallocarray(keys->list, keys->n + 1, sizeof *list);
    if (!list)
        return error_set(err, -ENOMEM, "out of memory");
    keys->list = list;
    list[keys->n++] = *key;
    return 0;
}

int keys_parse(struct bytes text, const char *name, struct keys *ret_keys, struct error *err)
{
    struct keys keys = {0};
    const char *at = text.data, *end = at + text.len;
    int r = 0;
    for (unsigned number = 1; r == 0 && at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((newline ? newline : end) - at);
        char line[1024];
        struct key key;
        if (memchr(at, 0, len) || len >= sizeof line) {
            r = error_set(err, -EINVAL, "the line is too long, or has a NUL");
        } else {
            memcpy(line, at, len);
            line[len] = 0;
            if (line[strspn(line, " \t\r")] && line[strspn(line, " \t")] != '#') {
                r = take_line(line, &key, err);
                if (r == 0)
                    r = add(&keys, &key, err);
            }
        }
        if (r < 0)
            error_prefix(err, r, "%s:%u", name, number);
        at = newline ? newline + 1 : end;
    }
    if (r == 0 && keys.n == 0)
        r = error_set(err, -EINVAL, "%s: there is no key in it", name);
    if (r < 0)
        keys_deinit(&keys);
    else
        *ret_keys = keys;
    return r;
}

int keys_read(const char *path, struct keys *ret_keys, struct error *err)
{
    struct stat status;
    struct buffer text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe is not waited for */
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    int r = fstat(fd, &status) < 0 ? error_set(err, -errno, "%s: %s", path, strerror(errno)) : 0;
    if (r == 0 && !S_ISREG(status.st_mode))
        r = error_set(err, -EINVAL, "%s: not a regular file", path);
    else if (r == 0 && (status.st_mode & S_IRWXO))
        r = error_set(err, -EPERM, "%s can be read by everybody; its mode must be 0600 or 0640", path);
    else if (r == 0 && status.st_size > FILE_BYTES_MOST)
        r = error_set(err, -EINVAL, "%s has more than %u bytes", path, FILE_BYTES_MOST);
    if (r == 0)
        r = buffer_reserve(&text, (size_t)status.st_size + 1);
    while (r == 0) {
        ssize_t n = read(fd, text.data + text.len, text.cap - text.len);
        if (n < 0)
            r = error_set(err, -errno, "%s: %s", path, strerror(errno));
        if (n <= 0)
            break;
        text.len += (size_t)n;
    }
    close(fd);
    if (r == 0)
        r = keys_parse((struct bytes){text.data, text.len}, path, ret_keys, err);
    if (text.data)
        explicit_bzero(text.data, text.cap);
    buffer_deinit(&text);
    return r;
}

void keys_deinit(struct keys *keys)
{
    if (keys->list)
        explicit_bzero(keys->list, keys->n * sizeof *keys->list);
    free(keys->list);
    *keys = (struct keys){0};
}

struct key *keys_find(const struct keys *keys, struct bytes secret)
{
    char padded[KEY_BYTES_MOST + 1] = "";
    struct key *found = NULL;
    if (secret.len > KEY_BYTES_MOST)
        return NULL;
    if (secret.len > 0)
        memcpy(padded, secret.data, secret.len);
    for (size_t i = 0; i < keys->n; i++) {
        const volatile char *theirs = keys->list[i].secret;
        unsigned differs = keys->list[i].secret_len != secret.len;
        for (size_t j = 0; j < sizeof padded; j++)
            differs |= (unsigned)(unsigned char)(theirs[j] ^ padded[j]);
        if (!differs)
            found = &keys->list[i];
    }
    explicit_bzero(padded, sizeof padded);
    return found;
}

int key_take(struct key *key, uint64_t tokens, struct refusal *refusal)
{
    int r = 0;
    if (!key)
        return 0;
    if (key->most_requests && key->requests >= key->most_requests)
        r = refuse(refusal, 429, "rate_limit_exceeded", NULL,
                   "%llu requests of this key are being answered already", (unsigned long long)key->requests);
    else if (key->most_tokens && tokens > key->most_tokens)
        r = refuse(refusal, 400, "too_many_tokens", NULL,
                   "the request asks for %llu tokens; this key may have %llu at once",
                   (unsigned long long)tokens, (unsigned long long)key->most_tokens);
    else if (key->most_tokens && tokens > key->most_tokens - key->tokens)
        r = refuse(refusal, 429, "rate_limit_exceeded", NULL,
                   "%llu tokens are asked for with this key already; it may have %llu at once",
                   (unsigned long long)key->tokens, (unsigned long long)key->most_tokens);
    if (r != 0) {
        refusal->retry_after_s = refusal->status == 429;
        return r;
    }
    key->requests++;
    key->tokens += tokens;
    return 0;
}

void key_release(struct key *key, uint64_t tokens)
{
    if (!key)
        return;
    key->requests--;
    key->tokens -= tokens;
}
