/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_SUPERVISE_H
#define SUPERVISOR_SUPERVISE_H

/* The supervising process: the parent of all others of a pool. */

#include "broker/settings/options.h"
#include "common/error.h"

/* Runs a pool from its first process to its last: locks the run directory, keeps a broker and the workers
 * running, and ends them when a signal says so (SIGTERM, SIGINT, SIGHUP; a second one at once) or when the
 * broker ends by itself. 0 or a positive exit status: the broker's, which has said why and leaves the text
 * empty, or PROGRAM_EXIT_PERMANENT with the reason where no model can be read at its path; -errno with the
 * reason. Workers, where none are given, become as many as there are devices. */
int supervise(struct options *options, int argc, char **argv, struct error *err);

#endif
