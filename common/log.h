/* SPDX-License-Identifier: MIT */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

/* Log lines on stderr: "HH:MM:SS.mmm name level text". Processes log; library code logs only at LOG_DEBUG.
 * The level is that of $QUERN_LOG (error, warn, info, debug), default info. One write(2) per line, so lines
 * of several processes on one terminal never mix.
 *
 * Logging never waits: while stderr is blocked (a terminal stopped by Ctrl-S, an unread pipe)
 * lines are dropped, and the next line is preceded by one with their number. */

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Names this process in its lines ("broker", "worker-0"); copied, truncated to 31 bytes. Reads $QUERN_LOG. */
void log_init(const char *name);

/* Whether lines of this level are written. */
bool log_wants(enum log_level level);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for complete lines, including newlines, of at most LOG_WRITE_MAX bytes in total. */
#define LOG_WRITE_MAX 4096
void log_write(const char *lines, size_t len);

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
/* Arguments are evaluated only if the line is wanted: it may be logged for each request. */
#define log_debug(...) (log_wants(LOG_DEBUG) ? log_line(LOG_DEBUG, __VA_ARGS__) : (void)0)

#endif
