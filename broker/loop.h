/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LOOP_H
#define BROKER_LOOP_H

/* The broker's main loop. */

#include "broker/core/broker.h"
#include "common/error.h"

enum {
    LOOP_E_LEFT = 1,
    LOOP_E_UNFIT /* every worker rejected the pool's settings */
};

/* Serves until the supervisor orders it to end (0) or to leave for the next broker (LOOP_E_LEFT), or until
 * every worker has failed for good (-ECHILD or LOOP_E_UNFIT with the reason). */
int broker_run(struct broker *broker, struct error *err);

#endif
