/* SPDX-License-Identifier: MIT */
/* See named_pool.h. */

#include "gateway/core/named_pool.h"

int named_pool(const struct exchange *exchange, const struct fleet_pool **ret_pool, struct refusal *refusal)
{
    const struct fleet *fleet = &exchange->gateway->fleet;
    const char *name = fleet_is_many(fleet) ? exchange_argument(exchange, "pool") : NULL;
    const struct fleet_pool *pool = fleet_named(fleet, name);
    if (!pool && name)
        return refuse(refusal, 404, "pool_not_found", "pool", "the fleet has no member \"%.64s\"", name);
    if (!pool && fleet_check(fleet, NULL, refusal) == 0) {
        refuse(refusal, 503, "unavailable", NULL, "no pool has reported its status yet");
        refusal->retry_after_s = 1;
    }
    if (!pool)
        return REFUSED;
    *ret_pool = pool;
    return 0;
}

int named_pool_status(const struct exchange *exchange, const struct fleet_pool **ret_pool,
                      const struct quern_status **ret_status, struct refusal *refusal)
{
    if (named_pool(exchange, ret_pool, refusal) != 0)
        return REFUSED;
    return pool_status(&(*ret_pool)->pool, ret_status, refusal);
}
