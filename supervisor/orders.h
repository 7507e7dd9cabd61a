/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_ORDERS_H
#define SUPERVISOR_ORDERS_H

/* What the broker orders (proto/supervision.h). */

#include <stdbool.h>
#include <stdint.h>

#include "proto/supervision.h"
#include "supervisor/places.h"

/* Does with the workers what an order says. True: it is none about workers, but ORDER_SERVING. One of an
 * unknown kind is said in the log, and one about a process that has ended changes nothing. */
bool orders_take(struct places *places, const struct order *order, uint64_t now);

#endif
