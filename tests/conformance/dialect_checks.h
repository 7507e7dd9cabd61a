/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_DIALECT_CHECKS_H
#define TESTS_CONFORMANCE_DIALECT_CHECKS_H

/* What a dialect has to be good for. Each check says on stdout what is wrong, and returns false then. */

#include "text/dialect/derive/derive.h"
#include "text/template/chat_template.h"

struct dialect_case {
    struct buffer source;
    struct chat_template *chat_template;
    struct model_dialect dialect;
};

/* Reads a template and derives its dialect; close is due either way. */
bool dialect_case_open(struct dialect_case *test, const char *path);
void dialect_case_close(struct dialect_case *test);

/* Whether its calls are known, or it knows no tools. */
bool dialect_case_understood(const struct dialect_case *test);

bool check_parsing(const struct dialect_case *test);
bool check_forced_calls(const struct dialect_case *test);
bool check_text(const struct dialect_case *test);
/* The end of a thought that is cut off. */
bool check_thought_end(const struct dialect_case *test);

#endif
