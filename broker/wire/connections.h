/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_CONNECTIONS_H
#define BROKER_WIRE_CONNECTIONS_H

/* Limits how many connections this process accepts: as many as its open-file limit allows, minus a reserve
 * for the broker itself. Further connections are closed at once; their clients try again. Linking this module
 * is enough: it replaces accept4(2). */

#include <stdint.h>

/* Raises the limit of open files as far as useful. Returns the number of connections that are then
 * possible. */
uint32_t connections_raise_limit(void);

/* The loop has handled all new and ended connections: more may be accepted. Call it in every turn in which
 * this is the case. */
void connections_caught_up(void);

#endif
