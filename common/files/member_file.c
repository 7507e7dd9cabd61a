/* SPDX-License-Identifier: MIT */
/* See member_file.h.
 *
 * Readers look at the folder while it is written, on other hosts too, so a file appears whole or not at all:
 * it is written as .NAME.part-PID, which readers skip, and renamed. O_TMPFILE would leave nothing behind
 * after a kill, but NFS does not know it. A hidden file that was left behind is replaced by the next process
 * with its number, and harms nobody until then. */

#include "common/files/member_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/config_file.h"
#include "common/files/secret_file.h"
#include "common/number.h"
#include "common/system/listen.h"

#define FILE_MODE 0644 /* whatever the umask is: who can write it decides where prompts go */

bool member_file_is_name(const char *name)
{
    size_t len = strlen(name);
    if (len == 0 || len > MEMBER_FILE_MAX_NAME || name[0] == '.')
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            return false;
    return true;
}

/* ---- reading ---- */

/* tcp://HOST:PORT; streams are on the port after it. */
static int check_endpoint(const char *value, struct error *err)
{
    static const char scheme[] = "tcp://";
    const size_t scheme_len = sizeof scheme - 1;
    const char *host = value + scheme_len, *colon = strrchr(value, ':');
    uint32_t port;
    bool has_host = strncmp(value, scheme, scheme_len) == 0 && colon > host;
    if (!has_host || number_read_u32(colon + 1, 1, 65534, &port, NULL) < 0)
        return error_set(err, -EINVAL,
                         "connect: \"%.80s\" is not tcp://HOST:PORT with a port from 1 to 65534", value);
    if (listen_is_wildcard((struct bytes){host, (size_t)(colon - host)}))
        return error_set(err, -EINVAL, "connect: \"%.80s\" names no host", value);
    return 0;
}

static int take_key(const char *name, const char *value, char ret_key[CERTIFICATE_KEY_LEN + 1],
                    struct error *err)
{
    if (!certificate_is_key(value))
        return error_set(err, -EINVAL, "%s: not a key (%d characters of Z85, in quotes)", name,
                         CERTIFICATE_KEY_LEN);
    memcpy(ret_key, value, CERTIFICATE_KEY_LEN + 1);
    return 0;
}

static int take(void *arg, unsigned line, const char *name, const char *value, struct error *err)
{
    struct member_file *member = arg;
    const struct {
        const char *name;
        char *value;
    } fields[] = {{"connect", member->connect},
                  {"server-key", member->server_key},
                  {"server-key-next", member->server_key_next}};
    size_t i = 0;
    while (i < sizeof fields / sizeof *fields && strcmp(fields[i].name, name) != 0)
        i++;
    if (i == sizeof fields / sizeof *fields)
        return error_set(err, -EINVAL, "unknown name \"%.80s\"", name);
    if (fields[i].value[0])
        return error_set(err, -EINVAL, "%s: already set", name);
    if (i > 0)
        return take_key(name, value, fields[i].value, err);
    if (strlen(value) > MEMBER_FILE_MAX_ENDPOINT)
        return error_set(err, -EINVAL, "connect: longer than %d bytes", MEMBER_FILE_MAX_ENDPOINT);
    int r = check_endpoint(value, err);
    if (r == 0)
        strcpy(member->connect, value);
    return r;
}

int member_file_parse(const void *data, size_t len, const char *path, struct member_file *ret_member,
                      struct error *err)
{
    struct member_file member = {0};
    if (len > MEMBER_FILE_MAX_BYTES)
        return error_set(err, -EINVAL, "%s: larger than %zu bytes", path, MEMBER_FILE_MAX_BYTES);
    if (len == 0)
        return error_set(err, -EINVAL, "%s: empty", path);
    int r = config_file_parse(data, len, path, take, &member, err);
    if (r < 0)
        return r;
    if (((const char *)data)[len - 1] != '\n')
        return error_set(err, -EINVAL, "%s: the last line does not end in a newline", path);
    if (!member.connect[0] || !member.server_key[0])
        return error_set(err, -EINVAL, "%s: %s is missing", path,
                         member.connect[0] ? "server-key" : "connect");
    *ret_member = member;
    return 0;
}

int member_file_read(const char *path, struct member_file *ret_member, struct error *err)
{
    struct secret_file file;
    int r = secret_file_read(path, MEMBER_FILE_MAX_BYTES, &file, err);
    if (r < 0)
        return r;
    if (file.status.st_mode & (S_IWGRP | S_IWOTH))
        r = error_set(err, -EPERM, "%s: its group or others can write it (mode %04o): chmod go-w %s", path,
                      (unsigned)file.status.st_mode & 07777, path);
    else
        r = member_file_parse(file.text, file.len, path, ret_member, err);
    secret_file_deinit(&file);
    return r;
}

/* ---- writing ---- */

static int write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR)
            return -errno;
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* The hidden file's name: FOLDER/.NAME.part-PID. */
static int hidden_name(const char *path, char ret_hidden[PATH_MAX], struct error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int folder = (int)(name - path);
    if (snprintf(ret_hidden, PATH_MAX, "%.*s.%s.part-%d", folder, path, name, getpid()) >= PATH_MAX)
        return error_set(err, -ENAMETOOLONG, "%.80s…: the name is too long", path);
    return 0;
}

int member_file_write(const char *path, const struct member_file *member, struct error *err)
{
    char hidden[PATH_MAX], text[sizeof *member + 128];
    int r = hidden_name(path, hidden, err);
    if (r < 0)
        return r;
    int len = snprintf(text, sizeof text, "connect = \"%s\"\nserver-key = \"%s\"\n", member->connect,
                       member->server_key);
    if (member->server_key_next[0])
        len += snprintf(text + len, sizeof text - (size_t)len, "server-key-next = \"%s\"\n",
                        member->server_key_next);
    int fd = open(hidden, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    r = fchmod(fd, FILE_MODE) < 0 ? -errno : write_all(fd, text, (size_t)len);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(hidden, path) < 0)
        r = -errno;
    if (r == 0)
        return 0;
    unlink(hidden);
    return error_set(err, r, "%s: %s", path, strerror(-r));
}
