/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_REQUEST_H
#define BROKER_BOOKS_REQUEST_H

/* Requests.
 *
 * A request is identified by its idempotency key (session, id): sent twice, it is still one request. That
 * key, its home, never changes: the worker publishes under it. After an attach the request belongs to a
 * second session, the current one, under the same id. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "broker/books/journal.h"
#include "common/bytes.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/heap.h"
#include "common/sampling_defaults.h"
#include "proto/message.h"

/* The largest message that does not noticeably delay the messages behind it; nearly all are smaller. */
#define REQUEST_BRIEF_BYTES ((size_t)16 << 10)

enum request_state {
    REQUEST_QUEUED,     /* admitted, waiting for a worker */
    REQUEST_RUNNING,    /* assigned to a worker */
    REQUEST_CANCELLING, /* assigned, and the worker was told to stop */
    REQUEST_ENDED,      /* its end is in the journal; kept for replays and repeats */
    REQUEST_STATE_COUNT
};
const char *request_state_name(enum request_state state);

/* The label of a request in the log: the first bytes of its id, and the name that its client gave it. */
struct request_label {
    char text[PROTO_MAX_NAME_BYTES + 16];
};

/* Also the topic of its frames on the streams. */
struct request_key {
    struct id128 session, id;
};
_Static_assert(sizeof(struct request_key) == PROTO_TOPIC_BYTES, "a key is a topic");

struct kept;
struct prompt_pieces;
struct rate;
struct request_record;
struct session;
struct share;
struct tenant_line;
struct worker;

/* The tenant that a request names. Only a hash of the name is kept. The hash also covers the client, unless
 * the tenant stands alone. */
struct tenancy {
    struct id128 id; /* zeros: no tenant is named */
    bool named;
    bool alone; /* it has separate turns and shares, not a part of its client's (struct party) */
};

/* How many ids it may generate, and has room for in the journal (broker/choose/growth.h). */
struct growth_claim {
    uint64_t order;       /* of starting; 0: it has not started */
    uint64_t most;        /* ids that it may generate in all, as far as is known */
    uint64_t credit;      /* ids that it may generate for now; its worker stops there */
    uint64_t ask_at;      /* number of ids at which it asks for more credit */
    uint32_t token_bytes; /* bytes that an id takes */
    uint8_t waits;        /* why it waits for credit, a GROWTH_E_… code; 0: it does not wait */
    struct heap_node age, need;
    struct request *prev, *next; /* list of the waiting ones */
};

struct request {
    struct request_key home;    /* of the session that asked first */
    struct request_key current; /* of its current session; differs from home only after an attach */
    enum request_state state;
    struct epoch epoch;
    struct id128 client;    /* the key that it counts for, if any (session_client) */
    uint32_t key;           /* number of that key; 0: it counts for its home's session */
    bool keyed;             /* it came with a key, which `client` names even if it was removed since */
    bool near;              /* it came through a socket in the run directory */
    struct tenancy tenancy; /* the tenant on whose behalf the client asks */

    /* The message as received, kept to compare it with repeats and to decode it again for the worker. After
     * the end only its hash is kept. */
    struct bytes body; /* in the record */
    struct hash128 body_hash;
    struct bytes model; /* inside the body; "" = any */
    struct bytes name;  /* inside the body: its request_id; "" = none */
    bool model_known;   /* some worker has announced that model */
    bool embed;         /* its answer is an embedding or scores */
    bool pair;          /* it ranks a pair of texts; `embed` is set too */
    uint64_t seed;
    int32_t priority;
    uint64_t prompt_tokens; /* estimated */
    uint64_t arrived_ns;    /* clock_ns */
    uint64_t deadline_ns;   /* UINT64_MAX: none */
    enum disconnect_policy on_disconnect;
    uint64_t keep_ns; /* DISCONNECT_KEEP: how long it runs without a client */

