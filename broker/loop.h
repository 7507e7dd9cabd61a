/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LOOP_H
#define BROKER_LOOP_H

/* The broker's one loop. */

#include "broker/broker.h"
#include "common/error.h"

/* Serves until a signal ends it (0) or every worker failed for good (-ECHILD with the reason).
 * `signal_fd` delivers SIGTERM, SIGINT, SIGHUP and SIGCHLD. */
int broker_run(struct broker *broker, int signal_fd, struct error *err);

#endif
