/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_TOOLS_TOOL_GRAMMAR_H
#define GATEWAY_TOOLS_TOOL_GRAMMAR_H

/* The grammar of an answer whose tool calls are forced or constrained (GBNF with the schemas of arguments),
 * in the dialect of the model. */

#include "gateway/core/parameters.h"
#include "text/dialect/dialect.h"

/* Sets the grammar of the request, if it needs one:
 *
 * - calls are required, or one tool is named: calls of allowed tools, with arguments by their schemas;
 * - some tools are strict or barred, or at most one call is allowed: any text, optionally followed by calls
 *   (or one call), with arguments of strict tools by their schemas;
 * - JSON is requested (response_format): that, or calls; only calls if they are required.
 *
 * A thought may come first, and must if the prompt leaves the model in one. 0 or REFUSED: a schema is not for
 * an object or cannot be enforced in this dialect, or there is already a grammar of another kind. The pool
 * checks whether it supports a schema. */
int tool_grammar_set(struct parameters *parameters, const struct model_dialect *dialect,
                     struct refusal *refusal);

/* For requested JSON, if the prompt leaves the model inside a thought: the thought's end comes first. A
 * grammar of another kind constrains the answer from its first token on, so there is no thought then. 0 or
 * REFUSED. */
int tool_grammar_after_thought(struct parameters *parameters, const struct model_dialect *dialect,
                               struct refusal *refusal);

#endif
