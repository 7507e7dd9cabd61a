/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_GATEWAY_H
#define GATEWAY_CORE_GATEWAY_H

/* The gateway's state, as handlers see it. */

#include "gateway/core/counters.h"
#include "gateway/http/exchange.h"
#include "gateway/http/keys.h"
#include "gateway/core/options.h"
#include "gateway/core/pulses.h"
#include "gateway/fleet/fleet.h"
#include "gateway/sharing/sharing.h"

struct body_reader;
struct exporter;

struct gateway {
    struct options options;
    struct keys keys;
    struct fleet fleet;
    struct sharing sharing; /* of the keys' limits between gateways */
    struct counters counters;
    struct stream_limits streams;
    struct pulses pulses; /* of silent streams */
    struct budget bodies; /* of requests: incoming bytes, and parsed parameters still in use */
    size_t body_bytes;    /* limit of one body */
    struct body_reader *body_reader;
    struct question *questions; /* unanswered questions for a tokenizer (forms/questions/question.h) */
    struct request_log request_log;
    struct exporter *exporter; /* of spans (telemetry/exporter.h); NULL: none */
    int64_t started;           /* seconds since 1970 */
    bool draining;             /* no new work is accepted */
    bool retired;              /* another gateway takes new connections; those here end one by one */
    uint32_t working;          /* exchanges between their request and the end of their answer */
};

/* The budget in which the body of an exchange counts. */
static inline struct budget *exchange_bodies(const struct exchange *exchange)
{
    return exchange->key ? &exchange->key->bodies : &exchange->gateway->bodies;
}

/* Whether requests for this model (NULL: any) can be accepted now: 0, or REFUSED with 503 or 404. */
static inline int gateway_check(const struct gateway *gateway, const char *model, struct refusal *refusal)
{
    if (gateway->draining) {
        refuse(refusal, 503, "draining", NULL, "the gateway is shutting down");
        refusal->retry_after_s = 1;
        return REFUSED;
    }
    return fleet_check(&gateway->fleet, model, refusal);
}

/* The model name in the answer, after gateway_check: the requested one, or the only one. Valid until the
 * next dispatch. */
static inline const char *gateway_model(const struct gateway *gateway, const char *model)
{
    const struct pool_model *found = fleet_model(&gateway->fleet, model);
    return found ? found->name : model ? model : "";
}

/* The most tokens of each of n answers without max_tokens: to the end of the model's context, but no more
 * than the option's value and the pool's, and in total no more than the key's limit. Only the worker knows
 * how much room the prompt leaves, so such a request has fit_context. */
static inline uint32_t gateway_max_tokens(const struct gateway *gateway, const char *model,
                                          const struct key *key, uint32_t n)
{
    const struct pool_model *found = fleet_model(&gateway->fleet, model);
    const uint32_t of_pools = fleet_max_tokens(&gateway->fleet);
    uint32_t most = gateway->options.max_tokens ? gateway->options.max_tokens : INT32_MAX;
    if (of_pools > 0 && of_pools < most)
        most = of_pools;
    if (found && found->context > 0 && found->context < most)
        most = found->context;
    if (key && key->most_tokens >= n && key->most_tokens / n < most)
        most = (uint32_t)(key->most_tokens / n);
    return most;
}

#endif
