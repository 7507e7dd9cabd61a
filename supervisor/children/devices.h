/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHILDREN_DEVICES_H
#define SUPERVISOR_CHILDREN_DEVICES_H

/* The number of devices, which is the default number of workers. */

#include <stdint.h>

#include "broker/settings/options.h"

/* The workers of a pool with these options: the given number; else one for each device of the kind,
 * WORKER_MAX at most; 1 if there are none, if devices are not numbered (the CPU), or if counting fails. With
 * "auto" a GPU counts only if it supports the model. More than one is logged.
 *
 * Runs `program`, quern-worker, for this, and waits for its end, for about a minute at most, or until
 * `signal_fd` becomes readable; does not read from `signal_fd`. */
uint32_t devices_workers(const struct options *options, const char *program, int signal_fd);

#endif
