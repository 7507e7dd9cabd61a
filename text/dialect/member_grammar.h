/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_MEMBER_GRAMMAR_H
#define TEXT_DIALECT_MEMBER_GRAMMAR_H

/* The part of a grammar for a tool's parameters, if they are written one by one. */

#include "text/dialect/call_grammar.h"
#include "text/dialect/grammar_text.h"

/* Writes the rule arguments-I and the rules that it needs. Results as call_grammar_write. */
int member_grammar_write(struct grammar_text *out, const struct dialect_calls *calls,
                         const struct grammar_tool *tool, size_t i, struct error *err);

#endif
