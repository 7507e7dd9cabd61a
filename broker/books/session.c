/* SPDX-License-Identifier: MIT */
/* The table of sessions, found by their id and by the routing id of their peer.
 *
 * A session is a capability: whoever says hello with its 16 bytes owns it, so a client that reconnects under
 * a new routing id takes its session along. Session ids and (custom) routing ids are chosen by clients, so
 * the hashes are seeded. A session in trouble is only marked doomed while the loop works; it is closed when
 * nobody holds a pointer to it. */

#include "broker/books/session.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "broker/books/request.h"
#include "common/clock.h"
#include "common/hash.h"

static unsigned hash_of(const struct sessions *sessions, const void *key, size_t len)
{
    return (unsigned)hash64(key, len, sessions->seed);
}

struct session *session_find(const struct sessions *sessions, const struct id128 *id)
{
    struct session *session;
    HASH_FIND_BYHASHVALUE(by_id, sessions->by_id, id, sizeof *id, hash_of(sessions, id, sizeof *id), session);
    return session;
}

struct session *session_of_peer(struct sessions *sessions, const struct peer *peer)
{
    struct session *session;
    HASH_FIND_BYHASHVALUE(by_peer, sessions->by_peer, peer->bytes, peer->len,
                          hash_of(sessions, peer->bytes, peer->len), session);
    return session;
}

static void leave_peer(struct sessions *sessions, struct session *session)
{
    if (session->peer.len > 0)
        HASH_DELETE(by_peer, sessions->by_peer, session);
    session->peer.len = 0;
}

static void take_peer(struct sessions *sessions, struct session *session, const struct peer *peer)
{
    session->peer = *peer;
    HASH_ADD_KEYPTR_BYHASHVALUE(by_peer, sessions->by_peer, session->peer.bytes, session->peer.len,
                                hash_of(sessions, peer->bytes, peer->len), session);
}

void session_doom(struct sessions *sessions, struct session *session)
{
    session->doomed = sessions->any_doomed = true;
}

void session_pend(struct sessions *sessions, struct session *session)
{
    if (session->pending)
        return;
    session->pending = true;
    DL_APPEND2(sessions->pending, session, pending_prev, pending_next);
}

void session_unpend(struct sessions *sessions, struct session *session)
{
    if (!session->pending)
        return;
    session->pending = false;
    DL_DELETE2(sessions->pending, session, pending_prev, pending_next);
}

void session_owe(struct sessions *sessions, struct session *session, struct id128 id, uint64_t next_id)
{
    struct owed_page *page;
    const unsigned hash = (unsigned)hash64(&id, sizeof id, sessions->seed);
    HASH_FIND_BYHASHVALUE(hh, session->owed_by_id, &id, sizeof id, hash, page);
    if (page) {
        page->next_id = next_id;
        return;
    }
    if (session->n_owed >= SESSION_MAX_OWED || !(page = calloc(1, sizeof *page)))
        return;
    page->id = id;
    page->next_id = next_id;
    DL_APPEND(session->owed, page);
    HASH_ADD_BYHASHVALUE(hh, session->owed_by_id, id, sizeof page->id, hash, page);
    session->n_owed++;
    session_pend(sessions, session);
}

bool session_pay(struct session *session, struct id128 *ret_id, uint64_t *ret_next_id)
{
    struct owed_page *page = session->owed;
    if (!page)
        return false;
    *ret_id = page->id;
    *ret_next_id = page->next_id;
    DL_DELETE(session->owed, page);
    HASH_DEL(session->owed_by_id, page);
    session->n_owed--;
    free(page);
    return true;
}

/* What was to be sent to the peer is for nobody else. */
static void drop_unsent(struct sessions *sessions, struct session *session)
{
    struct id128 id;
    uint64_t next_id;
    outbox_deinit(&session->outbox);
    while (session_pay(session, &id, &next_id))
        ;
    session_unpend(sessions, session);
}

struct session *session_open(struct sessions *sessions, struct id128 id, const struct peer *peer,
                             uint64_t now)
{
    struct session *session = session_find(sessions, &id);
    struct session *earlier = session_of_peer(sessions, peer);
    struct credit *credit = NULL;
    if (earlier != session || !session) {
        credit = sessions->credit ? credit_new(sessions->credit) : NULL;
        if (sessions->credit && !credit)
            return NULL;
    }
    if (!session) {
        if (sessions->n >= SESSION_MAX || !(session = calloc(1, sizeof *session))) {
            credit_free(credit);
            return NULL;
        }
        session->id = id;
        HASH_ADD_BYHASHVALUE(by_id, sessions->by_id, id, sizeof session->id,
                             hash_of(sessions, &id, sizeof id), session);
        sessions->n++;
    }
    if (earlier != session) {
        if (earlier) {
            leave_peer(sessions, earlier);
            session_doom(sessions, earlier);
        }
        leave_peer(sessions, session);
        take_peer(sessions, session, peer);
        drop_unsent(sessions, session);
        session->outbox.credit = credit;
    }
    session->doomed = session->unreachable = false;
    session->deaf_since = 0;
    session_renew(session, now);
    return session;
}

void session_say_why_none(const struct sessions *sessions, const struct id128 *id, struct error *err)
{
    if (sessions->n >= SESSION_MAX && !session_find(sessions, id))
        error_set(err, PROTO_OVERLOADED, "too many sessions: %zu are open, at most %d are allowed",
                  sessions->n, SESSION_MAX);
    else
        error_set(err, PROTO_OVERLOADED, "out of memory: no session can be opened now");
}

void session_renew(struct session *session, uint64_t now)
{
    session->lease_until = now + SESSION_LEASE_MS * CLOCK_NS_PER_MS;
}

void sessions_stood_still(struct sessions *sessions, uint64_t late, uint64_t now)
{
    for (struct session *session = sessions->by_id; session; session = session->by_id.next)
        session_renew(session, now);
    for (size_t i = 0; i < SESSION_ABANDONED_LISTS; i++)
        for (struct request *request = sessions->abandoned[i]; request; request = request->session_next)
            if (request->abandoned_until != UINT64_MAX)
                request->abandoned_until += late;
}

static uint32_t list_of(const struct sessions *sessions, const struct id128 *id)
{
    return hash_of(sessions, id, sizeof *id) % SESSION_ABANDONED_LISTS;
}

struct request *session_abandoned(const struct sessions *sessions, const struct id128 *id)
{
    return sessions->abandoned[list_of(sessions, id)];
}

void session_unbind(struct sessions *sessions, struct request *request)
{
    if (!request->session && request->abandoned_until == 0)
        return;
    struct request **list =
        request->session ? &request->session->requests : &sessions->abandoned[request->abandoned_in];
    DL_DELETE2(*list, request, session_prev, session_next);
    request->session = NULL;
    request->abandoned_until = 0;
}

void session_bind(struct sessions *sessions, struct session *session, struct request *request)
{
    session_unbind(sessions, request);
    request->session = session;
    DL_APPEND2(session->requests, request, session_prev, session_next);
}

void session_abandon(struct sessions *sessions, struct request *request, uint64_t until)
{
    session_unbind(sessions, request);
    request->abandoned_until = until;
    request->abandoned_in = list_of(sessions, &request->current.session);
    DL_APPEND2(sessions->abandoned[request->abandoned_in], request, session_prev, session_next);
}

void session_close(struct sessions *sessions, struct session *session)
{
    leave_peer(sessions, session);
    HASH_DELETE(by_id, sessions->by_id, session);
    sessions->n--;
    drop_unsent(sessions, session);
    free(session);
}
