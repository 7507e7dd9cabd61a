/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_CHAT_TEMPLATE_H
#define TEXT_TEMPLATE_CHAT_TEMPLATE_H

/* Renders conversations to prompts, with a model's Jinja template (tokenizer.chat_template).
 *
 * A template is a program by the model's author. Its steps, memory, depth and output are limited. Text from
 * users stays marked through everything a template does to it, so that control tokens in it are never parsed.
 * A compiled template is immutable, so threads may share it. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/tokenizer/tokenizer.h"

/* The template rejected the conversation with raise_exception: "System role not supported". */
enum { CHAT_TEMPLATE_E_REFUSED = 1 };

struct chat_turn {
    struct bytes role;    /* "system", "user", "assistant", or another that the template knows; UTF-8 */
    struct bytes content; /* UTF-8 */
    /* Further members; "" if there are none. */
    struct bytes name;
    struct bytes tool_calls; /* JSON, an array of calls as OpenAI's clients write them */
    struct bytes tool_call_id;
    struct bytes thought; /* of the assistant, before its answer */
};

struct chat_template;

/* Compiles the bytes of a template; `bos` and `eos` are the texts of those tokens (tokenizer_name), which
 * templates write; empty if the model has none. Everything is copied. -EINVAL with line and reason: a syntax
 * error, or a part of the language that is not supported; -ENOMEM. */
int chat_template_new(struct bytes source, struct bytes bos, struct bytes eos,
                      struct chat_template **ret_template, struct error *err);
struct chat_template *chat_template_free(struct chat_template *chat_template);

/* From now on templates may change lists. Some templates do so: model hubs reject them, other engines accept
 * them. */
void chat_template_permit_changes(struct chat_template *chat_template);
/* Variables of a template besides the messages. */
struct chat_context {
    bool add_generation_prompt; /* end with the opening of the assistant's turn */
    struct tm date;             /* for templates that write today's date */
    bool no_date_string; /* render as model hubs do: without the variable date_string. Some templates then
                            write a fixed date */
    const json_t *extra; /* an object whose members are variables too ("tools", "documents"), or NULL */
};

/* Adds the variables that templates of 2024 need: `functions`, the text of `tools`, and `datetime`. 0 or
 * -ENOMEM. */
int chat_template_add_old_names(json_t *variables, const struct tm *date);

/* The text of a rendered conversation. */
struct chat_text {
    struct buffer text;
    struct buffer from_user; /* a byte for each of `text`: 1 where it comes from the messages or `extra` */
};
void chat_text_deinit(struct chat_text *text);

/* Renders `messages`, an array of objects with "role" and "content" and whatever else the template reads, to
 * `ret_text` (zeroed or deinited before). 0; CHAT_TEMPLATE_E_REFUSED with the template's reason; -EINVAL
 * with line and reason when the template fails on these messages; -EMSGSIZE when it exceeds its limits;
 * -ENOMEM. */
int chat_template_render(const struct chat_template *chat_template, const json_t *messages,
                         const struct chat_context *context, struct chat_text *ret_text, struct error *err);

struct chat_conversation {
    const struct chat_turn *turns; /* [n] */
    size_t n;
    struct bytes tools; /* tools that may be called: JSON, an array as OpenAI's clients write it; "" = none */
    bool continue_last; /* continue the last turn, the assistant's: its text ends the prompt */
    struct bytes variables; /* further variables of the template: JSON, an object; "" = none */
    /* Where the template expects an earlier thought: the name of a member, or "content:TYPE:MEMBER",
     * "blocks:TYPE:MEMBER", a part of the content; NULL or "": nowhere; thoughts are omitted. */
    const char *thought_key;
    bool text_arguments; /* the template takes arguments of calls as texts, not as objects */
};

/* Converts a conversation to the ids of a prompt for the assistant's next turn, dated today. Clients write
 * arguments of calls as strings; the template gets objects. A turn with only calls has the content null, or
 * an empty string if the template fails on that. If the template fails on thoughts, they are omitted. Control
 * tokens are parsed only in text that the template wrote. BOS is added if the tokenizer adds it and the
 * template did not. Appends to `ret_ids`, and, unless it is NULL, the prompt's text to `ret_text`. Codes as
 * for chat_template_render; -EINVAL also for invalid JSON of tools and calls; -EILSEQ: a turn is not UTF-8;
 * -E2BIG: the text has more than `most` bytes, checked before it is tokenized. */
int chat_template_encode(const struct chat_template *chat_template, const struct tokenizer *tokenizer,
                         const struct chat_conversation *conversation, size_t most, struct ids *ret_ids,
                         struct buffer *ret_text, struct error *err);

#endif
