/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_POOL_H
#define GATEWAY_FLEET_POOL_H

/* A pool behind the gateway: one session, reopened whenever it is lost, and the last status.
 *
 * While the pool cannot be reached or restarts, running requests continue as far as libquern can. New
 * requests are accepted for some seconds, long enough to replace a broker; after that they are rejected at
 * once.
 *
 * The only pool of a gateway is handled with pool_wait. Members of a fleet (fleet.h) are handled in turn with
 * pool_turn and pool_dispatch, which do not wait; they are pinged more often. */

#include <quern.h>

#include "common/error.h"
#include "gateway/json/refusal.h"

#define POOL_PING_MS 100 /* between two pings of a member */

/* A pool's address and keys; those not given are NULL or "". */
struct pool_address {
    const char *connect;         /* endpoint or run directory; NULL: the default one */
    const char *server_key;      /* CURVE */
    const char *server_key_next; /* the key that will replace it */
    const char *client_key;      /* the gateway's own certificate */
};

#define POOL_DIGEST     33 /* bytes of a digest as text */
#define POOL_ARITHMETIC 129

struct pool_model {
    char *name;                       /* its own name or an alias: there is an entry for each */
    uint32_t workers, ready;          /* workers that serve it; of those, ready ones */
    uint32_t context;                 /* tokens; 0: unknown */
    uint32_t embedding;               /* numbers of an embedding; 0: not supported, or unknown */
    bool ranks;                       /* those numbers are scores of pairs of texts; it does nothing else */
    char digest[POOL_DIGEST];         /* of its file, hexadecimal; "": the pool is too old to report it */
    char arithmetic[POOL_ARITHMETIC]; /* of all its workers; "": they differ, or do not report it */
    char *dialect; /* how it calls tools and thinks: JSON (text/dialect/dialect.h); NULL: unknown */
};

#define POOL_WORKERS 64 /* used to recognize a pool */

struct pool_worker { /* as in the status */
    uint32_t pid;
    uint64_t steps;
};

struct pool {
    const char *name;            /* as a member of a fleet; NULL: it is the only pool */
    struct pool_address address; /* the caller's texts */
    bool next_key;               /* server_key_next is being tried */
    bool wrong_key;              /* the client has the wrong key, and is given up on */
    int watched;                 /* a descriptor that also ends pool_wait */
    struct quern *client;        /* NULL: no session now */
    bool was_open;
    uint64_t try_ns, asked_ns; /* last attempt to open a session; last question for the status */
    uint64_t open_ns;          /* when the session was last seen open; 0: never */
    uint64_t opened_ns;        /* when it opened */
    uint64_t ready_ns;         /* when a status last had a ready worker; 0: never */
    bool asked;                /* the status was requested and has not arrived yet */
    uint64_t retry_ns;         /* time from a lost session to the next attempt */
    char reason[512];          /* why there is no session */
    bool told;                 /* for a member: the reason was logged */
    bool draining;
    const struct quern_status *status; /* the last one; NULL: none */
    int64_t status_ms;                 /* when it came, in ms since 1970 */
    uint32_t context;                  /* the largest known one of all workers; 0: none is known */
    struct pool_model *models; /* [n_models] of workers that serve, or last did; 0: none is known yet */
    size_t n_models;
    uint64_t n_statuses;                      /* statuses received */
    uint32_t n_clients;                       /* clients so far, this one included */
    struct pool_worker workers[POOL_WORKERS]; /* [n_workers] of the last status with live workers */
    size_t n_workers;
    uint32_t n_renewals; /* statuses with none of the previous status's workers: their caches are empty */
};

/* Borrows the texts. `name`: of a member of a fleet, else NULL. */
void pool_init(struct pool *pool, const char *name, const struct pool_address *address);
void pool_deinit(struct pool *pool);

/* From now on pool_wait also returns when this descriptor is readable; -1: none. */
void pool_watch(struct pool *pool, int watched);

/* Handles messages for at most timeout_ms, and keeps the session open. */
void pool_wait(struct pool *pool, int timeout_ms);

/* The same in two steps without waiting: opens the session and requests the status when due; handles received
 * messages. */
void pool_turn(struct pool *pool, uint64_t now);
void pool_dispatch(struct pool *pool);

/* Whether its session is open, or was open a few seconds ago. */
bool pool_answers(const struct pool *pool);

/* Whether a worker is ready, or was ready a few seconds ago: during a reload there may be none for a
 * moment. */
bool pool_is_ready(const struct pool *pool);

/* Whether a request for this model (NULL: any) can be sent now. 0 or REFUSED: 503 if retrying makes sense,
 * with the code "loading" if no worker has reported its model yet. */
int pool_check(const struct pool *pool, const char *model, struct refusal *refusal);

/* The last status, valid until the next pool_wait. 0, or REFUSED while there is none or the pool does not
 * answer. */
int pool_status(const struct pool *pool, const struct quern_status **ret_status, struct refusal *refusal);

/* Compares the workers of a new status with those of the previous one, and counts n_renewals. */
void pool_note_workers(struct pool *pool, const struct quern_status *status);

/* The model with this name (NULL: the first), or NULL. */
const struct pool_model *pool_model(const struct pool *pool, const char *name);

#endif
