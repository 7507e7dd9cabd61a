/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_DIALECT_H
#define TEXT_DIALECT_DIALECT_H

/* How a model writes tool calls, and thoughts before the answer.
 *
 * A chat template shows both, because it writes earlier turns in the form that the model should use for the
 * next one. derive.h derives a dialect from a template once, when the model is loaded. It is sent as JSON to
 * the programs that parse answers (answer_parser.h) or constrain them (call_grammar.h). Nothing here names a
 * family of models.
 *
 *     <think>\nIt asks for Ulm.\n</think>\n\n            thoughts: open, close
 *     Let me see.                                        content
 *     <tool_calls>[{"name": "rain", "arguments": {"town": "Ulm"}}, {"name": …}]</tool_calls>
 *     │open         │head          │middle       │arguments     ││between          │close
 *                                                              tail
 *
 * Texts are UTF-8 as the template writes them. Five bytes stand for parts that vary from call to call: */

#include <jansson.h>
#include <stdbool.h>

#include "common/arena.h"
#include "common/bytes.h"
#include "common/error.h"

#define DIALECT_NAME  '\1' /* the tool's name */
#define DIALECT_ID    '\2' /* an id of the call: letters and digits */
#define DIALECT_INDEX '\3' /* the number of the call */
#define DIALECT_KEY   '\4' /* the parameter's name once more */
#define DIALECT_TYPE  '\5' /* the JSON type of the parameter's value */

#define DIALECT_MOST_BYTES  8192 /* of a dialect as JSON */
#define DIALECT_MOST_PLACES 8    /* of names, ids and numbers in the texts of a call */

/* How the arguments of a call are written. */
enum dialect_arguments {
    DIALECT_JSON,   /* as a JSON object */
    DIALECT_MEMBERS /* parameter by parameter, each within its own marks */
};

/* Tool calls. All texts may be ""; `between` is NULL if an answer has only one call. */
struct dialect_calls {
    bool known;          /* if not, `reason` says why */
    const char *open;    /* before the first call */
    const char *head;    /* a call up to its name, which follows */
    const char *middle;  /* from the name to the arguments */
    const char *tail;    /* from the arguments to the end of the call */
    const char *between; /* two calls */
    const char *close;   /* after the last */
    enum dialect_arguments arguments;
    /* If the call is one JSON object: the names of its members; else NULL. */
    const char *name_key, *arguments_key;
    /* DIALECT_MEMBERS: each is before_key KEY to_text VALUE behind_text, if its value is a string, or
     * before_key KEY to_other VALUE behind_other. */
    const char *before_key, *to_text, *behind_text, *to_other, *behind_other;
    const char *separator; /* between two */
    bool quoted; /* strings have marks that other values do not have; else the schema distinguishes them */
    bool python; /* True, False, None */
    bool cdata;  /* strings may be in <![CDATA[…]]> */
    bool untold; /* the template does not list the tools for the model */
    bool text_arguments; /* the template needs earlier arguments as the text of an object */
    const char *reason;  /* why calls are unknown; "" */
};

/* How an answer starts after a prompt. */
enum dialect_start {
    DIALECT_START_TEXT,   /* at the beginning of its answer; it may open a thought first */
    DIALECT_START_THOUGHT /* inside a thought */
};

/* Thoughts. Unknown if `close` is "". */
struct dialect_thoughts {
    bool known;
    const char *open, *close;
    /* What the template writes between the thought's last word and the answer's first, including `close`:
     * "\n</think>\n\n". It ends a thought that has used up its budget. */
    const char *end;
    const char *key; /* the member of a message that has an earlier thought: "reasoning_content"; "": none.
                      * "content:TYPE:MEMBER", "blocks:TYPE:MEMBER": a part of that type, in a list that is
                      * the content, or that the content has under "blocks" */
    enum dialect_start usual, on, off; /* how answers start: by default, with thinking on, and off */
    /* Variables of the template that switch thinking, as objects; NULL: there is no such switch. */
    json_t *switch_on, *switch_off;
    const char *effort_key; /* the variable for an effort; "": none */
    const char *efforts;    /* its values, separated by spaces */
    const char *budget_key; /* the variable for a number of tokens; "": none */
    const char *reason;     /* why thoughts are unknown; "" */
};

struct model_dialect {
    struct arena arena; /* all texts */
    struct dialect_calls calls;
    struct dialect_thoughts thoughts;
    /* The marks around the answer's text; "": none. */
    const char *content_open, *content_close;
};

/* Sets everything to unknown. */
void dialect_init(struct model_dialect *dialect);
void dialect_deinit(struct model_dialect *dialect);

/* A copy of a text in the dialect's arena; NULL: out of memory. */
const char *dialect_keep(struct model_dialect *dialect, struct bytes text);

/* The dialect as a JSON object, a new reference; NULL: out of memory. Unknown parts have their reason. */
json_t *dialect_write(const struct model_dialect *dialect);

/* Checks the conditions that parsers of answers rely on. 0; -EINVAL with a reason: a thought without an end,
 * an end without its mark, a call that is an object but has no brace, more than DIALECT_MOST_PLACES places
 * for names, ids and numbers in a call. */
int dialect_check(const struct model_dialect *dialect, struct error *err);

/* Reads the output of dialect_write into an initialized dialect. 0; -EINVAL with a reason: it is not such an
 * object, or fails dialect_check; -ENOMEM. */
int dialect_read(struct bytes json, struct model_dialect *dialect, struct error *err);

/* Calls `take` for each text in the dialect that may be a control token: those between angle or square
 * brackets, and the texts as a whole. */
void dialect_each_text(const struct model_dialect *dialect, void (*take)(void *arg, const char *text),
                       void *arg);

#endif
