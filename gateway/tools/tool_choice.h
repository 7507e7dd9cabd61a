/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_TOOLS_TOOL_CHOICE_H
#define GATEWAY_TOOLS_TOOL_CHOICE_H

/* Whether the model should call tools, which of them, and how many at once. */

#include "gateway/core/parameters.h"

/* Takers, whose `into` is a struct parameters. */
json_row_take tool_choice_openai;    /* "none", "auto", "required", a function, allowed_tools */
json_row_take tool_choice_anthropic; /* {type: "none", "auto", "any", "tool", disable_parallel_tool_use} */
json_row_take tool_choice_parallel;  /* false: one call at most */

/* Call it when everything is read: finds the tools that the choice names, and bars the others. 0 or
 * REFUSED. */
int tool_choice_finish(struct parameters *parameters, struct refusal *refusal);

#endif
