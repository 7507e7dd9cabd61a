/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_TOOLS_TOOL_GRAMMAR_H
#define GATEWAY_TOOLS_TOOL_GRAMMAR_H

/* What an answer has to be where calls are forced, or held to something: a grammar for the pool (GBNF, with
 * the schemas of arguments in it), in the dialect of the model. */

#include "gateway/core/parameters.h"
#include "text/dialect/dialect.h"

/* Sets the grammar of the request, where one is needed:
 *
 * - required, or one tool by its name: calls of tools that may be called, arguments by their schemas;
 * - strict tools, some that are barred, or one call at most: any text, and calls behind it if the model wants
 *   (one where at most one is allowed), arguments of strict tools by their schemas;
 * - JSON is asked for (response_format): that, or calls; calls alone where they are required.
 *
 * A thought may come first, and does where the prompt leaves the model in one. 0 or REFUSED: a schema is not
 * one of an object, or asks for what the dialect cannot hold a model to, or there is a grammar of another
 * kind already. Whether the pool supports a schema, it says itself. */
int tool_grammar_set(struct parameters *parameters, const struct model_dialect *dialect,
                     struct refusal *refusal);

/* JSON that the client asked for, where the prompt leaves the model inside a thought: the thought's end comes
 * before it. A grammar of another kind holds the answer from its first token on: then there is no thought. 0
 * or REFUSED. */
int tool_grammar_after_thought(struct parameters *parameters, const struct model_dialect *dialect,
                               struct refusal *refusal);

#endif
