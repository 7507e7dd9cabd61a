/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_H
#define BROKER_SESSION_H

/* Open sessions: who a peer of the frontend is, and until when we believe that it is there. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "broker/outbox.h"
#include "proto/message.h"

#define SESSION_LEASE_MS 5000 /* silence after which a session is closed */
#define SESSION_MAX      16384

struct request;

struct session {
    struct id128 id;
    struct peer peer;
    struct outbox outbox;
    uint64_t lease_until;     /* clock_ns */
    bool doomed;              /* to be closed at the end of this turn of the loop */
    struct request *requests; /* those that have not ended; list by session_prev/next */
    UT_hash_handle by_id, by_peer;
};

struct sessions {  /* zeroed but for the seed: empty */
    uint64_t seed; /* of the hashes */
    struct session *by_id, *by_peer;
    size_t n;
    bool any_doomed;
};

/* Opens a session for a peer, or gives an open one to a new peer (its client reconnected); either way the
 * lease is renewed. A peer that had another session leaves that one. NULL when there are SESSION_MAX or
 * memory is short. */
struct session *session_open(struct sessions *sessions, struct id128 id, const struct peer *peer,
                             uint64_t now);

struct session *session_find(const struct sessions *sessions, const struct id128 *id);
struct session *session_of_peer(struct sessions *sessions, const struct peer *peer);

/* Any sign of life. */
void session_renew(struct session *session, uint64_t now);

/* Marks it to be closed when nobody holds a pointer to it any more. */
void session_doom(struct sessions *sessions, struct session *session);

/* Forgets it; the caller has taken its requests away. */
void session_close(struct sessions *sessions, struct session *session);

#endif
