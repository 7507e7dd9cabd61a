/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_BOOKS_H
#define GATEWAY_FLEET_BOOKS_H

/* Reads the books of prefixes that the pools of a fleet publish (published.h), with the fleet's secret. What
 * several gateways send is then known to each of them. A pool that does not tell (it has no secret, another
 * one, or separates prompts otherwise) is one line in the log; of such a pool the gateway knows what it has
 * sent there itself. */

#include "gateway/fleet/fleet.h"

/* Asks the pools that are due; without a secret it does nothing. After each fleet_wait, before carry_turn. */
void books_turn(struct fleet *fleet, uint64_t now);

#endif
