/* SPDX-License-Identifier: MIT */
/* Tokens a minute are a bucket: it holds a minute's, is full at first, fills as time goes by, and may be
 * overdrawn by what runs. So a client may have a minute's at once, and on average no more than that. */

#include "broker/settings/allowance.h"

#include "common/amount.h"
#include "common/clock.h"

#define MINUTE_NS (60 * CLOCK_NS_PER_S)

enum proto_error allowance_check_session(const struct allowance *allowance, const struct client_key *key,
                                         struct error *reason)
{
    if (!key || allowance->sessions == 0 || key->sessions < allowance->sessions)
        return PROTO_OK;
    return error_set(reason, PROTO_OVERLOADED,
                     "this client's key has %s open; at most %u are allowed (client-sessions)",
                     amount_of(key->sessions, "session").text, allowance->sessions);
}

enum proto_error allowance_check_subscription(const struct allowance *allowance, const struct client_key *key,
                                              uint32_t subscriptions, struct error *reason)
{
    if (!key || allowance->subscriptions == 0 || subscriptions < allowance->subscriptions)
        return PROTO_OK;
    return error_set(reason, PROTO_OVERLOADED,
                     "this client's key has %s of the stream; at most %u are allowed (client-subscriptions)",
                     amount_of(subscriptions, "subscription").text, allowance->subscriptions);
}

/* Brings the bucket up to date. */
static void fill(const struct allowance *allowance, struct client_key *key, uint64_t now)
{
    double most = allowance->tokens;
    if (key->filled_ns == 0)
        key->tokens = most;
    else
        key->tokens += most * (double)(now - key->filled_ns) / (double)MINUTE_NS;
    key->filled_ns = now;
    if (key->tokens > most)
        key->tokens = most;
}

enum proto_error allowance_check_tokens(const struct allowance *allowance, struct client_key *key,
                                        uint64_t now, uint32_t *ret_retry_ms, struct error *reason)
{
    if (!key || allowance->tokens == 0)
        return PROTO_OK;
    fill(allowance, key, now);
    if (key->tokens > 0)
        return PROTO_OK;
    double wait_ms = (1 - key->tokens) * 60000.0 / allowance->tokens + 1;
    *ret_retry_ms = wait_ms < UINT32_MAX ? (uint32_t)wait_ms : UINT32_MAX;
    return error_set(reason, PROTO_OVERLOADED,
                     "this client's key has used its %u tokens a minute (client-tokens): more in %u s",
                     allowance->tokens, *ret_retry_ms / 1000 + 1);
}

void allowance_charge(const struct allowance *allowance, struct client_key *key, uint64_t tokens,
                      uint64_t now)
{
    if (!key || allowance->tokens == 0)
        return;
    fill(allowance, key, now);
    key->tokens -= (double)tokens;
}
