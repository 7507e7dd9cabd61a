/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_DERIVE_PROBE_H
#define TEXT_DIALECT_DERIVE_PROBE_H

/* Conversations of known parts, rendered by a template: everything else in the text is the template's.
 *
 * The words do not occur in templates. A probe counts its renders and gives up beyond a bound; the template's
 * interpreter bounds each render. */

#include <jansson.h>
#include <stdbool.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/dialect/derive/marks.h"
#include "text/template/chat_template.h"

#define PROBE_ASKS    "quernasks"
#define PROBE_SAYS    "quernsays"
#define PROBE_THINKS  "quernthinks"
#define PROBE_RETURNS "quernreturns"
#define PROBE_FIRST   "quernfirst" /* tools */
#define PROBE_SECOND  "quernsecond"
#define PROBE_ONE     "qkone" /* their parameters: texts, and `num`, a number */
#define PROBE_TWO     "qktwo"
#define PROBE_NUM     "qkznum" /* sorts after the texts */
#define PROBE_FLAG    "qkflag"
#define PROBE_ID_1    "qid000001"
#define PROBE_ID_2    "qid000002"

struct probe {
    const struct chat_template *chat_template;
    json_t *tools;
    uint32_t n_renders;
    bool null_content;   /* content is null, not "", in a turn that only calls */
    bool text_arguments; /* arguments of calls are texts, not objects */
    struct error last;   /* why the last render failed */
};

/* 0 or -ENOMEM; call deinit in either case. */
int probe_init(struct probe *probe, const struct chat_template *chat_template);
void probe_deinit(struct probe *probe);

/* ---- messages; each takes its references and gives a new one, or NULL ---- */

json_t *probe_user(void);
json_t *probe_assistant(const char *content); /* NULL: null */
json_t *probe_result(void);
/* Adds a call with these arguments, an object. */
void probe_add_call(const struct probe *probe, json_t *message, const char *name, const char *id,
                    json_t *arguments);
/* A conversation of up to three messages; NULL ends it. */
json_t *probe_conversation(json_t *first, json_t *second, json_t *third);

/* How a conversation is rendered. */
struct probe_manner {
    bool tools;         /* with tools */
    bool prompt;        /* up to the assistant's next turn */
    const json_t *more; /* further variables; NULL: none */
};

/* Renders the messages, and takes them. 0 with the zero-terminated text, which the caller frees; otherwise
 * probe->last has the reason. -EMSGSIZE, -ENOMEM: further attempts are useless. */
int probe_render(struct probe *probe, json_t *messages, struct probe_manner manner, char **ret_text);

/* The text after the last question. */
struct span probe_behind(const char *text);

#endif