    /* Its place in the broker. */
    struct share *share;                        /* its client's, until it ends */
    struct share *tenant_share;                 /* its tenant's; NULL: no tenant */
    struct rate *rate;                          /* its tenant's limits; NULL: none */
    struct heap_node queue_node, deadline_node; /* in the queue */
    uint64_t queue_order;                       /* in the queue: order of arrival */
    int32_t queued_class;                       /* its priority class */
    uint32_t queued_kind;                       /* its kind on arrival (enum request_kind) */
    uint32_t queued_target;                     /* the number of its target (targets.h) */
    struct tenant_line *queued_line;            /* its tenant's line (tenants.h) */
    struct worker *worker;                      /* while assigned */
    struct prompt_pieces *pieces; /* of the prompt, to find workers that have it; NULL: none; until it ends */
    uint32_t n_found;             /* of those, how many its worker was believed to have */
    uint32_t n_stored;            /* of those, how many the prefix store was believed to have */
    uint64_t prefill, decode;     /* load on its worker: until the first token; until the end */
    bool prefilled;               /* the worker has sent ids of it */
    uint32_t n_lost;              /* workers that died with it, here and where it was resumed from */
    bool has_digest;              /* it was assigned once, */
    uint8_t digest[16];           /* to a worker with this model, and may go to no other, */
    double sampling[SAMPLING_N];  /* with these defaults for parameters that it omits */
    struct session *session;      /* the open session it is bound to; NULL: none, or it has ended */
    uint64_t abandoned_until;     /* while abandoned: when it is cancelled; else 0 */
    uint32_t abandoned_in;        /* while abandoned: the number of its list */
    bool finished;                /* its worker sent finished_message, but frames are still missing */
    uint64_t cancelled_ns;        /* REQUEST_CANCELLING: since when */
    uint64_t ended_ns;            /* REQUEST_ENDED: when it ended, or its retention last began anew */
    uint64_t kept_until;          /* REQUEST_ENDED: not forgotten earlier unless its room is needed */
    struct request *worker_prev, *worker_next;   /* the worker's list */
    struct request *session_prev, *session_next; /* the session's list, or a list of abandoned ones */
    struct request *ended_prev, *ended_next;     /* ended ones, oldest first */
    struct request *kept_prev, *kept_next;       /* of those, its session's unread ones, or all read ones */
    struct kept *kept;                           /* its session's; NULL: it is read, or memory was short */

    uint64_t waiting_bytes; /* of the journal, counted while it is queued (admission.h) */

    struct request_record *record; /* in the vault (record.h) */
    struct growth_claim growth;
    struct journal_log log;
    struct buffer finished_message; /* the worker's `finished`, while frames are missing */
    struct buffer end_message;      /* `end` as it was sent, for repeats */
    UT_hash_handle by_home, by_current;
};

struct request_label request_label(const struct request *request);

/* Its client: its key, or the session that asked first. */
static inline const struct id128 *request_client(const struct request *request)
{
    return request->key ? &request->client : &request->home.session;
}

/* The party that a request counts for in queue and journal: its client and its tenant.
 *
 * A client in the run directory without a key runs as the pool's own user and could open any number of
 * sessions. So each tenant that it names is treated like a session: it stands alone, with its own turns and
 * shares, and is the same tenant in every such session. A gateway beside the pool thereby gives each of its
 * keys as much as a separate program would get. Any other client has one turn and one share, which its
 * tenants divide. */
struct party {
    const struct id128 *client;
    const struct tenancy *tenancy;
};

static inline struct party request_party(const struct request *request)
{
    return (struct party){request_client(request), &request->tenancy};
}

/* The id whose turns a request of this party uses. */
static inline const struct id128 *party_in_turn(const struct party *party)
{
    return party->tenancy->alone ? &party->tenancy->id : party->client;
}

/* The tenancy for a name ("": none). `near`: the client came through a socket in the run directory, without a
 * key. The secret keeps clients from choosing ids. */
struct tenancy tenancy_of(struct bytes name, const struct id128 *client, bool near, uint64_t secret);

/* Sets generation->cache_space and cache_salt (proto/prompts/space.h). `shared`: only salts separate
 * requests. `text` holds the space and must live as long as the generation. The result never changes after
 * admission. */
void request_set_cache_space(const struct request *request, bool shared, char text[PROTO_MAX_SPACE_BYTES + 1],
                             struct generation *generation);

/* When a request is due, at priority 0: 30 s after its arrival, or at its deadline if that is sooner; each
 * step of priority is worth 30 s. A worker's engine uses the same order. Of two requests, the one due first
 * is more urgent; on a tie, the one that arrived first. */
#define REQUEST_CLASS_NS    (30 * (int64_t)CLOCK_NS_PER_S)
#define REQUEST_PRESSING_NS (30 * CLOCK_NS_PER_S)
int64_t request_due(const struct request *request);
bool request_presses_more(const struct request *a, const struct request *b);

/* Whether a message is the same as the one that made this request. */
bool request_same_body(const struct request *request, const void *body, size_t len);

/* The approximate size of its assignment in bytes: the request's message and the ids it made elsewhere. */
static inline size_t request_assign_bytes(const struct request *request)
{
    return request->body.len + journal_made(&request->log) * 5;
}

/* What a request needs from a worker besides a slot and its model, as a sum of these: room on its link for a
 * message large enough to delay others; embeddings; scores of pairs. 0: none of these. */
enum request_kind { REQUEST_BULKY = 1, REQUEST_EMBEDS = 2, REQUEST_RANKS = 4, REQUEST_KINDS = 8 };

static inline uint32_t request_kind(const struct request *request)
{
    return (request_assign_bytes(request) > REQUEST_BRIEF_BYTES ? REQUEST_BULKY : 0) |
           (request->embed ? REQUEST_EMBEDS : 0) | (request->pair ? REQUEST_RANKS : 0);
}

/* Bytes that a request costs in addition to its frames. */
uint64_t request_overhead(void);

#endif
