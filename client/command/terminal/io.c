/* SPDX-License-Identifier: MIT */
/* write(2) and read(2) until all is done. A Ctrl-C must get through to who waits for room, whose reader may
 * read no more and may stay (a pager): so the wait is poll's, and a write never has to. */

#include "client/command/terminal/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/terminal/interrupt.h"
#include "common/amount.h"
#include "common/program/program.h"
#include "common/utf8.h"

#define WAIT_MS 200

int io_write(const void *data, size_t len)
{
    const char *at = data;
    while (len > 0) {
        struct pollfd writable = {.fd = STDOUT_FILENO, .events = POLLOUT};
        if (poll(&writable, 1, WAIT_MS) <= 0) {
            if (interrupt_signal())
                return -EINTR;
            continue;
        }
        /* A pipe that can be written to takes so much without waiting. */
        ssize_t n = write(STDOUT_FILENO, at, len < PIPE_BUF ? len : PIPE_BUF);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0) {
            int r = -errno;
            if (r != -EPIPE)
                program_error("stdout: %s", strerror(-r));
            return r;
        }
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int io_write_json(json_t *json)
{
    char *line = json ? json_dumps(json, JSON_REAL_PRECISION(IO_FLOAT_DIGITS)) : NULL;
    int r = line ? io_write(line, strlen(line)) : -ENOMEM;
    if (r == 0)
        r = io_write("\n", 1);
    free(line);
    json_decref(json);
    return r;
}

int io_write_text(const char *data, size_t len)
{
    struct buffer shown = {0};
    if (!isatty(STDOUT_FILENO))
        return io_write(data, len);
    int r = utf8_append_shown(&shown, (struct bytes){data, len});
    if (r == 0)
        r = io_write(shown.data, shown.len);
    else
        program_error("out of memory");
    buffer_deinit(&shown);
    return r;
}

static int read_all(int fd, const char *from, struct buffer *ret_data, size_t max, const char *what,
                    struct error *err)
{
    struct pollfd input = {.fd = fd, .events = POLLIN};
    int r;
    while ((r = buffer_read(ret_data, fd, max)) == -EAGAIN) /* others may have made it non-blocking */
        poll(&input, 1, -1);
    if (r == -EFBIG)
        return error_set(err, -EMSGSIZE, "%s is longer than %s", what, amount_of_bytes(max).text);
    if (r == -ENOMEM)
        return error_set(err, r, "out of memory");
    return r < 0 ? error_set(err, r, "%s: %s", from, strerror(-r)) : 0;
}

int io_read_stdin(struct buffer *ret_data, size_t max, const char *what, struct error *err)
{
    return read_all(STDIN_FILENO, "stdin", ret_data, max, what, err);
}

int io_read_file(const char *path, size_t max, struct buffer *ret_data, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    int r = read_all(fd, path, ret_data, max, path, err);
    close(fd);
    return r;
}

bool io_redraws(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

bool io_colours(int fd)
{
    const char *no_color = getenv("NO_COLOR");
    return io_redraws(fd) && !(no_color && no_color[0]);
}
