/* SPDX-License-Identifier: MIT */
/* Questions for a tokenizer: ids of a text, text of ids. Their messages begin in the same way, and no more of
 * them is looked at here.
 *
 *     asked ──┬────brief─────▶ with a worker ──▶ answered · refused · its worker died
 *             └─large─▶ waiting ──▲    └──▶ TOKENIZE_TIMEOUT_MS passed, here too
 *
 * A question takes no slot of its worker and no room in the journal: the client asks again what got lost. A
 * worker works on one large text at a time, for up to a second; it gets the next one when it has answered, so
 * that neither the link to it nor its own list holds many. */

#include "broker/core/tokenize.h"

#include <stdio.h>

#include "broker/choose/scheduler.h"
#include "common/amount.h"

#include <utlist.h>

#define RETRY_MS 100

static void refuse_for(struct broker *broker, const struct tokenize_question *question,
                       enum proto_error error, uint32_t retry_ms, const char *text)
{
    struct session *session = session_find(&broker->sessions, &question->session);
    struct message no = {.kind = MESSAGE_ERROR, .error = {.ref = question->client_ref, .error = error}};
    no.error.of = question->kind;
    no.error.text = bytes_of_string(text);
    no.error.retry_after_ms = retry_ms;
    if (session)
        client_link_send(&broker->client_link, session, &no);
}

static void refuse(struct broker *broker, const struct tokenize_question *question, enum proto_error error,
                   const char *text)
{
    refuse_for(broker, question, error, error == PROTO_OVERLOADED ? RETRY_MS : 0, text);
}

static void refuse_full(struct broker *broker, const struct tokenize_question *question)
{
    char text[PROTO_MAX_TEXT_BYTES];
    struct tokenize_had had = tokenize_table_had(&broker->tokenize, &question->client);
    snprintf(text, sizeof text,
             "this client's share of the tokenizer queue is full: %zu of the %zu waiting, at most %d; of the "
             "large ones %s of the %s waiting, at most %s",
             had.questions, broker->tokenize.n, TOKENIZE_TABLE_MAX, amount_of_bytes(had.bytes).text,
             amount_of_bytes(broker->tokenize.waiting_bytes).text,
             amount_of_bytes(TOKENIZE_TABLE_MAX_BYTES).text);
    refuse(broker, question, PROTO_OVERLOADED, text);
}

/* Whether the client's key may have more tokens; if not, that is said. */
static bool may_ask(struct broker *broker, const struct tokenize_question *asked)
{
    uint32_t retry_ms;
    struct error reason;
    enum proto_error no =
        allowance_check_tokens(&broker->allowance, client_keys_of(&broker->client_keys, asked->key),
                               broker->now, &retry_ms, &reason);
    if (no != PROTO_OK)
        refuse_for(broker, asked, no, retry_ms, reason.text);
    return no == PROTO_OK;
}

static void charge(struct broker *broker, const struct tokenize_question *question, size_t tokens)
{
    allowance_charge(&broker->allowance, client_keys_of(&broker->client_keys, question->key), tokens,
                     broker->now);
}

/* Sends it on under our ref, which is in the table. */
static void put(struct broker *broker, struct worker *worker, const struct message *message, uint64_t ref)
{
    struct message question = *message;
    question.tokenize.ref = ref;
    if (worker_link_send(&broker->worker_link, worker, &question, NULL) != 0)
        tokenize_refused(broker, worker, ref, PROTO_WORKER_LOST, "the worker cannot be reached");
}

void tokenize_ask(struct broker *broker, struct session *session, const struct message *message,
                  struct bytes raw)
{
    struct worker *worker;
    uint64_t ref;
    struct bytes model = message->tokenize.model;
    bool large = raw.len > REQUEST_BRIEF_BYTES;
    const struct tokenize_question asked = {.session = session->id,
                                            .client = *session_client(session),
                                            .key = session->key,
                                            .kind = message->kind,
                                            .client_ref = message->tokenize.ref};
    if (!may_ask(broker, &asked))
        return;
    int r = scheduler_pick_any(broker->workers, broker->n_workers, model, large, &worker);
    if (r == SCHEDULER_E_NO_WORKER) {
        refuse(broker, &asked, PROTO_NO_WORKER, "no worker is ready");
        return;
    }
    r = large ? tokenize_table_keep(&broker->tokenize, &asked, raw, model, broker->now)
              : tokenize_table_add(&broker->tokenize, &asked, worker->index, broker->now, &ref);
    if (r < 0)
        refuse(broker, &asked, PROTO_INTERNAL, "out of memory");
    else if (r > 0)
        refuse_full(broker, &asked);
    else if (!large)
        put(broker, worker, message, ref);
    if (r == 0 && message->kind == MESSAGE_DETOKENIZE)
        charge(broker, &asked, message->detokenize.ids.n);
}

