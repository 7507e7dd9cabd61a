/* SPDX-License-Identifier: MIT */
/* What workers say.
 *
 * A worker's stderr is a pipe to the supervisor, which writes its lines to our own stderr, whole and one
 * write(2) each. The newest line is held back for a moment: when the process ends for good, its last line is
 * the reason, and the supervisor says it once instead of twice. A line longer than the buffer is cut in
 * pieces. */

#include "broker/words.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

#define HOLD_MS       200
#define READS_AT_ONCE 16 /* a process that floods its stderr does not stop the loop */

void words_open(struct words *words, int fd)
{
    *words = (struct words){.fd = fd};
}

static void pass_on(struct words *words)
{
    if (!words->held)
        return;
    words->held = false;
    char line[WORDS_LINE_MAX + 1];
    size_t len = strlen(words->last);
    memcpy(line, words->last, len);
    line[len] = '\n';
    ssize_t n = write(STDERR_FILENO, line, len + 1);
    (void)n; /* there is nowhere else to say it */
}

static void end_line(struct words *words, uint64_t now)
{
    if (words->partial_len == 0)
        return;
    pass_on(words);
    memcpy(words->last, words->partial, words->partial_len);
    words->last[words->partial_len] = 0;
    words->partial_len = 0;
    words->held = true;
    words->held_ns = now;
}

static void add_byte(struct words *words, char byte, uint64_t now)
{
    bool ends = byte == '\n' || byte == 0;
    if (ends || words->partial_len == WORDS_LINE_MAX - 1)
        end_line(words, now);
    if (!ends)
        words->partial[words->partial_len++] = byte;
}

void words_read(struct words *words, uint64_t now)
{
    char bytes[4096];
    for (int i = 0; i < READS_AT_ONCE && words->fd >= 0; i++) {
        ssize_t n = read(words->fd, bytes, sizeof bytes);
        if (n < 0)
            return;
        if (n == 0) {
            /* The end of the pipe: closed here, or the loop would find it readable for ever. */
            end_line(words, now);
            close(words->fd);
            words->fd = -1;
        }
        for (ssize_t b = 0; b < n; b++)
            add_byte(words, bytes[b], now);
    }
}

void words_flush(struct words *words, uint64_t now)
{
    if (words->held && now - words->held_ns >= HOLD_MS * CLOCK_NS_PER_MS)
        pass_on(words);
}

void words_close(struct words *words, bool keep_last)
{
    if (words->fd >= 0)
        words_read(words, words->held_ns);
    if (words->fd >= 0) { /* someone else still holds the other end */
        end_line(words, words->held_ns);
        close(words->fd);
        words->fd = -1;
    }
    if (!keep_last)
        pass_on(words);
    words->held = false;
}

/* "09:41:00.123 worker-0 error TEXT" */
static bool is_log_line(const char *text)
{
    return strlen(text) >= 13 && isdigit((unsigned char)text[0]) && text[2] == ':' && text[5] == ':' &&
           text[8] == '.';
}

const char *words_last(const struct words *words)
{
    if (!is_log_line(words->last))
        return words->last;
    const char *name = strchr(words->last, ' ');
    const char *level = name ? strchr(name + 1, ' ') : NULL;
    const char *text = level ? strchr(level + 1, ' ') : NULL;
    if (!text)
        return words->last;
    bool good_news = strncmp(level + 1, "info ", 5) == 0 || strncmp(level + 1, "debug ", 6) == 0;
    return good_news ? "" : text + 1;
}
