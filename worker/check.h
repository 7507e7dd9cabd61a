/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CHECK_H
#define WORKER_CHECK_H

#include "worker/options.h"

/* Checks whether a worker could start with these options, for a supervisor that has new settings, and prints
 * any errors to stderr. Returns the exit status. */
int check_options(const struct worker_options *options);

#endif
