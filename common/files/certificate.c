/* SPDX-License-Identifier: MIT */
/* CURVE certificates, line by line.
 *
 * A line that begins at the margin opens a section; the keys are in the section "curve", indented, as
 * "name = value". Keys at the margin are taken too (people write such files by hand), keys in any other
 * section are not: metadata says what it likes. '#' begins a comment only at the start of a line, because Z85
 * has that character, as it has nearly every other but quotes, commas and backslashes.
 *
 * Secrets do not stay behind in memory: what was read of a file is wiped before it is freed. Who may read a
 * file that has one is asked of the file that was read, not of what has its name by now. */

#include "common/files/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/secret_file.h"

#define FILE_MAX_BYTES 65536

static const char z85[] =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
static const char blanks[] = " \t\r\n\v\f";

bool certificate_is_key(const char *text)
{
    return strlen(text) == CERTIFICATE_KEY_LEN && strspn(text, z85) == CERTIFICATE_KEY_LEN;
}

/* ---- reading ---- */

struct reader {
    const char *name;
    int line;
    bool other_section; /* neither at the margin nor in "curve" */
    struct certificate found;
};

/* The file's lines are cut out of it in place: each ends with a zero, without what is blank at its end. */
static char *next_line(char **rest)
{
    char *line = strsep(rest, "\n");
    size_t len = line ? strlen(line) : 0;
    while (len > 0 && strchr(blanks, line[len - 1]))
        line[--len] = 0;
    return line;
}

static int take_key(struct reader *reader, const char *key_name, const char *value, char *ret_key,
                    struct error *err)
{
    size_t len = strcspn(value, blanks);
    if (value[0] == '"' || value[0] == '\'') {
        const char *close = strchr(value + 1, value[0]);
        if (!close)
            return error_set(err, -EINVAL, "%s:%d: unterminated quote after %s", reader->name, reader->line,
                             key_name);
        value++;
        len = (size_t)(close - value);
    }
    if (len != CERTIFICATE_KEY_LEN)
        return error_set(err, -EINVAL, "%s:%d: %s has %zu characters, not %d", reader->name, reader->line,
                         key_name, len, CERTIFICATE_KEY_LEN);
    size_t good = strspn(value, z85);
    if (good < len)
        return error_set(err, -EINVAL, "%s:%d: %s: invalid Z85 at character %zu", reader->name, reader->line,
                         key_name, good + 1);
    if (ret_key[0])
        return error_set(err, -EINVAL, "%s:%d: duplicate %s", reader->name, reader->line, key_name);
    memcpy(ret_key, value, len);
    ret_key[len] = 0;
    return 0;
}

static int take_line(struct reader *reader, const char *line, struct error *err)
{
    const char *text = line + strspn(line, blanks);
    if (*text == 0 || *text == '#')
        return 0;
    size_t len = strcspn(text, " \t=");
    const char *value = text + len + strspn(text + len, blanks);
    bool assigned = *value == '=';
    if (text == line && !assigned) {
        if (certificate_is_key(text))
            return take_key(reader, "public-key", text, reader->found.public_key, err);
        reader->other_section = strcmp(text, "curve") != 0;
        return 0;
    }
    if (reader->other_section && text != line)
        return 0;
    value += assigned;
    value += strspn(value, blanks);
    if (assigned && len == 10 && memcmp(text, "public-key", len) == 0)
        return take_key(reader, "public-key", value, reader->found.public_key, err);
    if (assigned && len == 10 && memcmp(text, "secret-key", len) == 0)
        return take_key(reader, "secret-key", value, reader->found.secret_key, err);
    return 0;
}

static int parse_lines(struct reader *reader, char *text, struct error *err)
{
    char *rest = text, *line;
    int r = 0;
    while (r == 0 && (line = next_line(&rest))) {
        reader->line++;
        r = take_line(reader, line, err);
    }
    /* Who saves a pair of which only the public half is known writes zeros for the other. */
    if (strspn(reader->found.secret_key, "0") == CERTIFICATE_KEY_LEN)
        reader->found.secret_key[0] = 0;
    if (r == 0 && !reader->found.public_key[0])
        r = error_set(err, -EINVAL, "%s: not a CURVE certificate: no public-key", reader->name);
    return r;
}

