/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_INTAKE_LOG_H
#define BROKER_WIRE_INTAKE_LOG_H

/* Says in the log how many connections were closed for what they did, and beyond which bound each went: their
 * clients are not told, since nothing could be sent to them any more. */

#include "broker/wire/intake.h"

struct intake_log { /* zeroed: nothing was said */
    uint64_t said[INTAKE_REASONS];
    uint64_t said_ns;
};

/* Says what has come since the last line, a line a second at most. Now and then. */
void intake_log_turn(struct intake_log *log, uint64_t now);

#endif
