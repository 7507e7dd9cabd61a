/* SPDX-License-Identifier: MIT */
/* See question.h. The client waits for the worker's answer as for that of a generation. A client that goes
 * away meanwhile leaves the question behind; its answer finds nobody. */

#include "gateway/forms/questions/question.h"

#include <errno.h>
#include <stdlib.h>

#include "gateway/core/gateway.h"
#include "gateway/core/named_pool.h"
#include "gateway/forms/body_reader.h"
#include "gateway/forms/turn.h"
#include "gateway/tools/tool_choice.h"

#include <utlist.h>

#define ANSWER_MS 15000 /* a worker gives up after ten seconds */

struct question {
    const struct question_form *form;
    struct exchange *exchange; /* NULL: gone */
    struct gateway *gateway;
    const struct fleet_pool *pool; /* that was asked: it lives longer than a question in a fleet */
    struct question *next, *prev;  /* in gateway.questions */
    struct key *key;
    size_t bytes;
};

static void free_question(struct question *question)
{
    DL_DELETE(question->gateway->questions, question);
    keys_answered(&question->gateway->keys, question->key, question->bytes);
    free(question);
}

void question_forget_all(struct gateway *gateway)
{
    while (gateway->questions)
        free_question(gateway->questions);
}

void question_turn(struct gateway *gateway)
{
    struct question *question;
    struct refusal refusal;
    DL_FOREACH(gateway->questions, question)
    {
        struct exchange *exchange = question->exchange;
        if (!exchange || !question->pool->trust.dead)
            continue;
        refusal_of_code(-EHOSTUNREACH, "the pool no longer responds", &refusal);
        question->exchange = NULL; /* its answer finds nobody */
        exchange_when_gone(exchange, NULL, NULL);
        exchange_refuse(exchange, &refusal);
    }
}

static void on_gone(void *arg)
{
    ((struct question *)arg)->exchange = NULL;
}

static void on_answer(void *arg, const struct quern_answer *answer)
{
    struct question *question = arg;
    struct refusal refusal;
    if (question->exchange && answer->code == 0 && question->form->reply) {
        question->form->reply(question->exchange, answer);
    } else if (question->exchange && answer->code == 0) {
        struct json_out out = {0};
        question->form->write(answer, &out);
        exchange_reply_json(question->exchange, 200, &out);
    } else if (question->exchange) {
        refusal_of_code(answer->code, answer->text, &refusal);
        exchange_refuse(question->exchange, &refusal);
    }
    free_question(question);
}

static int put(struct quern *client, const struct question_in *in, struct question *question,
               struct quern_error *err)
{
    struct quern_request request = in->parameters.request;
    const struct quern_text text = {.model = request.model,
                                    .text = request.text,
                                    .len = request.text_len,
                                    .special = request.special,
                                    .bare = !in->add_special,
                                    .pieces = in->with_pieces};
    const struct quern_ids ids = {request.model, request.ids, request.n_ids, request.special};
    request.pieces = in->with_pieces;
    if (request.messages)
        return quern_ask_prompt(client, &request, ANSWER_MS, on_answer, question, err);
    return request.text ? quern_ask_tokenize(client, &text, ANSWER_MS, on_answer, question, err)
                        : quern_ask_detokenize(client, &ids, ANSWER_MS, on_answer, question, err);
}

