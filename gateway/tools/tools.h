/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_TOOLS_TOOLS_H
#define GATEWAY_TOOLS_TOOLS_H

/* The tools that a client offers, and calls of earlier messages, as chat templates expect them: JSON in
 * OpenAI's form, whatever the client's form is. */

#include "gateway/core/parameters.h"

json_row_take tools_take; /* [{type: "function", function: {name, description, parameters, strict}}] */
json_row_take
    tools_take_anthropic; /* the same in Anthropic's form: [{name, description, input_schema, strict}] */

/* The calls of an assistant's message: [{id, type, function: {name, arguments}}]. */
int tools_take_calls(struct parameters *parameters, const char *path, json_t *value, const char **ret_calls,
                     struct refusal *refusal);

#endif
