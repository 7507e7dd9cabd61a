/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_POOL_H
#define GATEWAY_CORE_POOL_H

/* The pool behind the gateway: one session, reopened whenever it is lost, and the last status.
 *
 * Only pool_wait waits. While the pool cannot be reached or restarts, running requests continue as far as
 * libquern can. New ones are accepted for some seconds, enough for replacing a broker; then they are rejected
 * at once. */

#include <quern.h>

#include "gateway/core/options.h"
#include "gateway/json/refusal.h"

struct pool_model {
    char *name;              /* its own name or an alias: there is an entry for each */
    uint32_t workers, ready; /* workers that serve it; of those, ready ones */
    uint32_t context;        /* tokens; 0: unknown */
    uint32_t embedding;      /* numbers of an embedding; 0: not supported, or unknown */
    bool ranks;              /* those are scores of pairs of texts; it does nothing else */
    char *dialect;           /* how it calls tools and thinks: JSON (text/dialect/dialect.h); NULL: unknown */
};

struct pool {
    const struct options *options; /* its address, and the keys */
    int watched;                   /* a descriptor that ends pool_wait too */
    struct quern *client;          /* NULL: no session now */
    bool was_open;
    uint64_t try_ns, asked_ns; /* last attempt to open a session; last question for the status */
    uint64_t open_ns;          /* when the session was last seen open; 0: never */
    uint64_t opened_ns;        /* when it opened */
    uint64_t ready_ns;         /* when a status last had a ready worker; 0: never */
    bool asked;                /* the status was asked for, without an answer yet */
    char reason[512];          /* why there is no session */
    bool draining;
    const struct quern_status *status; /* the last one; NULL: none */
    int64_t status_ms;                 /* when it came, in ms since 1970 */
    uint32_t context;                  /* the largest known one of all workers; 0: none is known */
    struct pool_model *models; /* [n_models] of workers that serve, or did last; 0: none is known yet */
    size_t n_models;
};

/* Borrows the options. */
void pool_init(struct pool *pool, const struct options *options);

/* From now on pool_wait also returns when this descriptor is readable; -1: none. */
void pool_watch(struct pool *pool, int watched);
void pool_deinit(struct pool *pool);

/* Handles messages for at most timeout_ms, and keeps the session open. */
void pool_wait(struct pool *pool, int timeout_ms);

/* Whether a worker is ready, or was some seconds ago: during a reload there may be none for a moment. */
bool pool_is_ready(const struct pool *pool);

/* Whether a request for this model (NULL: any) can be sent now. 0 or REFUSED: 503 if retrying makes sense,
 * with the code "loading" if no worker has reported its model yet. */
int pool_check(const struct pool *pool, const char *model, struct refusal *refusal);

/* The last status, valid until the next pool_wait. 0, or REFUSED while there is none or the pool does not
 * answer. */
int pool_status(const struct pool *pool, const struct quern_status **ret_status, struct refusal *refusal);

/* The model with this name (NULL: the first), or NULL. */
const struct pool_model *pool_model(const struct pool *pool, const char *name);

#endif
