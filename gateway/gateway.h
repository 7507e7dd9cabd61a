/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

/* What handlers know of the gateway as a whole. */

#include "gateway/counters.h"
#include "gateway/exchange.h"
#include "gateway/keys.h"
#include "gateway/options.h"
#include "gateway/pool.h"

struct body_reader;

struct gateway {
    struct options options;
    struct keys keys;
    struct pool pool;
    struct counters counters;
    struct stream_limits streams;
    struct budget bodies; /* of requests: as they come, and what was read of them and is still needed */
    struct body_reader *body_reader;
    struct request_log request_log;
    int64_t started;  /* seconds since 1970 */
    bool draining;    /* no new work is taken */
    bool retired;     /* another gateway takes new connections; those here end one by one */
    uint32_t working; /* exchanges between their request and the end of their answer */
};

/* Where the body of an exchange counts. */
static inline struct budget *exchange_bodies(const struct exchange *exchange)
{
    return exchange->key ? &exchange->key->bodies : &exchange->gateway->bodies;
}

/* Whether work for this model (NULL: any) can be taken now: 0, or REFUSED with 503 or 404. */
static inline int gateway_check(const struct gateway *gateway, const char *model, struct refusal *refusal)
{
    if (gateway->draining) {
        refuse(refusal, 503, "draining", NULL, "the gateway is shutting down");
        refusal->retry_after_s = 1;
        return REFUSED;
    }
    return pool_check(&gateway->pool, model, refusal);
}

/* The name that an answer gives its model, after gateway_check: the one asked for, or the one there is. Lives
 * until the next dispatch. */
static inline const char *gateway_model(const struct gateway *gateway, const char *model)
{
    const struct pool_model *found = pool_model(&gateway->pool, model);
    return found ? found->name : model ? model : "";
}

/* Most tokens of an answer where a request does not say: what the option has, but no more than half of the
 * model's context. Where the pool has not told that, no more than what it takes itself where nothing is said:
 * 256. */
static inline uint32_t gateway_max_tokens(const struct gateway *gateway, const char *model)
{
    const struct pool_model *found = pool_model(&gateway->pool, model);
    uint32_t half = found && found->context > 1 ? found->context / 2 : 256;
    return half < gateway->options.max_tokens ? half : gateway->options.max_tokens;
}

#endif
