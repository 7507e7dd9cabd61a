/* SPDX-License-Identifier: MIT */
/* The table of sessions, found by their id and by the routing id of their peer.
 *
 * A session is a capability: whoever says hello with its 16 bytes owns it, so a client that reconnects under
 * a new routing id takes its session along. Session ids and (custom) routing ids are chosen by clients, so
 * the hashes are seeded. A session in trouble is only marked doomed while the loop works; the frontend closes
 * it when nobody holds a pointer to it. */

#include "broker/session.h"

#include <stdlib.h>
#include <string.h>

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

struct session *session_open(struct sessions *sessions, struct id128 id, const struct peer *peer,
                             uint64_t now)
{
    struct session *session = session_find(sessions, &id);
    struct session *earlier = session_of_peer(sessions, peer);
    if (!session) {
        if (sessions->n >= SESSION_MAX || !(session = calloc(1, sizeof *session)))
            return NULL;
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
        outbox_deinit(&session->outbox); /* it was for the peer that is gone */
    }
    session->doomed = false;
    session_renew(session, now);
    return session;
}

void session_renew(struct session *session, uint64_t now)
{
    session->lease_until = now + SESSION_LEASE_MS * CLOCK_NS_PER_MS;
}

void session_close(struct sessions *sessions, struct session *session)
{
    leave_peer(sessions, session);
    HASH_DELETE(by_id, sessions->by_id, session);
    sessions->n--;
    outbox_deinit(&session->outbox);
    free(session);
}
