/* SPDX-License-Identifier: MIT */
/* /health: for whoever starts, watches and balances gateways. */

#include "gateway/watch/health.h"

#include <string.h>

#include "gateway/core/gateway.h"

static void reply(struct exchange *exchange, unsigned status, const char *state, const char *reason)
{
    struct json_out out = {0};
    json_out_text(&out, "{\"status\":");
    json_out_name(&out, state);
    if (reason) {
        json_out_text(&out, ",\"reason\":");
        json_out_name(&out, reason);
    }
    json_out_text(&out, "}");
    exchange_reply_json(exchange, status, &out);
}

void health_handle(struct exchange *exchange)
{
    const struct gateway *gateway = exchange->gateway;
    struct refusal refusal;
    if (gateway_check(gateway, NULL, &refusal) != 0)
        reply(exchange, 503, strcmp(refusal.code, "loading") == 0 ? "loading" : "unavailable", refusal.text);
    else if (!fleet_is_ready(&gateway->fleet))
        reply(exchange, 503, "loading", "no worker is ready");
    else if (fleet_is_cut_off(&gateway->fleet))
        reply(exchange, 503, "unavailable", "most pools stopped responding at the same time");
    else
        reply(exchange, 200, "ok", NULL);
}

void health_handle_live(struct exchange *exchange)
{
    reply(exchange, 200, "ok", NULL);
}