/* Takes a question out that no worker can be asked. */
static void give_up(struct broker *broker, const struct tokenize_question *question, enum proto_error error,
                    const char *text)
{
    struct tokenize_question gone;
    if (tokenize_table_take(&broker->tokenize, question->ref, question->worker, &gone))
        refuse(broker, &gone, error, text);
}

static void ask(struct broker *broker, struct worker *worker, struct tokenize_question *question)
{
    struct message message;
    if (message_decode(broker->request_decoder, question->message.data, question->message.len, &message,
                       NULL) != 0) {
        give_up(broker, question, PROTO_INTERNAL, "out of memory");
        return;
    }
    struct buffer borrowed = tokenize_table_asked(&broker->tokenize, question, worker->index);
    worker->asked = question->ref;
    put(broker, worker, &message, question->ref);
    buffer_deinit(&borrowed);
}

/* Every turn of the loop, however many wait: the workers of a model that are all busy are looked at once. */
void tokenize_dispatch(struct broker *broker)
{
    struct tokenize_question *question, *next;
    const struct tokenize_question *busy = NULL; /* the last that goes on waiting */
    DL_FOREACH_SAFE(broker->tokenize.waiting, question, next)
    {
        struct worker *worker;
        int r;
        if (busy && bytes_equal(question->model, busy->model))
            r = SCHEDULER_E_BUSY;
        else
            r = scheduler_pick_any(broker->workers, broker->n_workers, question->model, true, &worker);
        if (!session_find(&broker->sessions, &question->session) || r == SCHEDULER_E_NO_WORKER)
            give_up(broker, question, PROTO_NO_WORKER, "no worker is ready");
        else if (r == SCHEDULER_E_BUSY)
            busy = question;
        else
            ask(broker, worker, question);
    }
}

/* The question left the table: its worker has time for another large one. */
static void forget(struct broker *broker, const struct tokenize_question *question)
{
    if (question->worker == TOKENIZE_NO_WORKER)
        return;
    struct worker *worker = &broker->workers[question->worker];
    if (worker->asked == question->ref)
        worker->asked = 0;
}

void tokenize_answered(struct broker *broker, const struct worker *worker, const struct message *message)
{
    struct tokenize_question question;
    uint64_t ref =
        message->kind == MESSAGE_TOKENIZE_OK ? message->tokenize_ok.ref : message->detokenize_ok.ref;
    if (!tokenize_table_take(&broker->tokenize, ref, worker->index, &question))
        return;
    forget(broker, &question);
    struct session *session = session_find(&broker->sessions, &question.session);
    struct message answer = *message;
    if (answer.kind == MESSAGE_TOKENIZE_OK)
        charge(broker, &question, answer.tokenize_ok.ids.n);
    if (answer.kind == MESSAGE_TOKENIZE_OK)
        answer.tokenize_ok.ref = question.client_ref;
    else
        answer.detokenize_ok.ref = question.client_ref;
    if (session)
        client_link_send(&broker->client_link, session, &answer);
}

void tokenize_refused(struct broker *broker, const struct worker *worker, uint64_t ref,
                      enum proto_error error, const char *text)
{
    struct tokenize_question question;
    if (!tokenize_table_take(&broker->tokenize, ref, worker->index, &question))
        return;
    forget(broker, &question);
    refuse(broker, &question, error, text);
}

void tokenize_worker_lost(struct broker *broker, const struct worker *worker)
{
    struct tokenize_question question;
    while (tokenize_table_expire(&broker->tokenize, 0, (int)worker->index, &question)) {
        forget(broker, &question);
        refuse(broker, &question, PROTO_WORKER_LOST, "the worker died");
    }
}

void tokenize_expire(struct broker *broker)
{
    struct tokenize_question question;
    while (tokenize_table_expire(&broker->tokenize, broker->now, -1, &question)) {
        forget(broker, &question);
        if (question.worker == TOKENIZE_NO_WORKER)
            refuse(broker, &question, PROTO_OVERLOADED, "too many texts are waiting for a tokenizer");
        else
            refuse(broker, &question, PROTO_INTERNAL, "the worker did not answer");
    }
}