int certificate_parse(const void *data, size_t len, const char *name, struct certificate *ret_certificate,
                      struct error *err)
{
    struct reader reader = {.name = name};
    if (len > FILE_MAX_BYTES)
        return error_set(err, -EINVAL, "%s: not a CURVE certificate: larger than %d bytes", name,
                         FILE_MAX_BYTES);
    if (len > 0 && memchr(data, 0, len))
        return error_set(err, -EINVAL, "%s: not a CURVE certificate: contains a zero byte", name);
    char *text = strndup(len > 0 ? data : "", len);
    if (!text)
        return error_set(err, -ENOMEM, "out of memory");
    char *begin = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text; /* a byte order mark */
    char *alone = begin + strspn(begin, blanks);
    size_t alone_len = strcspn(alone, blanks);
    int r = 0;
    /* A key and nothing else, before anything else: it may begin with what else begins a comment. */
    if (alone_len == CERTIFICATE_KEY_LEN && strspn(alone, z85) == alone_len &&
        alone[alone_len + strspn(alone + alone_len, blanks)] == 0)
        memcpy(reader.found.public_key, alone, alone_len);
    else
        r = parse_lines(&reader, begin, err);
    if (r == 0)
        *ret_certificate = reader.found;
    explicit_bzero(&reader, sizeof reader);
    explicit_bzero(text, len);
    free(text);
    return r;
}

/* The certificate of the file, and whose that is: `ret_status` NULL: that does not matter. */
static int read_file(const char *path, struct certificate *ret_certificate, struct stat *ret_status,
                     struct error *err)
{
    struct secret_file file;
    int r = secret_file_read(path, FILE_MAX_BYTES, &file, err);
    if (r < 0)
        return r;
    r = certificate_parse(file.text, file.len, path, ret_certificate, err);
    if (ret_status)
        *ret_status = file.status;
    secret_file_deinit(&file);
    return r;
}

int certificate_read(const char *path, struct certificate *ret_certificate, struct error *err)
{
    return read_file(path, ret_certificate, NULL, err);
}

int certificate_read_secret(const char *path, struct certificate *ret_certificate, struct error *err)
{
    char beside[PATH_MAX];
    struct certificate certificate = {0};
    struct stat status;
    int r = read_file(path, &certificate, &status, err);
    if (r == 0 && !certificate.secret_key[0]) {
        snprintf(beside, sizeof beside, "%s_secret", path);
        r = read_file(beside, &certificate, &status, err);
        if (r == -ENOENT)
            return error_set(err, -EINVAL, "%s has no secret-key, and %s does not exist", path, beside);
        path = beside;
        if (r == 0 && !certificate.secret_key[0])
            r = error_set(err, -EINVAL, "%s has no secret-key", path);
    }
    if (r == 0)
        r = secret_file_check_private(&status, path, "a secret key", err);
    if (r == 0)
        *ret_certificate = certificate;
    explicit_bzero(&certificate, sizeof certificate);
    return r;
}

/* ---- writing ---- */

/* Writes the file under a name of its own and links it to its place, which fails where something is: a file
 * that is opened with output_file.h would replace it. */
static int write_new(const char *path, mode_t mode, const char *text, struct error *err)
{
    char temporary[PATH_MAX];
    if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
        return error_set(err, -ENAMETOOLONG, "%.80s…: name too long", path);
    int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    size_t len = strlen(text);
    ssize_t n = write(fd, text, len);
    int r = n < 0 ? -errno : n < (ssize_t)len ? -ENOSPC : 0;
    if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
        r = -errno;
    close(fd);
    if (r == 0 && link(temporary, path) < 0)
        r = -errno;
    unlink(temporary);
    if (r == -EEXIST)
        return error_set(err, r, "%s already exists; keys are never overwritten", path);
    return r < 0 ? error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int certificate_write(const char *folder, const char *name, const struct certificate *certificate,
                      struct error *err)
{
    char public_path[PATH_MAX], secret_path[PATH_MAX], text[1024];
    if (snprintf(public_path, sizeof public_path, "%s/%s", folder, name) >= PATH_MAX ||
        snprintf(secret_path, sizeof secret_path, "%s/%s_secret", folder, name) >= PATH_MAX)
        return error_set(err, -ENAMETOOLONG, "%.80s…: name too long", folder);
    if (access(public_path, F_OK) == 0)
        return error_set(err, -EEXIST, "%s already exists; keys are never overwritten", public_path);
    snprintf(text, sizeof text,
             "# A CURVE certificate with its secret key: anyone who reads it can impersonate this server.\n\n"
             "metadata\ncurve\n    public-key = \"%s\"\n    secret-key = \"%s\"\n",
             certificate->public_key, certificate->secret_key);
    int r = write_new(secret_path, 0600, text, err);
    explicit_bzero(text, sizeof text);
    if (r < 0)
        return r;
    snprintf(text, sizeof text,
             "# A public CURVE certificate: give it to the clients that connect.\n\n"
             "metadata\ncurve\n    public-key = \"%s\"\n",
             certificate->public_key);
    r = write_new(public_path, 0644, text, err);
    if (r < 0)
        unlink(secret_path);
    return r;
}
