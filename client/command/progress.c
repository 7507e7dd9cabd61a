/* SPDX-License-Identifier: MIT */
/* The line is written over itself, and taken away before anything else is said. */

#include "client/command/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "client/command/io.h"
#include "common/clock.h"

#define SHOW_NS (200 * CLOCK_NS_PER_MS)

void progress_start(struct progress *progress)
{
    *progress = (struct progress){.started_ns = clock_ns()};
}

void progress_show(struct progress *progress, const char *what)
{
    uint64_t now = clock_ns(), last = progress->shown_ns ? progress->shown_ns : progress->started_ns;
    if (now - last < SHOW_NS || !io_redraws(STDERR_FILENO))
        return;
    progress->shown_ns = now;
    fprintf(stderr, "\r\033[K%s, %.1f s", what, (double)(now - progress->started_ns) / CLOCK_NS_PER_S);
}

void progress_end(struct progress *progress)
{
    if (progress->shown_ns)
        fputs("\r\033[K", stderr);
    progress->shown_ns = 0;
}
