/* SPDX-License-Identifier: MIT */
#ifndef WORKER_COUNT_H
#define WORKER_COUNT_H

/* What a pool asks before it has workers: how many devices there are. */

#include "worker/options.h"

/* Prints, as a line, the number of the devices that workers with these options would compute on; 0 where
 * those have no numbers, as the processor. With "auto", where several are found, the model is opened to see
 * whether they execute it. The exit status of the process: 1 without a line where there is no such device. */
int count_devices(const struct worker_options *options);

#endif
