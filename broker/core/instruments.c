/* SPDX-License-Identifier: MIT */
/* What one worker does, for those who may know.
 *
 * The questions stand in the table of those for a tokenizer (tokenize_table.h), which bounds them for each
 * client, and ends those whose worker dies or does not answer. A worker answers between two layers, on the
 * thread that computes, and each record is looked up here. So clients beyond the run directory, who are not
 * trusted, have few questions a second, each client for itself, with short answers; and a worker has a limit
 * for all of them. */

#include "broker/core/instruments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/core/status.h"
#include "broker/core/tokenize.h"

/* From beyond the run directory: */
#define FOREIGN_MS   50 /* between two questions of a client, to whatever worker */
#define FOREIGN_MOST 64 /* records of an answer, before those that it may not see are left out */
#define CROWD_MS     2  /* between two questions to one worker, whoever asks */

static void refuse(struct broker *broker, struct session *session, const struct message *asked,
                   enum proto_error error, uint32_t retry_ms, const struct error *reason)
{
    struct message no = {.kind = MESSAGE_ERROR};
    no.error.ref = asked->trace.ref;
    no.error.of = asked->kind;
    no.error.error = error;
    no.error.text = bytes_of_string(reason->text);
    no.error.retry_after_ms = retry_ms;
    client_link_send(&broker->client_link, session, &no);
}

static struct worker *find_worker(struct broker *broker, struct bytes name)
{
    for (uint32_t i = 0; i < broker->n_workers; i++)
        if (bytes_equal(bytes_of_string(broker->workers[i].name), name))
            return &broker->workers[i];
    return NULL;
}

/* When the session's client last asked. All sessions of a key are one client. */
static uint64_t *last_asked(struct broker *broker, struct session *session)
{
    struct client_key *key = client_keys_of(&broker->client_keys, session->key);
    return key ? &key->asked_ns : &session->asked_ns;
}

static bool is_soon(const struct broker *broker, uint64_t last, uint64_t ms)
{
    return broker->now < last + ms * CLOCK_NS_PER_MS;
}

static enum proto_error check_foreign(struct broker *broker, struct session *session, enum message_kind kind,
                                      const struct worker *worker, struct error *err)
{
    if (kind != MESSAGE_TRACE)
        return error_set(err, PROTO_UNSUPPORTED, "%s: only for clients in the run directory",
                         message_kind_name(kind));
    if (is_soon(broker, *last_asked(broker, session), FOREIGN_MS))
        return error_set(err, PROTO_OVERLOADED, "this client sent such a question a moment ago");
    if (is_soon(broker, worker->asked_by_foreign_ns, CROWD_MS))
        return error_set(err, PROTO_OVERLOADED, "%s received such a question a moment ago", worker->name);
    return PROTO_OK;
}

/* Whether this worker can be asked now; otherwise says so. */
static enum proto_error check(struct broker *broker, struct session *session, enum message_kind kind,
                              const struct worker *worker, struct bytes name, struct error *err)
{
    if (!worker)
        return error_set(err, PROTO_BAD_REQUEST, "no worker \"%.*s\" in this pool", (int)name.len,
                         (const char *)name.data);
    if (worker->peer.len == 0 || (worker->state != WORKER_READY && worker->state != WORKER_DRAINING))
        return error_set(err, PROTO_NO_WORKER, "%s is not ready: %s", worker->name,
                         worker_state_name(worker->state));
    return status_may_see_all(session) ? PROTO_OK : check_foreign(broker, session, kind, worker, err);
}

/* A question from beyond the run directory is on its way. */
static void take_foreign(struct broker *broker, struct session *session, struct worker *worker,
                         struct message *question)
{
    *last_asked(broker, session) = worker->asked_by_foreign_ns = broker->now;
    if (question->trace.most == 0 || question->trace.most > FOREIGN_MOST)
        question->trace.most = FOREIGN_MOST;
}

