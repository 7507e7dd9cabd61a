/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_ANSWER_INSIDE_H
#define TEXT_DIALECT_ANSWER_INSIDE_H

/* What the files of the answer parser share. Every function that takes from what is held returns whether it
 * took something or changed the place, so that it is worth going on, unless it says otherwise. */

#include "text/dialect/answer_match.h"
#include "text/dialect/answer_parser.h"

enum { HEAD, TEXT, THOUGHT, CALL, AFTER };                                       /* place */
enum { STEP_TEXT, STEP_NAME, STEP_ID, STEP_INDEX, STEP_OBJECT, STEP_ARGUMENTS }; /* kind of a step */

static inline struct bytes answer_held(const struct answer_parser *parser)
{
    return (struct bytes){parser->held.data, parser->held.len};
}

/* Takes bytes from the front of what is held. Before a call is told they are kept: they may turn out to be
 * text. */
static inline void answer_take_held(struct answer_parser *parser, size_t n)
{
    if (!parser->begun && buffer_append(&parser->raw, parser->held.data, n) < 0)
        parser->failed = true;
    buffer_consume(&parser->held, n);
}

/* Tells text, if there is any. */
static inline void answer_tell(struct answer_parser *parser, const struct answer_sink *sink, const void *data,
                               size_t len)
{
    if (len == 0)
        return;
    parser->at_head = parser->trims = false;
    sink->text(sink->arg, (struct bytes){data, len});
}

/* ---- call_steps.c ---- */

/* Sets the steps of a call, its mark, and what may stand before one. 0; -EINVAL: a call has more steps than
 * there is room for. */
int call_steps_set(struct answer_parser *parser);

/* ---- call_members.c ---- */

/* Reads parameters from what is held, as far as it goes; hands on what is known. MATCH_WHOLE: the arguments
 * have ended, and the call's tail is next; MATCH_NONE: it is no parameter. */
int call_members_step(struct answer_parser *parser, const struct answer_sink *sink);

/* ---- answer_call.c ---- */

/* A call may begin: at this step, with the next byte that is held. */
void answer_call_begin(struct answer_parser *parser, size_t step);

bool answer_call_is_tool(const struct answer_parser *parser, const char *name);

/* Inside a call. */
bool answer_call_step(struct answer_parser *parser, const struct answer_sink *sink);

/* Behind a call: another one, the end of them all, or text. */
bool answer_call_after(struct answer_parser *parser, const struct answer_sink *sink);

#endif
