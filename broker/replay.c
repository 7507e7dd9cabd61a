/* SPDX-License-Identifier: MIT */
/* Pages of the journal for clients.
 *
 *     asked ──the session's outbox is empty──▶ page made and sent
 *       └───something waits there──▶ owed ──the outbox has drained──▶ page made and sent
 *
 * What is owed is a place in the request's output, not a page: it costs a few bytes however long the client
 * does not read, and the page is as new as it can be when it goes. A client that asks again for the same
 * request only moves that place. A session owes its pages in the order of the asking, one a turn of the loop,
 * so that a client with many replays holds up nobody. */

#include "broker/replay.h"

static void refuse(struct broker *broker, struct session *session, struct id128 id, enum proto_error error,
                   const char *text)
{
    struct message no = {.kind = MESSAGE_ERROR, .error = {.has_id = true, .id = id, .error = error}};
    no.error.text = bytes_of_string(text);
    client_link_send(&broker->client_link, session, &no);
}

static void send_page(struct broker *broker, struct session *session, struct id128 id, uint64_t next)
{
    struct request_key key = {session->id, id};
    const struct request *request = ledger_find(&broker->ledger, &key);
    struct journal_page *page = &broker->page;
    if (!request) {
        refuse(broker, session, id, PROTO_UNKNOWN_REQUEST, "there is no such request, or it ended long ago");
        return;
    }
    if (journal_read(&request->log, next, PROTO_MAX_FRAME_BYTES, page) < 0) {
        refuse(broker, session, id, PROTO_INTERNAL, "out of memory");
        return;
    }
    struct message ok = {.kind = MESSAGE_REPLAY_OK};
    ok.replay_ok.id = id;
    ok.replay_ok.epoch = request->epoch;
    ok.replay_ok.from = page->from;
    ok.replay_ok.next = page->next;
    ok.replay_ok.done = page->done;
    ok.replay_ok.frames.items = page->items;
    ok.replay_ok.frames.n = page->n;
    client_link_send(&broker->client_link, session, &ok);
}

void replay_ask(struct broker *broker, struct session *session, struct id128 id, uint64_t next)
{
    /* Beyond the most that a session may be owed, the client has to ask again. */
    if (session->outbox.n > 0 || session->owed)
        session_owe(&broker->sessions, session, id, next);
    else
        send_page(broker, session, id, next);
}

bool replay_send_owed(struct broker *broker)
{
    bool more = false;
    if (broker->sessions.n_owed == 0)
        return false;
    struct session *session;
    for (session = broker->sessions.by_id; session; session = session->by_id.next) {
        struct id128 id;
        uint64_t next;
        if (session->doomed || session->outbox.n > 0 || !session_pay(&broker->sessions, session, &id, &next))
            continue;
        send_page(broker, session, id, next);
        more |= session->owed && session->outbox.n == 0;
    }
    return more;
}
