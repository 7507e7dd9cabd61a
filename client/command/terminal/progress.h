/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_PROGRESS_H
#define CLIENT_COMMAND_TERMINAL_PROGRESS_H

/* One line on the terminal that says what the command waits for, and for how long. Shown only if stderr is a
 * terminal, after a fifth of a second. */

#include <stdint.h>

struct progress {
    uint64_t started_ns, shown_ns; /* shown_ns 0: not yet */
};

void progress_start(struct progress *progress);

/* Shows "WHAT, 1.2 s", at most five times a second, however often it is called. */
void progress_show(struct progress *progress, const char *what);

/* The same with how much of it is done, 0 to 100 percent: "WHAT [#####---------------] 25%, 1.2 s". */
void progress_show_part(struct progress *progress, const char *what, uint32_t percent);

/* The same of a model's weights, for a backend's `loaded` (engine/backend/backend.h): bytes of `total`. When
 * all is loaded the line is removed. */
void progress_loaded(void *progress, uint64_t done, uint64_t total);

/* Takes the line away. */
void progress_end(struct progress *progress);

#endif
