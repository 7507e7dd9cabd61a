/* SPDX-License-Identifier: MIT */
/* Pages of the journal for clients.
 *
 *     asked ──the session has credit──▶ page made and sent
 *       └───it has none──▶ owed ──it has read──▶ page made and sent
 *
 * What is owed is a place in the request's output, not a page: it costs a few bytes however long the client
 * does not read, and the page is as new as it can be when it goes. A client that asks again for the same
 * request only moves that place. A session owes its pages in the order of the asking; the turn of the loop
 * has its bound over all of them, so that many replays hold up nobody.
 *
 * All that is under way to clients who do not read is bounded too, and no client can spend it for the others:
 * the less of it is left, the smaller pages become, down to one frame. */

#include "broker/core/replay.h"

#include <utlist.h>

#define PAGES_PER_TURN ((size_t)4 << 20) /* bytes */

/* Of all that is under way, and the part of what is left of it that one page may have: while little is, pages
 * are of the usual size. */
#define UNDER_WAY_BYTES ((size_t)128 << 20)
#define PAGE_PART       (UNDER_WAY_BYTES / PROTO_MAX_FRAME_BYTES)

static size_t page_bytes(struct broker *broker)
{
    size_t under_way = atomic_load(&broker->client_link.credit.bytes);
    return under_way < UNDER_WAY_BYTES ? (UNDER_WAY_BYTES - under_way) / PAGE_PART : 0;
}

static void refuse(struct broker *broker, struct session *session, struct id128 id, enum proto_error error,
                   const char *text)
{
    struct message no = {.kind = MESSAGE_ERROR, .error = {.has_id = true, .id = id, .error = error}};
    no.error.of = MESSAGE_REPLAY;
    no.error.text = bytes_of_string(text);
    client_link_send(&broker->client_link, session, &no);
}

static void send_page(struct broker *broker, struct session *session, struct id128 id, uint64_t next)
{
    struct request_key key = {session->id, id};
    struct request *request = ledger_find(&broker->ledger, &key);
    struct journal_page *page = &broker->page;
    if (!request) {
        refuse(broker, session, id, PROTO_UNKNOWN_REQUEST, "unknown request, or it ended long ago");
        return;
    }
    if (request->state == REQUEST_ENDED)
        ledger_asked(&broker->ledger, request, broker->now);
    if (journal_read(&request->log, next, page_bytes(broker), page) < 0) {
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
    broker->paged_bytes += page->bytes;
}

static bool may_page(struct broker *broker, struct session *session)
{
    return !session->doomed && session->outbox.n == 0 && broker->paged_bytes < PAGES_PER_TURN &&
           credit_ask(session->outbox.credit);
}

void replay_ask(struct broker *broker, struct session *session, struct id128 id, uint64_t next)
{
    if (!session->owed && may_page(broker, session)) {
        send_page(broker, session, id, next);
        return;
    }
    /* What is owed is a request's that there is, so all of it is bounded as requests are. Beyond the most
     * that a session may be owed, the client has to ask again. */
    if (!ledger_find(&broker->ledger, &(struct request_key){session->id, id})) {
        refuse(broker, session, id, PROTO_UNKNOWN_REQUEST, "unknown request, or it ended long ago");
        return;
    }
    session_owe(&broker->sessions, session, id, next);
    broker->client_link.retry = true;
}

bool replay_send_owed(struct broker *broker)
{
    struct sessions *sessions = &broker->sessions;
    struct session *session, *next, *last = sessions->pending ? sessions->pending->pending_prev : NULL;
    broker->paged_bytes = 0;
    DL_FOREACH_SAFE2(sessions->pending, session, next, pending_next)
    {
        struct id128 id;
        uint64_t from;
        bool served = false;
        while (session->owed && may_page(broker, session)) {
            session_pay(session, &id, &from);
            send_page(broker, session, id, from);
            served = true;
        }
        if (session->outbox.n == 0 && !session->owed) {
            session_unpend(sessions, session);
        } else if (served) { /* the others first, the next time */
            session_unpend(sessions, session);
            session_pend(sessions, session);
        }
        if (session == last || broker->paged_bytes >= PAGES_PER_TURN)
            break;
    }
    return broker->paged_bytes >= PAGES_PER_TURN;
}
