/* SPDX-License-Identifier: MIT */
/* Questions for a tokenizer.
 *
 *     asked ──▶ in the table ──▶ answered · refused · its worker died · TOKENIZE_TIMEOUT_MS passed
 *
 * A question takes no slot of its worker and no room in the journal: the client asks again what got lost. */

#include "broker/tokenize.h"

#include "broker/scheduler.h"

static void refuse(struct broker *broker, const struct tokenize_question *question, enum proto_error error,
                   const char *text)
{
    struct session *session = session_find(&broker->sessions, &question->session);
    struct message no = {.kind = MESSAGE_ERROR, .error = {.ref = question->client_ref, .error = error}};
    no.error.text = bytes_of_string(text);
    no.error.retry_after_ms = error == PROTO_OVERLOADED ? 100 : 0;
    if (session)
        client_link_send(&broker->client_link, session, &no);
}

void tokenize_ask(struct broker *broker, struct session *session, const struct message *message)
{
    struct worker *worker;
    struct message question = *message;
    struct tokenize_question asked = {.session = session->id, .client_ref = message->tokenize.ref};
    if (scheduler_pick_any(broker->workers, broker->n_workers, message->tokenize.model, &worker) != 0)
        refuse(broker, &asked, PROTO_NO_WORKER, "no worker is ready");
    else if (!tokenize_table_add(&broker->tokenize, session->id, message->tokenize.ref, worker->index,
                                 broker->now, &question.tokenize.ref))
        refuse(broker, &asked, PROTO_OVERLOADED, "too many tokenize questions wait");
    else if (worker_link_send(&broker->worker_link, worker, &question, NULL) != 0)
        tokenize_refused(broker, worker, question.tokenize.ref, PROTO_WORKER_LOST,
                         "the worker cannot be reached");
}

void tokenize_answered(struct broker *broker, const struct worker *worker, const struct message *message)
{
    struct tokenize_question question;
    if (!tokenize_table_take(&broker->tokenize, message->tokenize_ok.ref, worker->index, &question))
        return;
    struct session *session = session_find(&broker->sessions, &question.session);
    struct message answer = *message;
    answer.tokenize_ok.ref = question.client_ref;
    if (session)
        client_link_send(&broker->client_link, session, &answer);
}

void tokenize_refused(struct broker *broker, const struct worker *worker, uint64_t ref,
                      enum proto_error error, const char *text)
{
    struct tokenize_question question;
    if (tokenize_table_take(&broker->tokenize, ref, worker->index, &question))
        refuse(broker, &question, error, text);
}

void tokenize_worker_lost(struct broker *broker, const struct worker *worker)
{
    struct tokenize_question question;
    while (tokenize_table_expire(&broker->tokenize, broker->now, (int)worker->index, &question))
        refuse(broker, &question, PROTO_WORKER_LOST, "the worker died");
}

void tokenize_expire(struct broker *broker)
{
    struct tokenize_question question;
    while (tokenize_table_expire(&broker->tokenize, broker->now, -1, &question))
        refuse(broker, &question, PROTO_INTERNAL, "the worker did not answer");
}
