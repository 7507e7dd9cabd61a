/* SPDX-License-Identifier: MIT */
/* See show.h. Clients look at what a model can do, and how long its context is; the rest is empty here: model
 * files, their families and quantizations are the pool's business. */

#include "gateway/forms/ollama/show.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/core/gateway.h"
#include "gateway/core/parameters.h"
#include "gateway/forms/body_reader.h"
#include "gateway/forms/models_list.h"
#include "gateway/forms/ollama/ollama.h"
#include "text/dialect/dialect.h"

#define DETAILS                                                                                              \
    "\"details\":{\"parent_model\":\"\",\"format\":\"gguf\",\"family\":\"\",\"families\":[],"                \
    "\"parameter_size\":\"\",\"quantization_level\":\"\"}"

static const struct json_row show_rows[] = {
    {"model", ollama_take_model, NULL, 0},
    {"name", ollama_take_model, NULL, 0},
    {"verbose", json_in_ignore, NULL, 0},
    {0},
};

/* What the model can do, as its dialect tells. */
static void write_capabilities(const struct pool_model *model, struct json_out *out)
{
    struct model_dialect dialect;
    struct error err = {0};
    dialect_init(&dialect);
    if (model->ranks) { /* for which Ollama has no word */
        json_out_text(out, "\"capabilities\":[]");
        dialect_deinit(&dialect);
        return;
    }
    json_out_text(out, "\"capabilities\":[\"completion\"");
    if (model->dialect && dialect_read(bytes_of_string(model->dialect), &dialect, &err) == 0) {
        json_out_text(out, dialect.calls.known ? ",\"tools\"" : "");
        json_out_text(out, dialect.thoughts.known ? ",\"thinking\"" : "");
    }
    json_out_text(out, model->embedding > 0 ? ",\"embedding\"]" : "]");
    dialect_deinit(&dialect);
}

static void show(struct exchange *exchange, const struct pool_model *model)
{
    struct json_out out = {0};
    json_out_text(&out, "{\"license\":\"\",\"modelfile\":\"\",\"parameters\":\"\",\"template\":\"\"," DETAILS
                        ",\"model_info\":{\"general.architecture\":\"quern\",\"quern.context_length\":");
    json_out_number(&out, model->context);
    json_out_text(&out, "},");
    write_capabilities(model, &out);
    json_out_text(&out, "}");
    exchange_reply_json(exchange, 200, &out);
}

struct show_reading {
    struct body_reading reading;
    struct parameters parameters;
};

static int finish(struct body_reading *reading, struct refusal *refusal)
{
    const struct parameters *parameters = reading->into;
    return parameters->request.model ? 0 : refuse_value(refusal, "model", "model is missing");
}

static void on_read(struct body_reading *reading)
{
    struct show_reading *asked = (struct show_reading *)reading;
    struct exchange *exchange = reading->exchange;
    const char *name = asked->parameters.request.model;
    struct refusal refusal;
    if (exchange && fleet_check(&exchange->gateway->fleet, name, &refusal) != 0)
        exchange_refuse(exchange, &refusal);
    else if (exchange)
        show(exchange, fleet_model(&exchange->gateway->fleet, name));
    parameters_deinit(&asked->parameters);
    free(asked);
}

void ollama_handle_show(struct exchange *exchange)
{
    struct refusal refusal;
    struct show_reading *asked = calloc(1, sizeof *asked);
    if (!asked) {
        parameters_out_of_memory(&refusal);
        exchange_refuse(exchange, &refusal);
        return;
    }
    parameters_init(&asked->parameters);
    asked->reading = (struct body_reading){
        .rows = show_rows, .into = &asked->parameters, .finish = finish, .then = on_read};
    body_read(exchange, &asked->reading);
}

static void write_loaded(const struct gateway *gateway, const struct pool_model *model, struct json_out *out)
{
    json_out_text(out, "{\"name\":");
    json_out_name(out, model->name);
    json_out_text(out, ",\"model\":");
    json_out_name(out, model->name);
    json_out_text(out, ",\"size\":0,\"digest\":\"\"," DETAILS
                       ",\"expires_at\":\"9999-12-31T23:59:59Z\",\"size_vram\":0,\"context_length\":");
    json_out_number(out, model->context);
    json_out_text(out, "}");
}

void ollama_handle_ps(struct exchange *exchange)
{
    models_list(exchange, "{\"models\":[", write_loaded, "]}");
}
