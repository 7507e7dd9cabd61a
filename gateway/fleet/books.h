/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_BOOKS_H
#define GATEWAY_FLEET_BOOKS_H

/* Reads the books of prefixes that the pools of a fleet publish (published.h), with the fleet's secret. So
 * each gateway knows what all of them have sent. If a pool does not publish its book to this gateway (it has
 * no secret, a different one, or separates prompts differently), this is logged once; of such a pool the
 * gateway knows only what it has sent there itself. */

#include "gateway/fleet/fleet.h"

/* The pool says that it separates prompts by this base. Returns whether the gateway hashes prompts the same
 * way. The gateway uses the base of most pools that have reported one and are not leaving, so it follows a
 * change of all pools, and a single pool changes nothing. */
bool books_take_space(struct fleet_pool *pool, const char *space, uint64_t now);

/* Asks the pools that are due; without a secret it does nothing. Call it after each fleet_wait, before
 * carry_turn. */
void books_turn(struct fleet *fleet, uint64_t now);

#endif