void instruments_ask(struct broker *broker, struct session *session, const struct message *message)
{
    struct error err = {0};
    struct worker *worker = find_worker(broker, message->trace.worker);
    enum proto_error no = check(broker, session, message->kind, worker, message->trace.worker, &err);
    if (no != PROTO_OK) {
        refuse(broker, session, message, no, no == PROTO_OVERLOADED ? FOREIGN_MS : 0, &err);
        return;
    }
    const struct tokenize_question asked = {.session = session->id,
                                            .client = *session_client(session),
                                            .key = session->key,
                                            .kind = message->kind,
                                            .client_ref = message->trace.ref};
    struct message question = *message;
    uint64_t ref;
    if (tokenize_table_add(&broker->tokenize, &asked, worker->index, broker->now, &ref) != 0) {
        error_set(&err, 0, "this client has too many unanswered questions");
        refuse(broker, session, message, PROTO_OVERLOADED, FOREIGN_MS, &err);
        return;
    }
    question.trace.ref = ref;
    if (!status_may_see_all(session))
        take_foreign(broker, session, worker, &question);
    if (worker_link_send(&broker->worker_link, worker, &question, NULL) != 0)
        tokenize_refused(broker, worker, ref, PROTO_WORKER_LOST, "the worker cannot be reached");
}

/* Whether the session that made a request is one of the asker's client. */
static bool is_own(struct broker *broker, const struct session *asker, const struct id128 *home)
{
    struct session *owner = session_find(&broker->sessions, home);
    return owner && memcmp(session_client(owner), session_client(asker), sizeof(struct id128)) == 0;
}

/* The record as the asker may see it; false: not at all. A request may have been forgotten by now. */
static bool show(struct broker *broker, const struct session *asker, const struct trace_record *from,
                 struct trace_record *to)
{
    static const struct id128 nobody;
    const bool all = status_may_see_all(asker);
    *to = *from;
    to->session = nobody;
    if (from->what == TRACE_STEP)
        return all;
    const struct request_key key = {from->session, from->id};
    const struct request *request = ledger_find_home(&broker->ledger, &key);
    if (request && request->name.len > 0) /* one that has ended has none */
        to->request_id = request->name;
    if (request)
        return status_may_see(asker, request);
    return all || is_own(broker, asker, &from->session);
}

static void answer_trace(struct broker *broker, struct session *session, struct message *answer)
{
    const size_t n = answer->trace_ok.records.n;
    struct trace_record *records = calloc(n + 1, sizeof *records);
    size_t shown = 0;
    if (!records) {
        const struct message asked = {.kind = MESSAGE_TRACE, .trace = {.ref = answer->trace_ok.ref}};
        struct error err;
        error_set(&err, -ENOMEM, "out of memory");
        refuse(broker, session, &asked, PROTO_INTERNAL, 0, &err);
        return;
    }
    for (size_t i = 0; i < n; i++)
        shown += show(broker, session, &answer->trace_ok.records.items[i], &records[shown]);
    answer->trace_ok.records.items = records;
    answer->trace_ok.records.n = shown;
    client_link_send(&broker->client_link, session, answer);
    free(records);
}

/* Where an answer has its ref, and what it answers. */
static uint64_t *ref_of(struct message *answer, enum message_kind *ret_asked)
{
    switch (answer->kind) {
    case MESSAGE_TRACE_OK:
        *ret_asked = MESSAGE_TRACE;
        return &answer->trace_ok.ref;
    case MESSAGE_PROFILE_OK:
        *ret_asked = MESSAGE_PROFILE;
        return &answer->profile_ok.ref;
    default:
        *ret_asked = MESSAGE_TRIM;
        return &answer->trim_ok.ref;
    }
}

void instruments_answered(struct broker *broker, const struct worker *worker, const struct message *message)
{
    struct tokenize_question question;
    struct message answer = *message;
    enum message_kind asked;
    uint64_t *ref = ref_of(&answer, &asked);
    if (!tokenize_table_take(&broker->tokenize, *ref, worker->index, &question))
        return;
    struct session *session = session_find(&broker->sessions, &question.session);
    if (!session || question.kind != asked)
        return;
    *ref = question.client_ref;
    if (asked == MESSAGE_TRACE)
        answer_trace(broker, session, &answer);
    else
        client_link_send(&broker->client_link, session, &answer);
}
