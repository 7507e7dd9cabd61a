/* SPDX-License-Identifier: MIT */
/* /v1/models: what the pool serves, as it said last. */

#include "gateway/forms/openai/models.h"

#include "gateway/forms/models_list.h"

static void write_model(const struct gateway *gateway, const struct pool_model *model, struct json_out *out)
{
    json_out_text(out, "{\"id\":");
    json_out_name(out, model->name);
    json_out_text(out, ",\"object\":\"model\",\"created\":");
    json_out_number(out, gateway->started);
    json_out_text(out, ",\"owned_by\":\"quern\",\"ready\":");
    json_out_bool(out, model->ready > 0);
    if (model->context > 0) {
        json_out_text(out, ",\"context_length\":");
        json_out_number(out, model->context);
        json_out_text(out, ",\"max_model_len\":");
        json_out_number(out, model->context);
    }
    json_out_text(out, "}");
}

void models_handle(struct exchange *exchange)
{
    models_list(exchange, "{\"object\":\"list\",\"data\":[", write_model, "]}");
}

void models_handle_one(struct exchange *exchange)
{
    const struct gateway *gateway = exchange->gateway;
    const struct pool_model *model = fleet_model(&gateway->fleet, exchange->rest);
    struct refusal refusal;
    struct json_out out = {0};
    int r = fleet_check(&gateway->fleet, NULL, &refusal);
    if (r == 0 && !model)
        r = refuse(&refusal, 404, "model_not_found", "model", "the model \"%.128s\" does not exist",
                   exchange->rest);
    if (r != 0) {
        exchange_refuse(exchange, &refusal);
        return;
    }
    write_model(gateway, model, &out);
    exchange_reply_json(exchange, 200, &out);
}
