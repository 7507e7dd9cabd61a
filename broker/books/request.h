/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_REQUEST_H
#define BROKER_BOOKS_REQUEST_H

/* Requests.
 *
 * A request is known by (session, id), the idempotency key: asked twice it is still one request. That key,
 * its home, never changes: the worker publishes under it. After an attach a second session, the current one,
 * knows the request under the same id. */

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

/* A message small enough not to delay those behind it; nearly all are. */
#define REQUEST_BRIEF_BYTES ((size_t)16 << 10)

enum request_state {
    REQUEST_QUEUED,     /* admitted, waits for a worker */
    REQUEST_RUNNING,    /* assigned to a worker */
    REQUEST_CANCELLING, /* assigned, and the worker was told to stop */
    REQUEST_ENDED,      /* its end is in the journal; kept for replays and repeats */
    REQUEST_STATE_COUNT
};
const char *request_state_name(enum request_state state);

/* What a request is called in the log: its id's first bytes, and the name that its client gave it. */
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

/* The tenant that a request names. Only a hash of the name is kept. For a tenant that stands alone the hash
 * is the same whoever names it; otherwise it also covers the client. */
struct tenancy {
    struct id128 id; /* zeros: none is named */
    bool named;
    bool alone; /* it has turns and shares of its own, not a part of its client's (struct party) */
};

/* What it may make, and what the journal has room for (broker/choose/growth.h). */
struct growth_claim {
    uint64_t order;       /* of the start; 0: it has not started */
    uint64_t most;        /* ids that it may make in all, as far as is known */
    uint64_t credit;      /* ids that it may make for now; its worker makes no more */
    uint64_t ask_at;      /* when it has made so many, it asks for more */
    uint32_t token_bytes; /* what an id takes */
    uint8_t waits;        /* for credit: the code that says why; 0: it does not */
    struct heap_node age, need;
    struct request *prev, *next; /* list of those that wait */
};

struct request {
    struct request_key home;    /* who asked first */
    struct request_key current; /* its current session; differs from home only after an attach */
    enum request_state state;
    struct epoch epoch;
    struct id128 client;    /* the key that it counts for, if any (session_client) */
    uint32_t key;           /* its number; 0: it counts for its home's session */
    bool keyed;             /* it came with that key, even if it was taken away since: `client` is set */
    bool near;              /* it came by a socket in the run directory */
    struct tenancy tenancy; /* for whom the client asks */

    /* What was asked. The message is kept as it came, to be compared with repeats and decoded again for the
     * worker; only its hash outlives the end. */
    struct bytes body; /* in the record */
    struct hash128 body_hash;
    struct bytes model; /* inside the body; "" = any */
    struct bytes name;  /* inside the body: its request_id; "" = none */
    bool model_known;   /* a worker had told that it has it when the request was admitted, or has since */
    bool embed;         /* its answer is an embedding */
    uint64_t seed;
    int32_t priority;
    uint64_t prompt_tokens; /* roughly */
    uint64_t arrived_ns;    /* clock_ns */
    uint64_t deadline_ns;   /* UINT64_MAX: none */
    enum disconnect_policy on_disconnect;
    uint64_t keep_ns; /* DISCONNECT_KEEP: how long it runs on alone */

