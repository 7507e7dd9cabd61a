/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_ANSWER_PARSER_H
#define TEXT_DIALECT_ANSWER_PARSER_H

/* Text, thoughts and calls of tools out of an answer, while it comes, in the dialect of its model.
 *
 * Text is handed on as soon as it cannot be the beginning of anything else. What looks like a call and turns
 * out to be none is text. White space between marks may be other than the template's. */

#include <jansson.h>

#include "common/bytes.h"
#include "text/dialect/call_object.h"
#include "text/dialect/dialect.h"

/* A tool that may be called. */
struct dialect_tool {
    const char *name;
    const json_t *schema; /* of its arguments, for dialects that do not quote texts; NULL: any */
};

/* Callbacks, in order: text; a thought; a call by its name, then its arguments (JSON, in pieces), then its
 * end. */
struct answer_sink {
    void (*text)(void *arg, struct bytes text);
    void (*thought)(void *arg, struct bytes text);
    void (*call)(void *arg, const char *name);
    void (*arguments)(void *arg, struct bytes json);
    void (*end)(void *arg);
    void *arg;
};

/* Of a call that dialect_check accepts: each place parts a text in two; and its name and arguments. */
#define ANSWER_MOST_STEPS (4 + 2 * DIALECT_MOST_PLACES + 2)

/* A part of a call, as it is written. */
struct call_step {
    int kind; /* answer_inside.h's */
    struct bytes text;
};

/* One parameter on its way, where they are written one by one (call_members.c). */
struct call_members {
    int place;
    bool any, is_text;
    char quote;           /* of the text inside a bare value; 0: outside of one */
    bool only_json;       /* the schema allows no text here: marks inside of strings do not count */
    size_t looked;        /* so far into what is held: no end of the value there */
    struct buffer key;    /* zero-terminated once it is known */
    struct buffer behind; /* what ends the value, with the key in it */
    struct buffer json;   /* to be handed on */
};

struct answer_parser {
    const struct model_dialect *dialect;
    const struct dialect_tool *tools; /* [n_tools] borrowed */
    size_t n_tools;
    bool calls, thoughts, parts; /* are looked for: calls, thoughts, marks around text */
    struct call_step steps[ANSWER_MOST_STEPS];
    size_t n_steps, head, arguments; /* steps: in all; where a call's head begins; its arguments */
    const char *mark;                /* the first word of a call; "": it has none */
    size_t mark_len;
    struct bytes header_end; /* the mark that ends what stands before a part of the answer; empty: none */
    bool marked_between;     /* the mark is what parts calls */
    bool marked;             /* calls may begin anywhere; else only where the answer or a part of it begins */
    int place;               /* answer_inside.h's */
    size_t step;             /* inside a call */
    bool at_head;            /* nothing of the text has come */
    bool trims;              /* and blanks before it say nothing */
    struct buffer held;      /* what came and is not decided */
    struct buffer raw;       /* what would be text if this were no call */
    struct buffer name;      /* zero-terminated */
    struct call_object object;
    struct call_members members;
    uint32_t depth; /* of the arguments, which are JSON */
    bool in_string, escaped;
    bool begun;  /* the call was told */
    bool any;    /* so was one before, or this */
    bool failed; /* memory was short */
};

/* What is looked for, and where the prompt leaves the model. 0; -EINVAL: calls of the dialect have more than
 * ANSWER_MOST_STEPS steps, which those that dialect_read accepts do not. deinit is due either way. */
int answer_parser_init(struct answer_parser *parser, const struct model_dialect *dialect,
                       const struct dialect_tool *tools, size_t n_tools, bool calls, bool thoughts,
                       enum dialect_start start);
void answer_parser_deinit(struct answer_parser *parser);

/* Takes what comes. 0 or -ENOMEM. */
int answer_parser_push(struct answer_parser *parser, struct bytes text, const struct answer_sink *sink);

/* Nothing comes any more: a call that is not whole ends here, and what was held is text. 0 or -ENOMEM. */
int answer_parser_finish(struct answer_parser *parser, const struct answer_sink *sink);

/* Whether what comes next belongs to a thought. */
bool answer_parser_thinks(const struct answer_parser *parser);

#endif
