/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_LEDGER_H
#define BROKER_BOOKS_LEDGER_H

/* The ledger: finds requests, and keeps those that have ended for a while. */

#include "broker/books/journal.h"
#include "broker/books/request.h"
#include "common/clock.h"
#include "common/heap.h"

/* How long ended requests are kept for replays and repeats by default; longer if the request asked for it. */
#define LEDGER_RETENTION_NS (60 * CLOCK_NS_PER_S)

struct kept {             /* a session's ended requests that it has not read; exists while there are any */
    struct id128 session; /* the one that asked first */
    uint64_t bytes;
    struct request *requests; /* list by kept_prev/next, oldest end first */
    struct heap_node node;
    UT_hash_handle hh;
};

struct ledger {            /* zeroed except for the seed: empty */
    uint64_t seed;         /* of the hashes: secret, so that nobody can choose keys that collide */
    uint64_t retention_ns; /* 0: LEDGER_RETENTION_NS */
    struct request *by_home;
    struct request *by_current; /* only those whose current key is not their home */
    struct request *ended;      /* oldest first */
    struct request *read;  /* of those, the ones clients confirmed; list by kept_prev/next, oldest first */
    struct kept *kept;     /* the others, by session */
    struct heap most_kept; /* the session with the most bytes first */
    size_t n;
    uint64_t owners; /* the last owner number given to a log */
};

/* Adds a request under its home key, which must be free. NULL: out of memory. */
struct request *ledger_add(struct ledger *ledger, struct request_key key);

/* Finds a request by home or by current key; NULL: there is none. */
struct request *ledger_find(struct ledger *ledger, const struct request_key *key);

/* Finds a request by home key only: the topic that workers publish under. */
struct request *ledger_find_home(struct ledger *ledger, const struct request_key *key);

/* Gives the request to another session. -EEXIST if that session has another request with this id. */
int ledger_attach(struct ledger *ledger, struct request *request, struct id128 session);

/* Marks the request as ended: its log is settled, and it may be forgotten to make room. Frees the body but
 * keeps its hash. */
void ledger_ended(struct ledger *ledger, struct journal *journal, struct request *request, uint64_t now);

/* The client has read all of an ended request. */
void ledger_taken(struct ledger *ledger, struct journal *journal, struct request *request);

/* The same for all ended requests of this session. */
void ledger_taken_by(struct ledger *ledger, struct journal *journal, const struct id128 *session);

/* A client asked for frames of an ended request: its retention starts again. */
void ledger_asked(const struct ledger *ledger, struct request *request, uint64_t now);

/* Forgets requests that ended long ago. */
void ledger_forget(struct ledger *ledger, struct journal *journal, uint64_t now);

/* Makes room for `bytes` more in the journal, if possible, by forgetting ended requests, read ones first.
 * Among unread ones it takes the oldest of the session with the most bytes, so a session that fills the
 * journal loses its own first. Unread ones are forgotten only while there are many (journal_may_drop_unread),
 * or if a running request `needs` the room. */
void ledger_make_room(struct ledger *ledger, struct journal *journal, uint64_t bytes, bool needs);

/* Frees the request and everything it owns; it must be in no other list. */
void ledger_remove(struct ledger *ledger, struct journal *journal, struct request *request);

#endif
