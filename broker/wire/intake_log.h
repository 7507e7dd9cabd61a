/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_INTAKE_LOG_H
#define BROKER_WIRE_INTAKE_LOG_H

/* Logs how many connections were closed, and which bound they exceeded. Their clients get no message: nothing
 * can be sent to them any more. */

#include "broker/wire/intake.h"

struct intake_log { /* zeroed: nothing logged yet */
    uint64_t said[INTAKE_REASONS];
    uint64_t said_ns;
};

/* Logs connections closed since the last line, at most once a second. Call it periodically. */
void intake_log_turn(struct intake_log *log, uint64_t now);

#endif
