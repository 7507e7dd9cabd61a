/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_TOOLS_TOOL_FORM_H
#define GATEWAY_TOOLS_TOOL_FORM_H

/* In which forms models call tools: how their calls are found in an answer (tool_parser.h), and what an
 * answer is made of that has to be a call (tool_grammar.h). The pool says by a name which form a model has.
 */

#include <stdbool.h>

struct tool_form {
    const char *name;
    const char *open, *close;             /* marks around calls; NULL: none */
    const char *name_key, *arguments_key; /* members of a call */
    bool list;                            /* an array of calls, else one */
    bool at_start;                        /* only where the answer begins, and the mark may be missing */
    /* As its models write them, in GBNF: what is before the first call, between two, behind the last; a call
     * up to the text of its name, and from there to its arguments. No `between`: one call an answer. */
    const char *before, *between, *behind;
    const char *head, *to_arguments;
};

/* The form of that name; NULL: none that is known. */
const struct tool_form *tool_form_find(const char *name);

#endif
