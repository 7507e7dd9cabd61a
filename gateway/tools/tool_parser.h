/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_TOOLS_TOOL_PARSER_H
#define GATEWAY_TOOLS_TOOL_PARSER_H

/* Calls of tools out of the text of an answer, while it comes, in the form that its model has.
 *
 * Text is handed on as soon as it cannot be the beginning of a call any more. What looks like a call and
 * turns out to be none is text. */

#include "common/bytes.h"
#include "gateway/tools/tool_form.h"
#include "text/dialect/call_object.h"

/* Callbacks, in order: text; a call by its name, then its arguments (JSON, in pieces), then its end. */
struct tool_sink {
    void (*text)(void *arg, struct bytes text);
    void (*call)(void *arg, const char *name);
    void (*arguments)(void *arg, struct bytes json);
    void (*end)(void *arg);
    void *arg;
};

struct tool_parser {
    const struct tool_form *form;
    const char *const *names; /* [n_names] the tools that there are; borrowed */
    size_t n_names;
    int place;          /* tool_parser.c's */
    struct buffer held; /* what came and is not decided */
    struct buffer raw;  /* what would be text if this were no call */
    struct call_object object;
    bool begun;  /* the call was told */
    bool any;    /* so was one before, or this */
    bool failed; /* memory was short */
};

void tool_parser_init(struct tool_parser *parser, const struct tool_form *form, const char *const *names,
                      size_t n_names);
void tool_parser_deinit(struct tool_parser *parser);

/* Takes what comes. 0 or -ENOMEM. */
int tool_parser_push(struct tool_parser *parser, struct bytes text, const struct tool_sink *sink);

/* Nothing comes any more: a call that is not whole ends here, and what was held is text. 0 or -ENOMEM. */
int tool_parser_finish(struct tool_parser *parser, const struct tool_sink *sink);

#endif
