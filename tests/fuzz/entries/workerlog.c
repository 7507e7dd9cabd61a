/* SPDX-License-Identifier: MIT */
/* Any bytes as what a worker writes to its stderr, in pieces of any length: each line is passed on, once and
 * in order, as one that a terminal may get, and the last one makes a reason.
 *
 * The first byte says how it is cut. */

#include "tests/fuzz/driver.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "common/utf8.h"
#include "supervisor/children/worker_log.h"

static struct buffer passed;

/* In the place of common/log.c. */
void log_line(enum log_level level, const char *format, ...)
{
    (void)level;
    (void)format;
}

void log_write(const char *lines, size_t len)
{
    if (len < 2 || len > WORKER_LOG_LINE_MAX || lines[len - 1] != '\n' || memchr(lines, 0, len) ||
        buffer_append(&passed, lines, len) < 0)
        abort();
    char copy[WORKER_LOG_LINE_MAX + 1];
    memcpy(copy, lines, len - 1);
    copy[len - 1] = 0;
    utf8_clean(copy);
    if (memcmp(copy, lines, len - 1) != 0)
        abort();
}

void log_init(const char *name)
{
    (void)name;
}

/* The next byte that is shown as it is; 0 at the end. A question mark stands for others, too. */
static uint8_t next_plain(struct bytes text, size_t *at)
{
    while (*at < text.len) {
        uint8_t byte = ((const uint8_t *)text.data)[(*at)++];
        if (byte > 0x20 && byte < 0x7f && byte != '?')
            return byte;
    }
    return 0;
}

static void check_passed(const uint8_t *said, size_t len)
{
    const struct bytes wanted = {said, len}, got = {passed.data, passed.len};
    size_t in_wanted = 0, in_got = 0;
    uint8_t byte;
    do {
        byte = next_plain(wanted, &in_wanted);
        if (byte != next_plain(got, &in_got))
            abort();
    } while (byte);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct worker_log log;
    int ends[2];
    if (len < 1 || len > 32768 || pipe2(ends, O_NONBLOCK) < 0)
        return 0;
    size_t most = 1 + data[0] * 16u;
    worker_log_open(&log, ends[0]);
    passed.len = 0;
    for (size_t at = 1; at < len;) {
        size_t n = len - at < most ? len - at : most;
        if (write(ends[1], data + at, n) != (ssize_t)n)
            abort();
        worker_log_read(&log, at);
        worker_log_flush(&log, at * 100000);
        at += n;
    }
    close(ends[1]);
    worker_log_close(&log, false);
    check_passed(data + 1, len - 1);
    const char *last = worker_log_last(&log);
    if (log.fd != -1 || strlen(last) >= WORKER_LOG_LINE_MAX || strchr(last, '\n'))
        abort();
    return 0;
}
