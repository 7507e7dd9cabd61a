/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_BOOKS_H
#define GATEWAY_FLEET_BOOKS_H

/* Reads the books of prefixes that the pools of a fleet publish (published.h), with the fleet's secret. What
 * several gateways send is then known to each of them. A pool that does not tell (it has no secret, another
 * one, or separates prompts otherwise) is one line in the log; of such a pool the gateway knows what it has
 * sent there itself. */

#include "gateway/fleet/fleet.h"

/* The pool says that it separates prompts by this base: whether the gateway hashes prompts so. It hashes them
 * as most pools do that have told theirs and are not leaving, so it follows a change of all pools, and one
 * pool alone changes nothing. */
bool books_take_space(struct fleet_pool *pool, const char *space, uint64_t now);

/* Asks the pools that are due; without a secret it does nothing. After each fleet_wait, before carry_turn. */
void books_turn(struct fleet *fleet, uint64_t now);

#endif
