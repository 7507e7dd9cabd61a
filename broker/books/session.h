/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_SESSION_H
#define BROKER_BOOKS_SESSION_H

/* Open sessions: the identity of each frontend peer, its lease, and its unfinished requests. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "broker/wire/outbox.h"
#include "common/error.h"
#include "proto/message.h"

#define SESSION_LEASE_MS 5000 /* silence after which a session is closed */
/* How long its requests then wait for a client that is silent but still connected to the stream: a stopped
 * process, or a machine that sleeps. */
#define SESSION_GRACE_MS 25000
#define SESSION_MAX      16384
#define SESSION_MAX_OWED 8192 /* pages of replays that a session may be owed, of as many requests */

#define SESSION_ABANDONED_LISTS 1024

struct assembly;
struct request;

struct owed_page { /* of a request's output, from an id on */
    struct owed_page *prev, *next;
    struct id128 id;
    uint64_t next_id; /* number of the first id that the client lacks */
    UT_hash_handle hh;
};

struct session {
    struct id128 id;
    struct peer peer;
    struct outbox outbox;
    uint64_t lease_until; /* clock_ns */
    uint64_t deaf_since;  /* its last subscription ended then, and none came since; 0: not so */
    bool doomed;          /* to be closed at the end of this turn of the loop */
    bool unreachable;     /* its connection is gone, which may have been cut, or memory was short for it */
    bool tells;           /* its client says what it has taken */
    bool near;            /* it came by a socket in the run directory, which is the pool's user's own */
    struct id128 client;  /* with a key: its first half, for which requests count */
    uint32_t key;         /* number of the key that it was opened with last; 0: none, on the run directory */
    struct assembly *assembly; /* the request that comes in parts; NULL: none does */
    struct request *requests;  /* those that have not ended; list by session_prev/next */
    struct owed_page *owed;    /* list, first asked first */
    struct owed_page *owed_by_id;
    size_t n_owed;
    bool pending; /* something waits for it in its outbox, or is owed to it: it is in the list of these */
    struct session *pending_prev, *pending_next;
    UT_hash_handle by_id, by_peer;
};

struct sessions {                /* zeroed but for the seed and the credit: empty */
    uint64_t seed;               /* of the hashes */
    struct credit_total *credit; /* of all that is under way to them; NULL: it is not counted */
    struct session *by_id, *by_peer;
    size_t n;
    struct session *pending; /* list by pending_prev/next */
    bool any_doomed;
    /* Unfinished requests whose session is closed: lists by session_prev/next, each of some sessions, so that
     * opening a session searches only a few. */
    struct request *abandoned[SESSION_ABANDONED_LISTS];
};

/* Opens a session for a peer, or gives an open one to a new peer (its client reconnected); either way the
 * lease is renewed. A peer that had another session leaves that one. NULL when there are SESSION_MAX or
 * out of memory. */
struct session *session_open(struct sessions *sessions, struct id128 id, const struct peer *peer,
                             uint64_t now);

/* Why it opened none for this id. */
void session_say_why_none(const struct sessions *sessions, const struct id128 *id, struct error *err);

/* Whom the session's requests count for: its key, shared by all sessions of the key; without a key, itself.
 */
static inline const struct id128 *session_client(const struct session *session)
{
    return session->key ? &session->client : &session->id;
}

struct session *session_find(const struct sessions *sessions, const struct id128 *id);
struct session *session_of_peer(struct sessions *sessions, const struct peer *peer);

/* Any sign of life. */
void session_renew(struct session *session, uint64_t now);

/* The broker was stalled for `late` nanoseconds, in which nobody could renew a lease: all leases start again,
 * and abandoned requests get that much more time. */
void sessions_stood_still(struct sessions *sessions, uint64_t late, uint64_t now);

/* A request that has not ended is bound to an open session, or abandoned until a time (UINT64_MAX: for good).
 * Each of the first two takes it from where it was; the last one takes it off both lists. */
void session_bind(struct sessions *sessions, struct session *session, struct request *request);
void session_abandon(struct sessions *sessions, struct request *request, uint64_t until);
void session_unbind(struct sessions *sessions, struct request *request);

/* The list in which what this session left running stands, if it is abandoned; others may stand there too. */
struct request *session_abandoned(const struct sessions *sessions, const struct id128 *id);

/* Remembers that the client is owed a page, one for each request (the newest question counts); the session is
 * pending then. Beyond SESSION_MAX_OWED, or out of memory, it is forgotten, and the client asks again. */
void session_owe(struct sessions *sessions, struct session *session, struct id128 id, uint64_t next_id);

/* Takes out what has been owed longest; false when nothing is. */
bool session_pay(struct session *session, struct id128 *ret_id, uint64_t *ret_next_id);

/* Puts it into the list of pending ones, at its end; takes it off when nothing waits for it any more. */
void session_pend(struct sessions *sessions, struct session *session);
void session_unpend(struct sessions *sessions, struct session *session);

/* Marks it to be closed once no pointer to it is held. */
void session_doom(struct sessions *sessions, struct session *session);

/* Forgets it; the caller has taken its requests away. */
void session_close(struct sessions *sessions, struct session *session);

#endif
