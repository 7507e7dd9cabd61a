/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_POOL_H
#define GATEWAY_CORE_POOL_H

/* The pool behind the gateway: one session, reopened whenever it is lost, and the last status.
 *
 * Only pool_wait waits. While the pool is away or restarts, running requests continue as far as libquern can
 * take them. New ones are accepted for some seconds, in which a replaced broker is back; then they are
 * rejected at once. */

#include <quern.h>

#include "gateway/core/options.h"
#include "gateway/json/refusal.h"

struct pool_model {
    char *name;              /* its own, or another that it answers to: one of these for each */
    uint32_t workers, ready; /* that serve it, and of them those that take work now */
    uint32_t context;        /* tokens; 0: not known */
    uint32_t embedding;      /* numbers of an embedding; 0: none are made, or it is not known */
    char *dialect; /* how it calls tools and thinks: JSON (text/dialect/dialect.h); NULL: not known */
};

struct pool {
    const struct options *options; /* where it is, and the keys */
    int watched;                   /* a descriptor that ends pool_wait too */
    struct quern *client;          /* NULL: there is none now */
    bool was_open;
    uint64_t try_ns, asked_ns; /* when it was tried to open one; when the status was asked */
    uint64_t open_ns;          /* when it was open the last time that was looked at; 0: not yet */
    uint64_t ready_ns;         /* when a worker was ready the last time that was told; 0: none was */
    bool asked;                /* its answer is not here */
    char reason[512];          /* why there is no session */
    bool draining;
    const struct quern_status *status; /* the last one; NULL: none */
    int64_t status_ms;                 /* when it came, in ms since 1970 */
    uint32_t context;                  /* the largest of all workers, as far as is known; 0: none is */
    struct pool_model *models; /* [n_models] of workers that serve, or did last; 0: none has said so yet */
    size_t n_models;
};

/* The options are borrowed. */
void pool_init(struct pool *pool, const struct options *options);

/* From now on this descriptor ends pool_wait too; -1: none does. */
void pool_watch(struct pool *pool, int watched);
void pool_deinit(struct pool *pool);

/* Takes what comes, for at most timeout_ms, and keeps the session. */
void pool_wait(struct pool *pool, int timeout_ms);

/* Whether a worker is ready, or was some seconds ago: workers come back when they or the broker are
 * replaced. */
bool pool_is_ready(const struct pool *pool);

/* Whether a request for this model (NULL: any) can be sent now. 0 or REFUSED: 503 if retrying makes sense,
 * with the code "loading" if no worker has reported its model yet. */
int pool_check(const struct pool *pool, const char *model, struct refusal *refusal);

/* The last status, valid until the next pool_wait. 0, or REFUSED while there is none or the pool does not
 * answer. */
int pool_status(const struct pool *pool, const struct quern_status **ret_status, struct refusal *refusal);

/* The model of that name (NULL: the first), or NULL. */
const struct pool_model *pool_model(const struct pool *pool, const char *name);

#endif
