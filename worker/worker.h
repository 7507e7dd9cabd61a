/* SPDX-License-Identifier: MIT */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

/* A worker process: its parts, and the loop that passes the broker's messages through them.
 *
 *     link ──▶ assign ──▶ prepare ──▶ assign ──▶ engine ──▶ assign ──▶ publish ──▶ stream, link
 *      └─────▶ tokenize ─▶ prepare ─▶ tokenize ───────────────────────────────────────▶ link
 *
 * Each part has its own struct, which only that part writes. report reads them, for the board. */

#include "worker/options.h"

/* Runs a worker until it is told to stop. Returns the exit status of the process: 0, 1, or
 * PROGRAM_EXIT_PERMANENT after one line that says why. */
int worker_run(const struct worker_options *options);

#endif
