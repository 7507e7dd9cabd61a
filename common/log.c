/* SPDX-License-Identifier: MIT */
/* The log of a process: its name and level are the only file-scope state, set once at the start. */

#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static enum log_level log_level = LOG_INFO;
static char log_name[32] = "quern";

void log_init(const char *name)
{
    snprintf(log_name, sizeof log_name, "%s", name);
    const char *wanted = getenv("QUERN_LOG");
    for (int i = 0; wanted && i < 4; i++)
        if (strcmp(wanted, level_names[i]) == 0)
            log_level = (enum log_level)i;
}

void log_line(enum log_level level, const char *format, ...)
{
    if (level > log_level)
        return;
    struct timespec now;
    struct tm local;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    char line[1024];
    int n = snprintf(line, sizeof line, "%02d:%02d:%02d.%03ld %s %s ", local.tm_hour, local.tm_min,
                     local.tm_sec, now.tv_nsec / 1000000, log_name, level_names[level]);
    va_list args;
    va_start(args, format);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    va_end(args);
    if (m < 0)
        return;
    size_t len = (size_t)n + (size_t)m;
    if (len > sizeof line - 2)
        len = sizeof line - 2;
    line[len] = '\n';
    ssize_t written = write(STDERR_FILENO, line, len + 1);
    (void)written; /* a log that cannot be written has nowhere to say so */
}
