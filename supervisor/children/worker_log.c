/* SPDX-License-Identifier: MIT */
/* What workers say.
 *
 * A worker's stderr is a pipe to the supervisor, which writes its lines to our own stderr, whole and one
 * write(2) each. The newest line is held back for a moment: when the process ends for good, its last line is
 * the reason, and the supervisor says it once instead of twice. A line longer than the buffer is cut in
 * pieces. */

#include "supervisor/children/worker_log.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/utf8.h"

#define READS_AT_ONCE 16 /* a process that floods its stderr does not stop the loop */

void worker_log_open(struct worker_log *log, int fd)
{
    *log = (struct worker_log){.fd = fd};
}

static void pass_on(struct worker_log *log)
{
    if (!log->held)
        return;
    log->held = false;
    char line[WORKER_LOG_LINE_MAX + 1];
    size_t len = strlen(log->last);
    memcpy(line, log->last, len);
    line[len] = '\n';
    log_write(line, len + 1);
}

static void end_line(struct worker_log *log, uint64_t now)
{
    if (log->partial_len == 0)
        return;
    pass_on(log);
    memcpy(log->last, log->partial, log->partial_len);
    log->last[log->partial_len] = 0;
    utf8_clean(log->last); /* it read what strangers wrote, and our stderr may be a terminal */
    log->partial_len = 0;
    log->held = true;
    log->held_ns = now;
}

static void add_byte(struct worker_log *log, char byte, uint64_t now)
{
    bool ends = byte == '\n' || byte == 0;
    if (ends || log->partial_len == WORKER_LOG_LINE_MAX - 1)
        end_line(log, now);
    if (!ends)
        log->partial[log->partial_len++] = byte;
}

void worker_log_read(struct worker_log *log, uint64_t now)
{
    char bytes[4096];
    for (int i = 0; i < READS_AT_ONCE && log->fd >= 0; i++) {
        ssize_t n = read(log->fd, bytes, sizeof bytes);
        if (n < 0)
            return;
        if (n == 0) {
            /* The end of the pipe: closed here, or the loop would find it readable for ever. */
            end_line(log, now);
            close(log->fd);
            log->fd = -1;
        }
        for (ssize_t b = 0; b < n; b++)
            add_byte(log, bytes[b], now);
    }
}

void worker_log_flush(struct worker_log *log, uint64_t now)
{
    if (log->held && now - log->held_ns >= WORKER_LOG_HOLD_MS * CLOCK_NS_PER_MS)
        pass_on(log);
}

void worker_log_close(struct worker_log *log, bool keep_last)
{
    if (log->fd >= 0)
        worker_log_read(log, log->held_ns);
    if (log->fd >= 0) { /* someone else still holds the other end */
        end_line(log, log->held_ns);
        close(log->fd);
        log->fd = -1;
    }
    if (!keep_last)
        pass_on(log);
    log->held = false;
}

/* "09:41:00.123 worker-0 error TEXT" */
static bool is_log_line(const char *text)
{
    return strlen(text) >= 13 && isdigit((unsigned char)text[0]) && text[2] == ':' && text[5] == ':' &&
           text[8] == '.';
}

const char *worker_log_last(const struct worker_log *log)
{
    if (!is_log_line(log->last))
        return log->last;
    const char *name = strchr(log->last, ' ');
    const char *level = name ? strchr(name + 1, ' ') : NULL;
    const char *text = level ? strchr(level + 1, ' ') : NULL;
    if (!text)
        return log->last;
    bool good_news = strncmp(level + 1, "info ", 5) == 0 || strncmp(level + 1, "debug ", 6) == 0;
    return good_news ? "" : text + 1;
}
