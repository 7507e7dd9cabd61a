/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_SUPERVISE_H
#define SUPERVISOR_SUPERVISE_H

/* The supervisor: the parent of all other processes of a pool. */

#include "broker/settings/options.h"
#include "common/error.h"

/* Runs a pool: locks the run directory, keeps a broker and the workers running, and ends them on a signal
 * (SIGTERM, SIGINT, SIGHUP; at once on a second one) or when the broker ends by itself. By default there is
 * one worker for each device. Returns 0; the broker's exit status, with an empty text because the broker has
 * logged why; PROGRAM_EXIT_PERMANENT with a reason if the model cannot be read; or -errno with a reason. */
int supervise(struct options *options, int argc, char **argv, struct error *err);

#endif
