/* SPDX-License-Identifier: MIT */
/* Questions of clients for the ids of a text or a conversation, and for the text of ids.
 *
 * Each gets exactly one answer: `tokenize_ok`, `detokenize_ok` or an error, under its ref. The broker listens
 * for ten seconds; a question that has waited that long is answered without work, so that a pile of them
 * cannot hold up the prompts behind it. */

#include "worker/tokenize.h"

#include <stdlib.h>

#include "common/clock.h"

#include <utlist.h>

#define PATIENCE_NS (10 * CLOCK_NS_PER_S)

struct question {
    struct tokenize *owner;
    struct received *received; /* the message */
    struct prompt prompt;      /* its text or ids */
    struct preparation preparation;
    uint64_t asked_ns;
    struct question *next, *prev;
};

void tokenize_init(struct tokenize *tokenize, struct link *link, struct preparer *preparer,
                   const struct tokenizer *tokenizer)
{
    *tokenize = (struct tokenize){.link = link, .preparer = preparer, .tokenizer = tokenizer};
}

static void free_question(struct question *question)
{
    DL_DELETE(question->owner->questions, question);
    ids_deinit(&question->preparation.ids);
    buffer_deinit(&question->preparation.text);
    received_free(question->received);
    free(question);
}

void tokenize_deinit(struct tokenize *tokenize)
{
    struct question *question, *next;
    DL_FOREACH_SAFE(tokenize->questions, question, next)
    {
        free_question(question);
    }
}

static uint64_t ref_of(const struct message *question)
{
    return question->kind == MESSAGE_TOKENIZE ? question->tokenize.ref : question->detokenize.ref;
}

static struct prompt prompt_of(const struct message *question)
{
    if (question->kind == MESSAGE_TOKENIZE && !question->tokenize.has_text) {
        struct prompt prompt = question->tokenize.prompt;
        prompt.form = PROMPT_CHAT;
        return prompt;
    }
    if (question->kind == MESSAGE_TOKENIZE)
        return (struct prompt){
            .form = PROMPT_TEXT, .text = question->tokenize.text, .special = question->tokenize.special};
    return (struct prompt){
        .form = PROMPT_IDS, .ids = question->detokenize.ids, .special = question->detokenize.special};
}

/* What each id stands for, in `list`; false: memory is short, or an answer cannot hold them. */
static bool tell_pieces(const struct tokenizer *tokenizer, const struct ids *ids, struct message *answer,
                        struct buffer *list)
{
    if (buffer_reserve(list, ids->len * sizeof(struct bytes) + 1) < 0)
        return false;
    struct bytes *pieces = (struct bytes *)(void *)list->data;
    size_t bytes = answer->tokenize_ok.text.len;
    for (size_t i = 0; i < ids->len; i++) {
        pieces[i] = prompt_piece(tokenizer, ids->data[i]);
        bytes += pieces[i].len + 8;
    }
    answer->tokenize_ok.pieces.items = pieces;
    answer->tokenize_ok.pieces.n = ids->len;
    return bytes <= PROTO_MAX_REQUEST_BYTES;
}

/* preparer_deliver's call. */
static void on_done(void *arg, struct preparation *preparation)
{
    struct question *question = arg;
    struct link *link = question->owner->link;
    const struct message *asked = &question->received->message;
    struct message answer = {.kind = MESSAGE_TOKENIZE_OK};
    struct buffer pieces = {0};
    if (asked->kind == MESSAGE_TOKENIZE) {
        answer.tokenize_ok.ref = ref_of(asked);
        answer.tokenize_ok.ids = (struct id_list){preparation->ids.data, preparation->ids.len};
        answer.tokenize_ok.text = (struct bytes){preparation->text.data, preparation->text.len};
        if (preparation->ok && asked->tokenize.pieces &&
            !tell_pieces(question->owner->tokenizer, &preparation->ids, &answer, &pieces))
            preparation->ok = refuse(&preparation->refusal, PROTO_TOO_LONG,
                                     "the pieces of the text's tokens are too long for one message");
    } else {
        answer.kind = MESSAGE_DETOKENIZE_OK;
        answer.detokenize_ok.ref = ref_of(asked);
        answer.detokenize_ok.text = (struct bytes){preparation->text.data, preparation->text.len};
    }
    if (preparation->ok)
        link_send(link, &answer);
    else
        link_refuse(link, ref_of(asked), preparation->refusal.error, preparation->refusal.reason.text);
    buffer_deinit(&pieces);
    free_question(question);
}

void tokenize_take(struct tokenize *tokenize)
{
    struct question *question = calloc(1, sizeof *question);
    struct received *received = link_keep(tokenize->link);
    const struct message *message = &received->message;
    if (!question) {
        link_refuse(tokenize->link, ref_of(message), PROTO_INTERNAL, "the worker is out of memory");
        received_free(received);
        return;
    }
    question->owner = tokenize;
    question->received = received;
    question->asked_ns = clock_ns();
    question->prompt = prompt_of(message);
    question->preparation =
        (struct preparation){.prompt = &question->prompt, .question = true, .done = on_done, .arg = question};
    if (message->kind == MESSAGE_TOKENIZE) {
        question->preparation.bare = message->tokenize.bare;
        question->preparation.written = message->tokenize.written;
        question->preparation.tools = message->tokenize.tools;
    }
    DL_APPEND(tokenize->questions, question);
    if (preparer_add(tokenize->preparer, &question->preparation))
        return;
    link_refuse(tokenize->link, ref_of(message), PROTO_OVERLOADED,
                "too many texts are waiting for their tokens");
    free_question(question);
}

void tokenize_expire(struct tokenize *tokenize, uint64_t now)
{
    struct question *first;
    while ((first = tokenize->questions) && now > first->asked_ns + PATIENCE_NS &&
           preparer_remove(tokenize->preparer, &first->preparation)) {
        link_refuse(tokenize->link, ref_of(&first->received->message), PROTO_DEADLINE,
                    "the text waited too long for its tokens");
        free_question(first);
    }
}
