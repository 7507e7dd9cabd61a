/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_TOOL_FORM_H
#define TEXT_TEMPLATE_TOOL_FORM_H

/* In which form a model calls tools, as far as its chat template shows it. Whoever reads the answers knows
 * the forms by their names; PROTOCOL.md lists them. */

#include "common/bytes.h"

#define TOOL_FORM_MOST_MARKS 2

struct tool_form {
    const char *name;  /* "hermes" */
    const char *shows; /* what only templates of this form contain */
    const char
        *marks[TOOL_FORM_MOST_MARKS]; /* control tokens around calls, where the vocabulary has them; NULL */
};

/* The form of a template; NULL: it has none, or looks at no tools. */
const struct tool_form *tool_form_of(struct bytes source);

#endif
