/* SPDX-License-Identifier: MIT */
/* The log of a process. Its name and level are set once at the start; beside them the only file-scope state
 * is the count of lines that were dropped.
 *
 * stderr is shared with the shell and with other processes, so it cannot be made non-blocking: that would be
 * so for them too. Instead it is asked before each write whether it takes something. A pipe that says yes
 * takes PIPE_BUF bytes whole; a terminal that says yes may be stopped in between, which costs one line's
 * wait. */

#include "common/amount.h"
#include "common/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static enum log_level log_level = LOG_INFO;
static char log_name[32] = "quern";
static atomic_uint log_dropped; /* lines, since the last that went through */

void log_init(const char *name)
{
    snprintf(log_name, sizeof log_name, "%s", name);
    const char *wanted = getenv("QUERN_LOG");
    for (int i = 0; wanted && i < 4; i++)
        if (strcmp(wanted, level_names[i]) == 0)
            log_level = (enum log_level)i;
}

/* Writes "HH:MM:SS.mmm name level " and returns its length. */
static size_t begin_line(char *line, size_t size, enum log_level level)
{
    struct timespec now;
    struct tm local;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    int n = snprintf(line, size, "%02d:%02d:%02d.%03ld %s %s ", local.tm_hour, local.tm_min, local.tm_sec,
                     now.tv_nsec / 1000000, log_name, level_names[level]);
    return n < 0 ? 0 : (size_t)n;
}

static bool takes_more(void)
{
    struct pollfd item = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&item, 1, 0) > 0;
}

static void tell_dropped(void)
{
    unsigned dropped = atomic_exchange(&log_dropped, 0);
    if (dropped == 0)
        return;
    char line[128];
    size_t n = begin_line(line, sizeof line, LOG_WARN);
    n += (size_t)snprintf(line + n, sizeof line - n, "%s dropped: stderr was not writable\n",
                          amount_of(dropped, "line").text);
    if (write(STDERR_FILENO, line, n) < 0)
        atomic_fetch_add(&log_dropped, dropped);
}

void log_write(const char *lines, size_t len)
{
    if (atomic_load(&log_dropped) > 0 && takes_more())
        tell_dropped();
    if (!takes_more() || write(STDERR_FILENO, lines, len) < 0)
        atomic_fetch_add(&log_dropped, 1);
}

bool log_wants(enum log_level level)
{
    return level <= log_level;
}

void log_line(enum log_level level, const char *format, ...)
{
    if (!log_wants(level))
        return;
    char line[1024];
    size_t n = begin_line(line, sizeof line, level);
    va_list args;
    va_start(args, format);
    int m = vsnprintf(line + n, sizeof line - n - 1, format, args);
    va_end(args);
    if (m < 0)
        return;
    size_t len = n + (size_t)m;
    if (len > sizeof line - 2)
        len = sizeof line - 2;
    line[len] = '\n';
    log_write(line, len + 1);
}
