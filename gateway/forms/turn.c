/* SPDX-License-Identifier: MIT */
/* See turn.h. A request without messages has no dialect: its answer is text. */

#include "gateway/forms/turn.h"

#include <errno.h>
#include <string.h>

#include "gateway/core/gateway.h"
#include "gateway/forms/thinking.h"
#include "gateway/tools/tool_grammar.h"

/* The dialect of a request's model, where the answer is a turn of a conversation. 0, or REFUSED. */
static int read_dialect(const struct gateway *gateway, const struct parameters *parameters,
                        struct model_dialect *dialect, struct refusal *refusal)
{
    const struct pool_model *model = fleet_model(&gateway->fleet, parameters->request.model);
    struct error err = {0};
    if (!parameters->request.messages || !model || !model->dialect)
        return 0;
    if (dialect_read(bytes_of_string(model->dialect), dialect, &err) == 0)
        return 0;
    return refuse(refusal, 500, "internal_error", NULL, "%s", err.text);
}

static int check_tools(const struct gateway *gateway, const struct parameters *parameters,
                       const struct model_dialect *dialect, struct refusal *refusal)
{
    const struct pool_model *model = fleet_model(&gateway->fleet, parameters->request.model);
    if (!parameters->request.tools || dialect->calls.known)
        return 0;
    return refuse(refusal, 400, "unsupported_parameter", "tools",
                  "tools: unknown how the model \"%.128s\" calls them: %s", model ? model->name : "",
                  dialect->calls.reason[0] ? dialect->calls.reason : "it has no chat template");
}

int turn_apply(const struct gateway *gateway, struct parameters *parameters, struct model_dialect *dialect,
               struct refusal *refusal)
{
    parameters->has_default_budget = gateway->options.thinking_budget != OPTIONS_NO_BUDGET;
    parameters->default_budget = gateway->options.thinking_budget;
    if (read_dialect(gateway, parameters, dialect, refusal) != 0 ||
        thinking_set(parameters, dialect, refusal) != 0 ||
        check_tools(gateway, parameters, dialect, refusal) != 0)
        return REFUSED;
    const bool parts = dialect->thoughts.known || dialect->content_open[0];
    parameters->request.marks = parameters->request.messages && parts;
    return 0;
}

int turn_constrain(struct parameters *parameters, const struct model_dialect *dialect,
                   struct refusal *refusal)
{
    return parameters->request.tools ? tool_grammar_set(parameters, dialect, refusal)
                                     : tool_grammar_after_thought(parameters, dialect, refusal);
}

/* Parsers look at tools for as long as answers come, and at their schemas where a dialect does not tell texts
 * from other values. 0 or -ENOMEM. */
static int keep_tools(struct generation *generation, const struct parameters *parameters)
{
    const bool by_schema = generation->model_dialect.calls.arguments == DIALECT_MEMBERS;
    const size_t n = parameters->request.tools ? parameters->n_tools : 0;
    struct dialect_tool *tools = n > 0 ? arena_take(&generation->arena, n, sizeof *tools) : NULL;
    generation->schemas = n > 0 && by_schema ? json_array() : NULL;
    for (size_t i = 0; i < n && tools; i++) {
        const struct offered_tool *offered = &parameters->tools[i];
        char *name = arena_take(&generation->arena, strlen(offered->name) + 1, 1);
        json_t *schema = NULL;
        if (name && by_schema)
            schema = offered->schema ? json_loads(offered->schema, 0, NULL) : json_object();
        if (!name || (by_schema && json_array_append_new(generation->schemas, schema) < 0))
            return -ENOMEM;
        tools[i] = (struct dialect_tool){strcpy(name, offered->name), schema};
    }
    generation->tools = tools;
    generation->n_tools = tools ? n : 0;
    return n > 0 && !tools ? -ENOMEM : 0;
}

int turn_expect(struct generation *generation, const struct parameters *parameters,
                struct model_dialect *dialect)
{
    generation->model_dialect = *dialect;
    dialect_init(dialect);
    generation->start = (enum dialect_start)parameters->start;
    generation->finds_calls = parameters->request.tools != NULL;
    generation->finds_thoughts = parameters->request.marks && !parameters->raw_thoughts;
    return keep_tools(generation, parameters);
}
