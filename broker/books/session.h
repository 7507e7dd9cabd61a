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
 * process, or a suspended machine. */
#define SESSION_GRACE_MS 25000
#define SESSION_MAX      16384
#define SESSION_MAX_OWED 8192 /* replay pages that a session may be owed, one per request */

#define SESSION_ABANDONED_LISTS 1024

struct assembly;
struct request;

struct owed_page { /* of a request's output */
    struct owed_page *prev, *next;
    struct id128 id;
    uint64_t next_id; /* index of the first id that the client lacks */
    UT_hash_handle hh;
};

struct session {
    struct id128 id;
    struct peer peer;
    struct outbox outbox;
    uint64_t lease_until; /* clock_ns */
    uint64_t deaf_since;  /* when its last subscription ended; 0: it has one, or never had one */
    bool doomed;          /* to be closed at the end of this turn of the loop */
    bool unreachable;     /* its connection is gone, perhaps only cut, or memory for it was short */
    bool tells;           /* its client reports what it has taken */
    bool near;            /* it came through a socket in the run directory, so from the pool's own user */
    struct id128 client;  /* with a key: the first half of the key, which its requests count for */
    uint64_t asked_ns;    /* clock_ns when it last asked, without a key, what a worker does; 0: never */
    uint32_t key;         /* number of the key that it was last opened with; 0: none, in the run directory */
    struct assembly *assembly; /* a request that arrives in parts; NULL: none */
    struct request *requests;  /* unfinished ones; list by session_prev/next */
    uint64_t load, load_ns;    /* tokens to process and generate for them, as last sent to it (publish.h) */
    struct owed_page *owed;    /* list, oldest first */
    struct owed_page *owed_by_id;
    size_t n_owed;
    bool pending; /* messages wait in its outbox, or pages are owed: it is in the list of pending sessions */
    struct session *pending_prev, *pending_next;
    UT_hash_handle by_id, by_peer;
};

struct sessions {                /* zeroed except for the seed and the credit: empty */
    uint64_t seed;               /* of the hashes */
    struct credit_total *credit; /* for all bytes in flight to them; NULL: not counted */
    struct session *by_id, *by_peer;
    size_t n;
    struct session *pending; /* list by pending_prev/next */
    bool any_doomed;
    /* Unfinished requests whose session is closed: lists by session_prev/next. Each holds those of some
     * sessions, so that opening a session searches only one list. */
    struct request *abandoned[SESSION_ABANDONED_LISTS];
};

/* Opens a session for a peer, or gives an open one to a new peer (its client reconnected); either way the
 * lease is renewed. A peer that had another session leaves that one. NULL: there are SESSION_MAX already, or
 * out of memory. */
struct session *session_open(struct sessions *sessions, struct id128 id, const struct peer *peer,
                             uint64_t now);

/* Sets the reason why session_open returned NULL for this id. */
void session_say_why_none(const struct sessions *sessions, const struct id128 *id, struct error *err);

/* The id that the session's requests count for: its key's, shared by all sessions of that key; without a key,
 * its own. */
static inline const struct id128 *session_client(const struct session *session)
{
    return session->key ? &session->client : &session->id;
}

struct session *session_find(const struct sessions *sessions, const struct id128 *id);
struct session *session_of_peer(struct sessions *sessions, const struct peer *peer);

/* Any sign of life. */
void session_renew(struct session *session, uint64_t now);

/* The broker was stalled for `late` nanoseconds, during which no lease could be renewed: all leases start
 * again, and abandoned requests get that much more time. */
void sessions_stood_still(struct sessions *sessions, uint64_t late, uint64_t now);

/* An unfinished request is bound to an open session, or abandoned until a time (UINT64_MAX: forever). The
 * first two functions move it from one list to the other; the last one removes it from either. */
void session_bind(struct sessions *sessions, struct session *session, struct request *request);
void session_abandon(struct sessions *sessions, struct request *request, uint64_t until);
void session_unbind(struct sessions *sessions, struct request *request);

/* The list of abandoned requests that contains this session's; it may contain those of other sessions too. */
struct request *session_abandoned(const struct sessions *sessions, const struct id128 *id);

/* Remembers that the client is owed a page; if it asks for several pages of one request, the newest question
 * counts. The session becomes pending. Beyond SESSION_MAX_OWED, or out of memory, the question is dropped,
 * and the client asks again. */
void session_owe(struct sessions *sessions, struct session *session, struct id128 id, uint64_t next_id);

/* Removes the page owed longest; false if none is owed. */
bool session_pay(struct session *session, struct id128 *ret_id, uint64_t *ret_next_id);

/* Appends the session to the list of pending ones; removes it from there once nothing is pending. */
void session_pend(struct sessions *sessions, struct session *session);
void session_unpend(struct sessions *sessions, struct session *session);

/* Marks the session to be closed once no pointer to it is held. */
void session_doom(struct sessions *sessions, struct session *session);

/* Frees the session; its requests must have been unbound. */
void session_close(struct sessions *sessions, struct session *session);

#endif
