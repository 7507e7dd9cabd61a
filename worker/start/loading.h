/* SPDX-License-Identifier: MIT */
#ifndef WORKER_START_LOADING_H
#define WORKER_START_LOADING_H

/* How far a load is, told in lines that are few enough for a log. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: nothing was told yet. */
struct loading {
    uint64_t told_ns; /* 0: it has not begun */
    uint32_t told;    /* percent */
};

/* Makes a line of `size` bytes of it, where `what` is "loading": "loading: 35% of 4123 MiB". False, and there
 * is none to be said: within a second of the one before, or of the first call; when it is less than five
 * percent more, unless the one before is ten seconds old; when nothing is more; and when all is done, since
 * what follows says so. `now`: clock_ns. */
bool loading_line(struct loading *loading, const char *what, uint64_t done, uint64_t total, uint64_t now,
                  char *line, size_t size);

/* The next phase begins at 0 %: as if nothing was told. */
void loading_restart(struct loading *loading);

#endif
