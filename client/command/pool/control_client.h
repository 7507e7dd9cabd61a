/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_POOL_CONTROL_CLIENT_H
#define CLIENT_COMMAND_POOL_CONTROL_CLIENT_H

/* The control socket of a pool on this machine (proto/control.h), as its owner uses it. */

#include <stdint.h>

#include "common/error.h"
#include "proto/control.h"

/* Sends a request to the pool of a run directory (NULL: the default one), and waits until it is done,
 * printing each step on stderr. `number` is for the kinds that have one. 0, or -errno with a reason: no pool
 * runs there, or it rejected the request, failed, or does not answer. */
int control_ask(const char *rundir, enum control_kind kind, uint32_t number, struct error *err);

#endif
