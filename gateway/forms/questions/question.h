/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_QUESTIONS_QUESTION_H
#define GATEWAY_FORMS_QUESTIONS_QUESTION_H

/* Questions to the pool. Questions for a tokenizer (the ids of a text, the text of ids, the prompt of a
 * conversation) are answered by a worker, without taking a slot or generating a token. The broker itself
 * answers questions about its requests. */

#include "gateway/core/parameters.h"
#include "gateway/http/exchange.h"

/* The input of a question: the text, ids or messages of the request, whichever is set. */
struct question_in {
    struct parameters parameters;
    bool add_special; /* to a text: BOS and EOS, if the model uses them */
    bool with_pieces; /* with the text of each id */
};

/* How a path reads a question and writes the answer. */
struct question_form {
    const struct json_row *rows; /* read into a struct question_in */
    /* Checks what was read; uses only `in`, on any thread. 0 or REFUSED. */
    int (*finish)(struct question_in *in, struct refusal *refusal);
    void (*write)(const struct quern_answer *answer, struct json_out *out); /* the body */
    /* Answers the exchange, instead of `write`, if the status is not always 200; else NULL. */
    void (*reply)(struct exchange *exchange, const struct quern_answer *answer);
};

/* A complete handler: reads the body, asks, and answers the exchange. `special`: control tokens in a text are
 * parsed, or written out in the text of ids, unless the body says otherwise. The form must outlive the
 * answer. */
void question_handle(struct exchange *exchange, const struct question_form *form, bool special);

/* The same for a path without a body: asks for the pool's status with at most `most` unfinished requests. Of
 * the form only `write` or `reply` is used. */
void question_handle_requests(struct exchange *exchange, const struct question_form *form, uint32_t most);

/* Refuses questions to dead pools of a fleet: a client that asks again reaches another pool. Call it after
 * each fleet_wait. */
void question_turn(struct gateway *gateway);

/* Drops unanswered questions when the pool is gone. */
void question_forget_all(struct gateway *gateway);

/* Completes a conversation's parameters: checks that it has messages. */
int question_finish_conversation(struct question_in *in, struct refusal *refusal);

#endif
