/* SPDX-License-Identifier: MIT */
#ifndef WORKER_START_LOADING_H
#define WORKER_START_LOADING_H

/* Reports the progress of a load, in few enough lines for a log. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: nothing reported yet. */
struct loading {
    uint64_t told_ns; /* 0: it has not begun */
    uint32_t told;    /* percent */
};

/* Writes a line such as "loading: 35% of 4123 MiB" (`what` is "loading") of up to `size` bytes. False if no
 * line is due: within a second of the last one or of the first call; less than five percent since the last
 * one, unless that is ten seconds old; no progress; or all done, which other lines report. `now`: clock_ns.
 */
bool loading_line(struct loading *loading, const char *what, uint64_t done, uint64_t total, uint64_t now,
                  char *line, size_t size);

/* The next phase begins at 0 %, as if nothing had been reported. */
void loading_restart(struct loading *loading);

#endif
