/* SPDX-License-Identifier: MIT */
/* The line is written over itself, and taken away before anything else is said. */

#include "client/command/terminal/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "client/command/terminal/io.h"
#include "common/clock.h"

#define SHOW_NS (200 * CLOCK_NS_PER_MS)
#define WIDTH   20 /* of a bar */

void progress_start(struct progress *progress)
{
    *progress = (struct progress){.started_ns = clock_ns()};
}

/* Whether it is time for a line, and how long it has been. */
static bool is_due(struct progress *progress, double *ret_seconds)
{
    uint64_t now = clock_ns(), last = progress->shown_ns ? progress->shown_ns : progress->started_ns;
    if (now - last < SHOW_NS || !io_redraws(STDERR_FILENO))
        return false;
    progress->shown_ns = now;
    *ret_seconds = (double)(now - progress->started_ns) / CLOCK_NS_PER_S;
    return true;
}

void progress_show(struct progress *progress, const char *what)
{
    double seconds;
    if (is_due(progress, &seconds))
        fprintf(stderr, "\r\033[K%s, %.1f s", what, seconds);
}

void progress_show_part(struct progress *progress, const char *what, uint32_t percent)
{
    static const char done[] = "####################", left[] = "--------------------";
    const int n = (int)((percent < 100 ? percent : 100) / (100 / WIDTH));
    double seconds;
    if (is_due(progress, &seconds))
        fprintf(stderr, "\r\033[K%s [%.*s%.*s] %u%%, %.1f s", what, n, done, WIDTH - n, left, percent,
                seconds);
}

void progress_end(struct progress *progress)
{
    if (progress->shown_ns)
        fputs("\r\033[K", stderr);
    progress->shown_ns = 0;
}

void progress_loaded(void *arg, uint64_t done, uint64_t total)
{
    struct progress *progress = arg;
    if (done < total)
        progress_show_part(progress, "loading the model", (uint32_t)(100.0 * (double)done / (double)total));
    else
        progress_end(progress);
}
