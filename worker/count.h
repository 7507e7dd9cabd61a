/* SPDX-License-Identifier: MIT */
#ifndef WORKER_COUNT_H
#define WORKER_COUNT_H

/* Counts devices, for a pool that has no workers yet. */

#include "worker/options.h"

/* Prints the number of devices that workers with these options would use, as a line; 0 if they have no
 * numbers, as with the CPU. With "auto" and several devices, opens the model to see whether they can run it.
 * Returns the exit status of the process: 1, without a line, if there is no such device. */
int count_devices(const struct worker_options *options);

#endif
