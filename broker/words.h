/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WORDS_H
#define BROKER_WORDS_H

/* The stderr of a worker: passed on line by line, the last line remembered as the reason should it die. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORDS_LINE_MAX 1024

struct words {
    int fd;                       /* read end of the worker's stderr, non-blocking; -1: closed */
    char partial[WORDS_LINE_MAX]; /* a line that has not ended */
    size_t partial_len;
    char last[WORDS_LINE_MAX]; /* the last whole line, zero-terminated */
    bool held;                 /* it has not been passed on yet */
    uint64_t held_ns;
};

/* Takes the read end of a pipe; forgets what an earlier process said. */
void words_open(struct words *words, int fd);

/* Reads what there is. Each line is passed on when the next has come, or by words_flush. */
void words_read(struct words *words, uint64_t now);

/* Passes on a line that has waited for a moment. */
void words_flush(struct words *words, uint64_t now);

/* The process ended: reads the rest and closes. With `keep_last` the last line is not passed on if it still
 * waits, because the caller says it in a line of its own. */
void words_close(struct words *words, bool keep_last);

/* The last words as a reason: without the prefix that a log puts before them; "" when it said nothing, or
 * nothing bad. */
const char *words_last(const struct words *words);

#endif
