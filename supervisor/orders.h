/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_ORDERS_H
#define SUPERVISOR_ORDERS_H

/* The broker's orders (proto/supervision.h). */

#include <stdbool.h>
#include <stdint.h>

#include "proto/supervision.h"
#include "supervisor/places.h"

/* Carries out an order about workers. True for ORDER_SERVING, which is not one. Unknown kinds are logged;
 * orders about processes that have ended change nothing. */
bool orders_take(struct places *places, const struct order *order, uint64_t now);

#endif
