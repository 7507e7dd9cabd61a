/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_NAMED_POOL_H
#define GATEWAY_CORE_NAMED_POOL_H

/* The pool that a report is about: in a fleet the pool named by ?pool=NAME, or the first that answers. */

#include "gateway/core/gateway.h"

/* 0; REFUSED: 404 for a name that no member has, 503 while none answers. */
int named_pool(const struct exchange *exchange, const struct fleet_pool **ret_pool, struct refusal *refusal);

/* The same, with the pool's last status, valid until the next fleet_wait. */
int named_pool_status(const struct exchange *exchange, const struct fleet_pool **ret_pool,
                      const struct quern_status **ret_status, struct refusal *refusal);

#endif
