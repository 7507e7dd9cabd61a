/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_CONVERSATION_H
#define GATEWAY_FORMS_CONVERSATION_H

/* Reads messages of a conversation, as OpenAI's and Ollama's clients write them, into a request. */

#include "gateway/core/parameters.h"

json_row_take conversation_messages; /* [{role, content, tool_calls, tool_call_id …}] */
json_row_take conversation_system;   /* a text, or an array of parts */

/* A text, or an array of parts {type: "text", text} joined; zero-terminated, valid as long as the
 * parameters. */
int conversation_content(struct parameters *parameters, const char *path, json_t *value,
                         const char **ret_text, struct refusal *refusal);

#endif
