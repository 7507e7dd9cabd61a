/* SPDX-License-Identifier: MIT */
/* Requests and the sessions they belong to.
 *
 * A session closes when its client leaves (says bye, cannot be sent to, listens no more for a lease) or is
 * silent beyond its lease. A subscription may end because its connection was lost, and then another comes: so
 * a client that listens no more is only asked whether it is there. One that died lost both connections, and
 * that is seen at once. A request that has not ended is then abandoned: without a session, until a time at
 * which it is cancelled. One that asked to be kept has the time it asked for. Any other has none, with one
 * exception: a client that is silent and yet connected to the stream was most likely stopped (Ctrl-Z, a
 * suspended machine) and comes back with all its connections, so its requests wait for a moment of grace; so
 * do those of a client that cannot be sent to and yet is connected to the stream, for one of its connections
 * was cut, or memory was short. If it dies instead, its connections end, and that is leaving.
 *
 * Until it ended a request can come back: its session opens again, or another session attaches to it. */

#include "broker/core/lifecycle_sessions.h"

#include <string.h>

#include <utlist.h>

#include "broker/wire/intake.h"
#include "broker/books/record.h"
#include "broker/core/assembly.h"
#include "broker/core/lifecycle.h"
#include "common/clock.h"

void lifecycle_adopt(struct broker *broker, struct session *session)
{
    struct request *request, *next, *list = session_abandoned(&broker->sessions, &session->id);
    DL_FOREACH_SAFE2(list, request, next, session_next)
    {
        if (memcmp(&request->current.session, &session->id, sizeof session->id) == 0)
            session_bind(&broker->sessions, session, request);
    }
}

int lifecycle_attach(struct broker *broker, struct request *request, struct session *session)
{
    int r = ledger_attach(&broker->ledger, request, session->id);
    if (r == 0)
        record_attached(request);
    if (r == 0 && request->state != REQUEST_ENDED && request->session != session)
        session_bind(&broker->sessions, session, request);
    return r;
}

/* Until when a request of this session, which closes, goes on without it. */
static uint64_t kept_until(const struct broker *broker, const struct session *session,
                           const struct request *request)
{
    if (request->on_disconnect == DISCONNECT_KEEP)
        return broker->now + request->keep_ns;
    if ((!session->doomed || session->unreachable) && stream_has_listener(&broker->stream, &session->id))
        return broker->now + SESSION_GRACE_MS * CLOCK_NS_PER_MS;
    return broker->now;
}

static void abandon_requests(struct broker *broker, struct session *session)
{
    struct request *request, *next;
    DL_FOREACH_SAFE2(session->requests, request, next, session_next)
    {
        session_abandon(&broker->sessions, request, kept_until(broker, session, request));
    }
}

void lifecycle_left(struct broker *broker, const struct id128 *id)
{
    struct session *session = session_find(&broker->sessions, id);
    if (session) { /* which has abandoned nothing */
        session->deaf_since = broker->now;
        client_link_probe(&broker->client_link, session);
        return;
    }
    for (struct request *request = session_abandoned(&broker->sessions, id); request;
         request = request->session_next)
        if (memcmp(&request->current.session, id, sizeof *id) == 0 &&
            request->on_disconnect != DISCONNECT_KEEP && request->abandoned_until > broker->now)
            request->abandoned_until = broker->now;
}

void lifecycle_watch_deaf(struct broker *broker)
{
    struct session *session, *next;
    HASH_ITER(by_id, broker->sessions.by_id, session, next)
    {
        if (session->deaf_since == 0 || session->doomed)
            continue;
        if (stream_has_listener(&broker->stream, &session->id))
            session->deaf_since = 0;
        else if (broker->now - session->deaf_since >= SESSION_LEASE_MS * CLOCK_NS_PER_MS)
            session_doom(&broker->sessions, session);
        else
            client_link_probe(&broker->client_link, session);
    }
}

static void cancel_abandoned(struct broker *broker, struct request *list)
{
    struct request *request, *next;
    DL_FOREACH_SAFE2(list, request, next, session_next)
    {
        if (request->abandoned_until > broker->now)
            continue;
        request->abandoned_until = UINT64_MAX;
        lifecycle_cancel(broker, request);
    }
}

void lifecycle_enter_key(struct broker *broker, struct session *session, uint32_t number)
{
    struct client_key *before = client_keys_of(&broker->client_keys, session->key);
    struct client_key *key = client_keys_of(&broker->client_keys, number);
    if (before)
        before->sessions--;
    session->key = key ? number : 0;
    if (!key)
        return;
    memcpy(&session->client, key->bytes, sizeof session->client);
    key->sessions++;
}

void lifecycle_close_sessions(struct broker *broker)
{
    struct session *session, *next;
    broker->sessions.any_doomed = false;
    HASH_ITER(by_id, broker->sessions.by_id, session, next)
    {
        if (!session->doomed && session->lease_until > broker->now)
            continue;
        abandon_requests(broker, session);
        assembly_drop(broker, session);
        lifecycle_enter_key(broker, session, 0);
        tellings_forget(&broker->tellings, &session->id);
        session_close(&broker->sessions, session);
    }
    for (size_t i = 0; i < SESSION_ABANDONED_LISTS; i++)
        cancel_abandoned(broker, broker->sessions.abandoned[i]);
}

void lifecycle_clear(struct broker *broker)
{
    struct session *session, *next_session;
    HASH_ITER(by_id, broker->sessions.by_id, session, next_session)
    {
        assembly_drop(broker, session);
        session_close(&broker->sessions, session);
    }
    struct request *request, *next;
    HASH_ITER(by_home, broker->ledger.by_home, request, next)
    {
        ledger_remove(&broker->ledger, &broker->journal, request);
    }
}

static bool has_key(const void *arg, uint32_t key)
{
    return client_keys_of(arg, key) != NULL;
}

void lifecycle_keys_gone(struct broker *broker)
{
    struct session *session, *next;
    HASH_ITER(by_id, broker->sessions.by_id, session, next)
    {
        if (session->key != 0 && !client_keys_of(&broker->client_keys, session->key))
            session_doom(&broker->sessions, session);
    }
    intake_close_owned(has_key, &broker->client_keys);
}
