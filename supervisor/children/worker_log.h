/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHILDREN_WORKER_LOG_H
#define SUPERVISOR_CHILDREN_WORKER_LOG_H

/* The stderr of a worker: passed on line by line; the last line is kept as the reason if it dies. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKER_LOG_LINE_MAX 1024
#define WORKER_LOG_HOLD_MS  200 /* how long the newest line waits */

struct worker_log {
    int fd;                            /* read end of the worker's stderr, non-blocking; -1: closed */
    char partial[WORKER_LOG_LINE_MAX]; /* a line that has not ended */
    size_t partial_len;
    char last[WORKER_LOG_LINE_MAX]; /* the last whole line, zero-terminated */
    bool held;                      /* it has not been passed on yet */
    uint64_t held_ns;
};

/* Takes the read end of a pipe; discards the lines of an earlier process. */
void worker_log_open(struct worker_log *log, int fd);

/* Reads what is available. A line is passed on when the next one arrives, or by worker_log_flush. */
void worker_log_read(struct worker_log *log, uint64_t now);

/* Passes on a line that has waited for a moment. */
void worker_log_flush(struct worker_log *log, uint64_t now);

/* The process ended: reads the rest and closes. With `keep_last` a pending last line is not passed on,
 * because the caller logs it. */
void worker_log_close(struct worker_log *log, bool keep_last);

/* The last line as a reason, without the log's prefix; "" if the worker printed nothing, or no error. */
const char *worker_log_last(const struct worker_log *log);

#endif
