/* SPDX-License-Identifier: MIT */
/* /props: the parameters of sampling that are in force, and who said so, from what the first worker that
 * serves said of itself. A pool has one model, and its workers one set of options. */

#include "gateway/watch/props.h"

#include <string.h>

#include "common/sampling_defaults.h"
#include "gateway/core/gateway.h"
#include "gateway/core/named_pool.h"

static const struct quern_worker *first_that_serves(const struct quern_status *status)
{
    for (size_t i = 0; i < status->n_workers; i++)
        if (status->workers[i].sampling[0] && strcmp(status->workers[i].state, "failed") != 0)
            return &status->workers[i];
    return NULL;
}

static void write_member(const char *before, const char *name, struct json_out *out)
{
    json_out_text(out, before);
    json_out_name(out, name);
    json_out_text(out, ":");
}

void props_handle(struct exchange *exchange)
{
    const struct fleet_pool *pool;
    const struct quern_status *status;
    struct refusal refusal;
    struct json_out out = {0};
    struct sampling_defaults defaults;
    int r = named_pool_status(exchange, &pool, &status, &refusal);
    const struct quern_worker *worker = r == 0 ? first_that_serves(status) : NULL;
    if (r == 0 && !worker)
        r = refuse(&refusal, 503, "loading", NULL, "no worker has reported its model yet");
    if (r != 0) {
        exchange_refuse(exchange, &refusal);
        return;
    }
    sampling_defaults_read(bytes_of_string(worker->sampling), &defaults);
    json_out_text(&out, "{\"default_generation_settings\":{\"n_ctx\":");
    json_out_number(&out, worker->context);
    json_out_text(&out, ",\"params\":");
    for (size_t i = 0; i < SAMPLING_N; i++) {
        write_member(i ? "," : "{", sampling_name(i), &out);
        json_out_real(&out, defaults.values[i]);
    }
    json_out_text(&out, "}},\"sampling_sources\":");
    for (size_t i = 0; i < SAMPLING_N; i++) {
        write_member(i ? "," : "{", sampling_name(i), &out);
        json_out_name(&out, sampling_source_name(defaults.sources[i]));
    }
    json_out_text(&out, "},\"total_slots\":");
    json_out_number(&out, worker->slots);
    json_out_text(&out, ",\"model_alias\":");
    json_out_name(&out, worker->model);
    json_out_text(&out, ",\"build_info\":\"quern " QUERN_VERSION "\"}");
    exchange_reply_json(exchange, 200, &out);
}
