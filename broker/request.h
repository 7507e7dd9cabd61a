/* SPDX-License-Identifier: MIT */
#ifndef BROKER_REQUEST_H
#define BROKER_REQUEST_H

/* Requests and the ledger that finds them.
 *
 * A request is known by (session, id), the idempotency key: asked twice it is still one request. That key,
 * its home, never changes: the worker publishes under it. After an attach a second session, the current one,
 * knows the request under the same id. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "broker/journal.h"
#include "common/bytes.h"
#include "common/hash.h"
#include "common/heap.h"
#include "proto/message.h"

enum request_state {
    REQUEST_QUEUED,     /* admitted, waits for a worker */
    REQUEST_RUNNING,    /* assigned to a worker */
    REQUEST_CANCELLING, /* assigned, and the worker was told to stop */
    REQUEST_ENDED,      /* its end is in the journal; kept for replays and repeats */
    REQUEST_STATE_COUNT
};
const char *request_state_name(enum request_state state);

/* Also the topic of its frames on the streams. */
struct request_key {
    struct id128 session, id;
};
_Static_assert(sizeof(struct request_key) == PROTO_TOPIC_BYTES, "a key is a topic");

struct prompt_pieces;
struct session;
struct share;
struct worker;

struct request {
    struct request_key home;    /* who asked first */
    struct request_key current; /* who has it now; differs from home only after an attach */
    enum request_state state;
    struct epoch epoch;

    /* What was asked. The message is kept as it came, to be compared with repeats and decoded again for the
     * worker; only its hash outlives the end. */
    struct buffer body;
    struct hash128 body_hash;
    struct bytes model; /* inside the body; "" = any */
    uint64_t seed;
    int32_t priority;
    uint64_t prompt_tokens; /* roughly */
    uint64_t arrived_ns;    /* clock_ns */
    uint64_t deadline_ns;   /* UINT64_MAX: none */
    enum disconnect_policy on_disconnect;
    uint64_t keep_ns; /* DISCONNECT_KEEP: how long it runs on alone */

    /* Where it is. */
    struct share *share;                        /* until it ends */
    struct heap_node queue_node, deadline_node; /* in the queue */
    uint64_t queue_order;                       /* order of arrival there */
    struct worker *worker;                      /* while assigned */
    struct prompt_pieces *pieces; /* of the prompt, to find who has it; NULL: none; until it ends */
    uint32_t n_found;             /* of those, how many its worker is believed to have had */
    uint64_t prefill, decode;     /* its worker's load: until the first token, until the end */
    bool prefilled;               /* the worker has sent ids of it */
    bool has_digest;              /* it was assigned once: */
    uint8_t digest[16];           /* to a worker with this model, and may go to no other */
    struct session *session;      /* while bound to an open one; NULL once ended */
    uint64_t abandoned_until;     /* while abandoned: when it is cancelled; else 0 */
    bool finished;                /* the worker said so, in finished_message, but frames are still missing */
    uint64_t cancelled_ns;        /* REQUEST_CANCELLING: since when */
    uint64_t ended_ns;            /* REQUEST_ENDED: since when */
    struct request *worker_prev, *worker_next;   /* the worker's list */
    struct request *session_prev, *session_next; /* the session's list, or the list of abandoned ones */
    struct request *ended_prev, *ended_next;     /* ended ones, oldest first */
    struct request *kept_prev, *kept_next;       /* of those, its session's */
    struct kept *kept;                           /* that list; NULL: memory was short */

    struct journal_log log;
    struct buffer finished_message; /* the worker's `finished`, while frames are missing */
    struct buffer end_message;      /* `end` as it was sent, for repeats */
    UT_hash_handle by_home, by_current;
};

struct kept { /* what one session has in the journal of requests that ended; there while that is something */
    struct id128 session; /* who asked first */
    uint64_t bytes;
    struct request *requests; /* list by kept_prev/next, oldest end first */
    struct heap_node node;
    UT_hash_handle hh;
};

struct ledger {    /* zeroed but for the seed: empty */
    uint64_t seed; /* of the hashes: secret, so that nobody can choose keys that collide */
    struct request *by_home;
    struct request *by_current; /* only those whose current key is not their home */
    struct request *ended;      /* oldest first */
    struct kept *kept;          /* by session */
    struct heap most_kept;      /* the session that has most of it first */
    size_t n;
};

/* Adds a request under its home key. NULL when memory is short. The caller has looked that the key is free.
 */
struct request *ledger_add(struct ledger *ledger, struct request_key key);

/* Finds by home or by current key; NULL when there is none. */
struct request *ledger_find(struct ledger *ledger, const struct request_key *key);

/* By home key only: what a worker's topic says. */
struct request *ledger_find_home(struct ledger *ledger, const struct request_key *key);

/* Gives the request to another session. -EEXIST when that session has another request of this id. */
int ledger_attach(struct ledger *ledger, struct request *request, struct id128 session);

/* Marks it ended: its log is settled, and it may be forgotten to make room. Frees the body but not its hash.
 */
void ledger_ended(struct ledger *ledger, struct journal *journal, struct request *request, uint64_t now);

/* Makes room for `bytes` more in the journal, if that can be: forgets ended requests as far as it takes,
 * always the oldest of the session that has most of them in the journal. So who fills it pushes out his own
 * first, and not what others have still to read. */
void ledger_make_room(struct ledger *ledger, struct journal *journal, uint64_t bytes);

/* Forgets the request and frees it with all it owns; it is in no other list. */
void ledger_remove(struct ledger *ledger, struct journal *journal, struct request *request);

/* Whether a message asks for what this request was asked for. */
bool request_same_body(const struct request *request, const void *body, size_t len);

/* Bytes that a request costs beside its frames. */
uint64_t request_overhead(void);

#endif
