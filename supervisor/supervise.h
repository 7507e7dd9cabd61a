/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_SUPERVISE_H
#define SUPERVISOR_SUPERVISE_H

/* The supervising process: the parent of all others of a pool. */

#include "broker/settings/options.h"
#include "common/error.h"

/* Runs a pool from its first process to its last: locks the run directory, keeps a broker and the workers
 * running, and ends them on a signal (SIGTERM, SIGINT, SIGHUP; at once on a second one) or when the broker
 * ends by itself. Returns 0 or a positive exit status: the broker's, which has said why, with an empty text;
 * or PROGRAM_EXIT_PERMANENT with a reason if the model cannot be read; or -errno with a reason. Without a
 * number of workers there is one for each device. */
int supervise(struct options *options, int argc, char **argv, struct error *err);

#endif
