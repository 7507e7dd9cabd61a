/* SPDX-License-Identifier: MIT */
/* Lines of NAME = VALUE.
 *
 * The file's lines are cut out of a copy in place. Nothing of a file is passed over but comments: what is
 * no setting is refused with its line, since a setting that somebody wrote and that has no effect is worse
 * than a pool that does not start. That is why a line that is indented counts like any other, and why a zero
 * byte, behind which nothing of its line would be seen, makes it no such file. */

#include "common/files/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"

#define BLANKS "\t\v\f\r "
#define MARK   "\xef\xbb\xbf" /* of byte order, which editors write */

/* Without the blanks at its end. */
static void trim(char *text)
{
    size_t len = strlen(text);
    while (len > 0 && strchr(BLANKS, text[len - 1]))
        text[--len] = 0;
}

/* What stands behind the equals sign, in place. NULL with a reason: it is no value. */
static char *cut_value(char *text, struct error *err)
{
    char *value = text + strspn(text, BLANKS);
    if (*value != '"' && *value != '\'') {
        value[strcspn(value, "#")] = 0;
        trim(value);
        return value;
    }
    char *end = strchr(value + 1, *value);
    if (!end) {
        error_set(err, -EINVAL, "unterminated quote");
        return NULL;
    }
    const char *behind = end + 1 + strspn(end + 1, BLANKS);
    if (*behind && *behind != '#') {
        error_set(err, -EINVAL, "unexpected text after the quote: \"%.80s\"", behind);
        return NULL;
    }
    *end = 0;
    return value + 1;
}

static int take_line(char *line, unsigned number, config_file_take *take, void *arg, struct error *err)
{
    char *name = line + strspn(line, BLANKS);
    if (*name == 0 || *name == '#')
        return 0;
    size_t len = strcspn(name, BLANKS "=#");
    char *equals = name + len + strspn(name + len, BLANKS);
    if (len == 0 || *equals != '=')
        return error_set(err, -EINVAL, "\"%.80s\" is not NAME = VALUE", name);
    char *value = cut_value(equals + 1, err);
    if (!value)
        return -EINVAL;
    name[len] = 0;
    return take(arg, number, name, value, err);
}

/* Of a text that ends with a zero. */
static int take_lines(char *text, const char *path, config_file_take *take, void *arg, struct error *err)
{
    char *rest = strncmp(text, MARK, strlen(MARK)) == 0 ? text + strlen(MARK) : text, *line;
    int r = 0;
    for (unsigned number = 1; r == 0 && (line = strsep(&rest, "\n")); number++) {
        r = take_line(line, number, take, arg, err);
        if (r != 0)
            error_prefix(err, r, "%s:%u", path, number);
    }
    return r;
}

int config_file_parse(const void *data, size_t len, const char *path, config_file_take *take, void *arg,
                      struct error *err)
{
    if (len > CONFIG_FILE_MAX_BYTES)
        return error_set(err, -EINVAL, "%s: not a configuration file: larger than %zu bytes", path,
                         CONFIG_FILE_MAX_BYTES);
    if (len > 0 && memchr(data, 0, len))
        return error_set(err, -EINVAL, "%s: not a configuration file: contains a zero byte", path);
    char *text = strndup(len > 0 ? data : "", len);
    if (!text)
        return error_set(err, -ENOMEM, "out of memory");
    int r = take_lines(text, path, take, arg, err);
    free(text);
    return r;
}

int config_file_read(const char *path, config_file_take *take, void *arg, struct error *err)
{
    struct buffer text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int r = fd < 0 ? -errno : buffer_read(&text, fd, CONFIG_FILE_MAX_BYTES);
    if (fd >= 0)
        close(fd);
    if (r < 0 && r != -EFBIG)
        error_set(err, r, "%s: %s", path, strerror(-r));
    else
        r = config_file_parse(text.data, text.len, path, take, arg, err);
    buffer_deinit(&text);
    return r;
}
