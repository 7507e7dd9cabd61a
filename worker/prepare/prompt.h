/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_PROMPT_H
#define WORKER_PREPARE_PROMPT_H

/* Converts a text or a conversation to the token ids of a prompt, with the model's tokenizer and chat
 * template; and ids to text.
 *
 * Immutable once open, so threads may share it. A call can take about a second for a client's largest
 * message, while a step of the engine takes milliseconds. */

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"
#include "common/error.h"
#include "proto/message.h"
#include "model/model.h"
#include "text/dialect/dialect.h"
#include "text/template/chat_template.h"
#include "worker/prepare/refusal.h"
#include "worker/prepare/thinking.h"

#define PROMPT_MOST_MARKS 32

struct prompt_encoder {
    const struct tokenizer *tokenizer;
    struct chat_template *chat;       /* NULL: none, or an unusable one */
    struct error no_chat;             /* if NULL: why */
    bool ranks;                       /* the model reads only pairs of texts */
    struct buffer rank_template;      /* if it ranks: the template of a pair; "": it has none */
    struct bytes system;              /* message for conversations without one; "": none */
    struct model_dialect dialect;     /* how the model calls tools and thinks */
    char *dialect_text;               /* as JSON */
    struct thought_ends thought_ends; /* of its thoughts */
    int32_t marks[PROMPT_MOST_MARKS]; /* [n_marks] control tokens around calls and thoughts that are written
                                         out */
    uint32_t n_marks;
    size_t longest_token; /* bytes of the longest name of a token, ≥ 1 */
    uint32_t most_tokens; /* of a sequence */
    size_t most_bytes;    /* of a text; a longer one has too many tokens in any case */
};

/* Opens the encoder of a model, which must outlive it and have a tokenizer. An unusable chat template is not
 * an error: `no_chat` says why conversations are rejected. 0, or -ENOMEM with a reason; call
 * prompt_encoder_deinit in either case. */
int prompt_encoder_init(struct prompt_encoder *encoder, const struct model *model, struct error *err);
/* Sets the system message of conversations without a message of the role "system" or "developer". It must
 * outlive the encoder. -EINVAL with a reason: not UTF-8, or the model's template does not support one. */
int prompt_encoder_set_system(struct prompt_encoder *encoder, struct bytes system, struct error *err);

void prompt_encoder_deinit(struct prompt_encoder *encoder);

/* Limits texts by the most tokens of a sequence. A token has at most as many bytes as its name, so a lower
 * bound for a text's tokens is known before it is split. */
void prompt_encoder_bound(struct prompt_encoder *encoder, uint32_t most_tokens);

/* The form in which the model writes calls: "object", "named", "members"; "": not known. */
const char *prompt_call_form(const struct prompt_encoder *encoder);

/* Appends the ids of a prompt: a text, a pair of texts, or a conversation, with the tools that the model may
 * call (JSON; "" = none). False with a reason: not UTF-8, too long, empty, rejected by the template, no
 * memory. */
bool prompt_encode(const struct prompt_encoder *encoder, const struct prompt *prompt, struct bytes tools,
                   struct ids *ret_ids, struct refusal *ret_refusal);

/* The same for a conversation that a client asked about; appends its text to `ret_text`, unless that is NULL.
 * At most PROTO_MAX_QUESTION_IDS ids, and PROTO_MAX_REQUEST_BYTES of text, fit a message. */
bool prompt_encode_chat(const struct prompt_encoder *encoder, const struct prompt *prompt, struct bytes tools,
                        struct ids *ret_ids, struct buffer *ret_text, struct refusal *ret_refusal);

/* The same for a text whose ids a client asked for. Not limited by the length of a sequence, but by
 * PROTO_MAX_QUESTION_IDS, which fit a message. An empty text has only the ids that the model adds, if any.
 * `flags` are those of tokenizer_encode. */
bool prompt_encode_text(const struct prompt_encoder *encoder, struct bytes text, unsigned flags,
                        struct ids *ret_ids, struct refusal *ret_refusal);

/* The piece of an id: its bytes in a text, which may be part of a character, or, if it has none, its name; at
 * most PROTO_MAX_PIECE_BYTES. */
struct bytes prompt_piece(const struct tokenizer *tokenizer, int32_t id);

/* Appends the text of ids: the bytes of each, and with `special` the names of those without. The space that a
 * vocabulary puts before a text is dropped. Invalid UTF-8 becomes U+FFFD. False with a reason: an id outside
 * the vocabulary, or text longer than a message. */
bool prompt_decode(const struct prompt_encoder *encoder, struct id_list ids, bool special,
                   struct buffer *ret_text, struct refusal *ret_refusal);

#endif
