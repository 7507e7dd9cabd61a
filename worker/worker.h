/* SPDX-License-Identifier: MIT */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

/* A worker process: its parts, and the loop that moves what the broker says through them.
 *
 *     link ──▶ assign ──▶ prepare ──▶ assign ──▶ engine ──▶ assign ──▶ publish ──▶ stream, link
 *      └─────▶ tokenize ─▶ prepare ─▶ tokenize ───────────────────────────────────────▶ link
 *
 * Each part has a struct of its own that nothing else writes. report reads, for the board. */

#include "worker/options.h"

/* Runs a worker until it is told to stop. The exit status of the process: 0, 1, or PROGRAM_EXIT_PERMANENT
 * after one line that says why. */
int worker_run(const struct worker_options *options);

#endif
