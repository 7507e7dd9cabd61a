/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_PROGRESS_H
#define CLIENT_COMMAND_TERMINAL_PROGRESS_H

/* A line on the terminal that says what the command is waiting for, and for how long. Shown only if stderr is
 * a terminal, after a fifth of a second. */

#include <stdint.h>

struct progress {
    uint64_t started_ns, shown_ns; /* shown_ns 0: not yet */
};

void progress_start(struct progress *progress);

/* Shows "WHAT, 1.2 s", at most five times a second, however often it is called. */
void progress_show(struct progress *progress, const char *what);

/* The same with the percentage done, 0 to 100: "WHAT [#####---------------] 25%, 1.2 s". */
void progress_show_part(struct progress *progress, const char *what, uint32_t percent);

/* The same for a model's weights, as a backend's `loaded` (engine/backend/backend.h): `done` bytes of
 * `total`. The line is removed when everything is loaded. */
void progress_loaded(void *progress, uint64_t done, uint64_t total);

/* Removes the line. */
void progress_end(struct progress *progress);

#endif
