/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHILDREN_DEVICES_H
#define SUPERVISOR_CHILDREN_DEVICES_H

/* How many devices this machine has: as many workers a pool has that was not told a number. */

#include <stdint.h>

#include "broker/settings/options.h"

/* The workers of a pool with these options: what they say; else one for each device of the kind that they
 * name, WORKER_MAX at most; and 1 where there is none, where devices have no numbers (the processor), or
 * where nobody could say. With "auto" a GPU counts only where it executes the model. Several are said in a
 * line of the log.
 *
 * Starts `program`, quern-worker, for it and waits until that ends, for a minute or so, and no longer than
 * until `signal_fd` can be read, which is not read here. */
uint32_t devices_workers(const struct options *options, const char *program, int signal_fd);

#endif
