/* SPDX-License-Identifier: MIT */
/* See models_list.h. The models are those of the last status. */

#include "gateway/forms/models_list.h"

void models_list(struct exchange *exchange, const char *begin, model_writer *write, const char *end)
{
    const struct gateway *gateway = exchange->gateway;
    struct refusal refusal;
    struct json_out out = {0};
    if (fleet_check(&gateway->fleet, NULL, &refusal) != 0) {
        exchange_refuse(exchange, &refusal);
        return;
    }
    json_out_text(&out, begin);
    size_t n;
    const struct pool_model *models = fleet_models(&gateway->fleet, &n);
    for (size_t i = 0; i < n; i++) {
        json_out_text(&out, i ? "," : "");
        write(gateway, &models[i], &out);
    }
    json_out_text(&out, end);
    exchange_reply_json(exchange, 200, &out);
}
