/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_GRAMMAR_H
#define GATEWAY_FORMS_GRAMMAR_H

/* Constraints on answers, as each API expresses them. The pool validates grammars and schemas. */

#include "gateway/core/parameters.h"

/* Takers, whose `into` is a struct parameters. They reject a second grammar in one request. */
json_row_take grammar_response_format; /* OpenAI: {"type": "json_schema", "json_schema": {"schema": …}} */
json_row_take grammar_format;          /* Ollama: "json", or a schema */
json_row_take grammar_structured_outputs;  /* vLLM: {"json": …} or regex or grammar */
json_row_take grammar_schema;              /* a schema, as an object or as text */
json_row_take grammar_regex, grammar_gbnf; /* a text */

/* Rows of the OpenAI family, including the names used by llama-server and vLLM. */
/* clang-format off */
#define GRAMMAR_ROWS                                                                                         \
    {"response_format", grammar_response_format, NULL, 0},                                                   \
    {"grammar", grammar_gbnf, NULL, 0},                                                                      \
    {"regex", grammar_regex, NULL, 0},                                                                       \
    {"json_schema", grammar_schema, NULL, 0},                                                                \
    {"guided_json", grammar_schema, NULL, 0},                                                                \
    {"guided_regex", grammar_regex, NULL, 0},                                                                \
    {"guided_grammar", grammar_gbnf, NULL, 0},                                                               \
    {"structured_outputs", grammar_structured_outputs, NULL, 0}
/* clang-format on */

/* Turns a schema that is read as closed into a GBNF with that schema as its root, unless tools do this: its
 * members come in order, with no others unless it allows them. 0 or REFUSED. */
int grammar_close(struct parameters *parameters, struct refusal *refusal);

#endif