    /* Where it is. */
    struct share *share;                        /* its client's, until it ends */
    struct share *tenant_share;                 /* and its tenant's; NULL: none is named */
    struct rate *rate;                          /* and the tenant's limits; NULL: it has none */
    struct heap_node queue_node, deadline_node; /* in the queue */
    uint64_t queue_order;                       /* order of arrival there */
    int32_t queued_class;                       /* there */
    uint32_t queued_kind;                       /* its kind when it came there (enum request_kind) */
    uint32_t queued_target;                     /* and the number of its target (targets.h) */
    struct tenant_line *queued_line;            /* and where it stands there (tenants.h) */
    struct worker *worker;                      /* while assigned */
    struct prompt_pieces *pieces; /* of the prompt, to find workers that have it; NULL: none; until it ends */
    uint32_t n_found;             /* of those, how many its worker is believed to have had */
    uint32_t n_stored;            /* and how many the prefix store */
    uint64_t prefill, decode;     /* its worker's load: until the first token, until the end */
    bool prefilled;               /* the worker has sent ids of it */
    uint32_t n_lost;              /* workers that died with it */
    bool has_digest;              /* it was assigned once: */
    uint8_t digest[16];           /* to a worker with this model, and may go to no other */
    double sampling[SAMPLING_N];  /* and with these parameters where it does not say */
    struct session *session;      /* while bound to an open one; NULL once ended */
    uint64_t abandoned_until;     /* while abandoned: when it is cancelled; else 0 */
    uint32_t abandoned_in;        /* then: which list of these it is in */
    bool finished;                /* the worker said so, in finished_message, but frames are still missing */
    uint64_t cancelled_ns;        /* REQUEST_CANCELLING: since when */
    uint64_t ended_ns;            /* REQUEST_ENDED: since when, or since it was last kept on */
    uint64_t kept_until;          /* REQUEST_ENDED: not forgotten before, unless there is need of the room */
    struct request *worker_prev, *worker_next;   /* the worker's list */
    struct request *session_prev, *session_next; /* the session's list, or the list of abandoned ones */
    struct request *ended_prev, *ended_next;     /* ended ones, oldest first */
    struct request *kept_prev, *kept_next;       /* of those, its session's unread ones, or all read ones */
    struct kept *kept;                           /* the former list; NULL: it is read, or memory was short */

    uint64_t waiting_bytes; /* of the journal, that it counts for in the queue (admission.h) */

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

/* For whom a request counts in queue and journal: its client and its tenant.
 *
 * A client in the run directory without a key runs as the pool's own user and could open any number of
 * sessions. So each tenant that it names is treated as a session: it stands alone, with its own turns and
 * shares, and is the same tenant in every such session. A gateway beside the pool thereby gives each of its
 * keys what a program of its own would get. Any other client has one turn and one share whatever it names,
 * and its tenants divide them. */
struct party {
    const struct id128 *client;
    const struct tenancy *tenancy;
};

static inline struct party request_party(const struct request *request)
{
    return (struct party){request_client(request), &request->tenancy};
}

/* Whose turn a request of this party takes. */
static inline const struct id128 *party_in_turn(const struct party *party)
{
    return party->tenancy->alone ? &party->tenancy->id : party->client;
}

/* The tenancy for a name ("": none). `near`: the client came by a socket in the run directory, without a key.
 * The secret keeps clients from choosing ids. */
struct tenancy tenancy_of(struct bytes name, const struct id128 *client, bool near, uint64_t secret);

/* Whose prompts share prefixes with those of a request: sets generation->cache_space and cache_salt, which
 * together are different for two requests that must not. What comes with a key is its own; beyond the run
 * directory what names a salt or a tenant is apart from what is named inside; a request that names a tenant
 * and no salt shares with those of its tenant. `shared`: salts alone count. `text` is for the space, and
 * lives as long as the generation. Everything that fixes it is fixed at admission. */
void request_set_cache_space(const struct request *request, bool shared, char text[PROTO_MAX_SPACE_BYTES + 1],
                             struct generation *generation);

/* When a request is due, in terms of the middle class: 30 s after it came, or at its deadline if that is
 * sooner; each priority is worth 30 s. A worker's engine uses the same order. Of two requests the one that is
 * due first presses more; on a tie the one that came first. */
#define REQUEST_CLASS_NS    (30 * (int64_t)CLOCK_NS_PER_S)
#define REQUEST_PRESSING_NS (30 * CLOCK_NS_PER_S)
int64_t request_due(const struct request *request);
bool request_presses_more(const struct request *a, const struct request *b);

/* Whether a message asks for what this request was asked for. */
bool request_same_body(const struct request *request, const void *body, size_t len);

/* About how many bytes its assignment takes: what was asked, and what it has made elsewhere. */
static inline size_t request_assign_bytes(const struct request *request)
{
    return request->body.len + request->log.count * 5;
}

/* What a worker must have for it beside a place and its model, sums of these: room for a message that may
 * stand in the way of others on its link; embeddings. 0: none of that. */
enum request_kind { REQUEST_BULKY = 1, REQUEST_EMBEDS = 2, REQUEST_KINDS = 4 };

static inline uint32_t request_kind(const struct request *request)
{
    return (request_assign_bytes(request) > REQUEST_BRIEF_BYTES ? REQUEST_BULKY : 0) |
           (request->embed ? REQUEST_EMBEDS : 0);
}

/* Bytes that a request costs beside its frames. */
uint64_t request_overhead(void);

#endif