/* Asks the pool what was read, or, if that is NULL, for at most `most` requests. */
static int ask(struct exchange *exchange, const struct fleet_pool *pool, const struct question_in *in,
               uint32_t most, const struct question_form *form, struct refusal *refusal)
{
    struct quern_error err = {.text = ""};
    struct keys *keys = &exchange->gateway->keys;
    const size_t bytes = in ? in->parameters.arena.used : 0;
    if (keys_ask(keys, exchange->key, bytes, refusal) != 0)
        return REFUSED;
    struct question *question = calloc(1, sizeof *question);
    int r = -ENOMEM;
    if (question) {
        *question =
            (struct question){form, exchange, exchange->gateway, pool, .key = exchange->key, .bytes = bytes};
        DL_APPEND(exchange->gateway->questions, question);
        exchange_when_gone(exchange, on_gone, question);
        r = in ? put(pool->pool.client, in, question, &err)
               : quern_ask_requests(pool->pool.client, NULL, most, ANSWER_MS, on_answer, question, &err);
    }
    if (r == 0)
        return 0;
    exchange_when_gone(exchange, NULL, NULL);
    if (question)
        free_question(question);
    else
        keys_answered(keys, exchange->key, bytes);
    refusal_of_code(r, err.text, refusal);
    return REFUSED;
}

/* Asks a pool that serves the model. */
static int ask_any(struct exchange *exchange, const struct question_in *in, const struct question_form *form,
                   struct refusal *refusal)
{
    const struct fleet_wish wish = {.model = in->parameters.request.model};
    const struct fleet_pool *pool = fleet_choose(&exchange->gateway->fleet, &wish, NULL, 0);
    if (pool)
        return ask(exchange, pool, in, 0, form, refusal);
    refusal_of_code(-EHOSTUNREACH, "no pool of the fleet responds", refusal);
    return REFUSED;
}

/* A question while its body is being read. */
struct question_reading {
    struct body_reading reading;
    struct question_in in;
    const struct question_form *form;
};

static int finish(struct body_reading *reading, struct refusal *refusal)
{
    struct question_reading *asked = (struct question_reading *)reading;
    return asked->form->finish(&asked->in, refusal);
}

/* What the model makes of a conversation, as where it is continued. */
static int apply(const struct gateway *gateway, struct parameters *parameters, struct refusal *refusal)
{
    struct model_dialect dialect;
    if (!parameters->request.messages)
        return 0;
    dialect_init(&dialect);
    int r = turn_apply(gateway, parameters, &dialect, refusal);
    dialect_deinit(&dialect);
    return r;
}

static void begin(struct body_reading *reading)
{
    struct question_reading *asked = (struct question_reading *)reading;
    struct exchange *exchange = reading->exchange;
    struct parameters *parameters = &asked->in.parameters;
    struct refusal refusal;
    if (exchange && (gateway_check(exchange->gateway, parameters->request.model, &refusal) != 0 ||
                     apply(exchange->gateway, parameters, &refusal) != 0 ||
                     ask_any(exchange, &asked->in, asked->form, &refusal) != 0))
        exchange_refuse(exchange, &refusal);
    parameters_deinit(parameters);
    free(asked);
}

void question_handle(struct exchange *exchange, const struct question_form *form, bool special)
{
    struct refusal refusal;
    struct question_reading *asked = calloc(1, sizeof *asked);
    if (!asked) {
        parameters_out_of_memory(&refusal);
        exchange_refuse(exchange, &refusal);
        return;
    }
    parameters_init(&asked->in.parameters);
    asked->in.parameters.request.special = special;
    asked->form = form;
    asked->reading = (struct body_reading){
        .rows = form->rows, .into = &asked->in.parameters, .finish = finish, .then = begin};
    body_read(exchange, &asked->reading);
}

void question_handle_requests(struct exchange *exchange, const struct question_form *form, uint32_t most)
{
    struct refusal refusal;
    const struct fleet_pool *pool;
    if (gateway_check(exchange->gateway, NULL, &refusal) != 0 || named_pool(exchange, &pool, &refusal) != 0 ||
        ask(exchange, pool, NULL, most, form, &refusal) != 0)
        exchange_refuse(exchange, &refusal);
}

int question_finish_conversation(struct question_in *in, struct refusal *refusal)
{
    struct parameters *parameters = &in->parameters;
    parameters->chat = true;
    if (!parameters->request.messages)
        return refuse_value(refusal, "messages", "messages is missing");
    if (parameters_finish(parameters, "messages", refusal) != 0)
        return REFUSED;
    return tool_choice_finish(parameters, refusal);
}
