/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_ANSWER_PARSER_H
#define TEXT_DIALECT_ANSWER_PARSER_H

/* Separates an answer into text, thoughts and tool calls while it is generated, in the dialect of its model.
 *
 * Text is reported as soon as it cannot be the beginning of anything else. Anything that only looks like a
 * call is text. White space between marks may differ from the template's. */

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

/* Most steps of a call that dialect_check accepts: each place divides a text in two; plus name and arguments.
 */
#define ANSWER_MOST_STEPS (4 + 2 * DIALECT_MOST_PLACES + 2)

/* A part of a call, as it is written. */
struct call_step {
    int kind; /* STEP_… in answer_inside.h */
    struct bytes text;
};

/* The current parameter, if parameters are written one by one (call_members.c). */
struct call_members {
    int place;
    bool any, is_text;
    char quote;           /* of the text inside a bare value; 0: outside a text */
    bool only_json;       /* the schema allows no text here: marks inside strings do not count */
    size_t looked;        /* held bytes already searched for the end of the value */
    struct buffer key;    /* zero-terminated once it is known */
    struct buffer behind; /* the text that ends the value, with the key in it */
    struct buffer json;   /* to be reported */
};

struct answer_parser {
    const struct model_dialect *dialect;
    const struct dialect_tool *tools; /* [n_tools] borrowed */
    size_t n_tools;
    bool calls, thoughts, parts; /* whether to search for calls, thoughts, marks around text */
    struct call_step steps[ANSWER_MOST_STEPS];
    size_t n_steps, head, arguments; /* number of steps; index of a call's head; of its arguments */
    const char *mark;                /* the first word of a call; "": it has none */
    size_t mark_len;
    struct bytes header_end; /* the mark that ends the header of a part of the answer; empty: none */
    bool marked_between;     /* the mark is the text between calls */
    bool marked;             /* calls may begin anywhere; else only at the start of the answer or of a part */
    int place;               /* one of answer_inside.h */
    size_t step;             /* inside a call */
    bool at_head;            /* no text was reported yet */
    bool trims;              /* so blanks before it are dropped */
    struct buffer held;      /* received bytes whose meaning is still undecided */
    struct buffer raw;       /* bytes that become text if this is not a call */
    struct buffer name;      /* zero-terminated */
    struct call_object object;
    struct call_members members;
    uint32_t depth; /* in the arguments, which are JSON */
    bool in_string, escaped;
    bool begun;  /* the call was reported */
    bool any;    /* this call or an earlier one was reported */
    bool failed; /* out of memory */
};

/* Sets what to search for, and whether the answer starts as text or inside a thought. 0; -EINVAL: calls of
 * the dialect have more than ANSWER_MOST_STEPS steps, which dialect_read does not accept. Call deinit in
 * either case. */
int answer_parser_init(struct answer_parser *parser, const struct model_dialect *dialect,
                       const struct dialect_tool *tools, size_t n_tools, bool calls, bool thoughts,
                       enum dialect_start start);
void answer_parser_deinit(struct answer_parser *parser);

/* Takes the next bytes of the answer. 0 or -ENOMEM. */
int answer_parser_push(struct answer_parser *parser, struct bytes text, const struct answer_sink *sink);

/* The answer has ended: ends an incomplete call, and reports held bytes as text. 0 or -ENOMEM. */
int answer_parser_finish(struct answer_parser *parser, const struct answer_sink *sink);

/* Whether the next bytes belong to a thought. */
bool answer_parser_thinks(const struct answer_parser *parser);

/* The state of the answer, as far as thoughts are concerned. */
enum answer_place {
    ANSWER_THINKS,    /* inside one */
    ANSWER_MAY_THINK, /* the next bytes may open one, or are about to */
    ANSWER_SPEAKS,    /* neither; but a mark that ends this part of the answer must come before another */
    ANSWER_PAST       /* no thought can follow */
};
/* For a parser that does not look for calls. */
enum answer_place answer_parser_place(const struct answer_parser *parser);

#endif
