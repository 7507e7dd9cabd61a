/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_ANSWER_INSIDE_H
#define TEXT_DIALECT_ANSWER_INSIDE_H

/* Private to the answer parser's files. Functions that consume held bytes return whether they consumed some
 * or changed the place, so that another round is useful, unless stated otherwise. */

#include "text/dialect/answer_match.h"
#include "text/dialect/answer_parser.h"

enum { HEAD, TEXT, THOUGHT, CALL, AFTER };                                       /* place */
enum { STEP_TEXT, STEP_NAME, STEP_ID, STEP_INDEX, STEP_OBJECT, STEP_ARGUMENTS }; /* kind of a step */

static inline struct bytes answer_held(const struct answer_parser *parser)
{
    return (struct bytes){parser->held.data, parser->held.len};
}

/* Consumes held bytes from the front. Until a call is reported they are kept in `raw`: they may turn out to
 * be text. */
static inline void answer_take_held(struct answer_parser *parser, size_t n)
{
    if (!parser->begun && buffer_append(&parser->raw, parser->held.data, n) < 0)
        parser->failed = true;
    buffer_consume(&parser->held, n);
}

/* Reports text, if there is any. */
static inline void answer_tell(struct answer_parser *parser, const struct answer_sink *sink, const void *data,
                               size_t len)
{
    if (len == 0)
        return;
    parser->at_head = parser->trims = false;
    sink->text(sink->arg, (struct bytes){data, len});
}

/* ---- call_steps.c ---- */

/* Sets the steps of a call, its mark, and the header end that may precede it. 0; -EINVAL: a call has too many
 * steps. */
int call_steps_set(struct answer_parser *parser);

/* ---- call_members.c ---- */

/* Reads parameters from the held bytes as far as possible, and reports them. MATCH_WHOLE: the arguments have
 * ended, and the call's tail is next; MATCH_NONE: it is no parameter. */
int call_members_step(struct answer_parser *parser, const struct answer_sink *sink);

/* ---- answer_call.c ---- */

/* A call may begin: at this step, with the next held byte. */
void answer_call_begin(struct answer_parser *parser, size_t step);

bool answer_call_is_tool(const struct answer_parser *parser, const char *name);

/* Inside a call. */
bool answer_call_step(struct answer_parser *parser, const struct answer_sink *sink);

/* After a call: another one, the end of all calls, or text. */
bool answer_call_after(struct answer_parser *parser, const struct answer_sink *sink);

#endif
