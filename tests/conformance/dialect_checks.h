/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_DIALECT_CHECKS_H
#define TESTS_CONFORMANCE_DIALECT_CHECKS_H

/* Checks of a dialect. A check that fails prints the reason on stdout and returns false. */

#include "text/dialect/derive/derive.h"
#include "text/template/chat_template.h"

struct dialect_case {
    struct buffer source;
    struct chat_template *chat_template;
    struct model_dialect dialect;
};

/* Reads a template and derives its dialect. Call dialect_case_close in any case. */
bool dialect_case_open(struct dialect_case *test, const char *path);
void dialect_case_close(struct dialect_case *test);

/* Whether the form of its calls is known, or it supports no tools. */
bool dialect_case_understood(const struct dialect_case *test);

bool check_parsing(const struct dialect_case *test);
bool check_forced_calls(const struct dialect_case *test);
bool check_text(const struct dialect_case *test);
/* Checks the end of a thought that is cut off. */
bool check_thought_end(const struct dialect_case *test);

#endif
