/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_FLEET_H
#define GATEWAY_FLEET_FLEET_H

/* The pools behind the gateway: one, or the members of a fleet.
 *
 * A single pool is handled as by any client of libquern; the rest of this comment does not apply to it. The
 * members of a fleet come from a folder or from a DNS name (members.h). Each has its own session; a request
 * goes to the pool that placing.h chooses among those that serve its model, and carry.h moves it to another
 * if its pool dies.
 *
 * A member that is removed from there is draining, not dead: it is no longer chosen, and leaves when it has
 * no more requests of this gateway. A member whose address or keys change counts as another pool from then
 * on.
 *
 * Membership only says where a pool may be. Whether it is there, the gateway learns by asking it. */

#include "gateway/fleet/book.h"
#include "gateway/fleet/members.h"
#include "common/files/fleet_secret.h"
#include "gateway/fleet/pool.h"
#include "gateway/fleet/published.h"
#include "gateway/fleet/trust.h"
#include "proto/prompts/space.h"
#include "gateway/fleet/wish.h"

struct attempt; /* a request of this gateway at a pool (carry.h) */

struct fleet_pool {
    struct pool pool;
    struct member member; /* zeroed: the only pool */
    struct fleet *fleet;
    uint32_t number;     /* never reused */
    uint32_t in_book;    /* its number in the book; it changes when everything that it had is forgotten */
    uint32_t entered_as; /* the number under which carry.h has entered the requests now there, and when: */
    uint64_t entered_ns;
    struct published published;
    char space[PROMPT_SPACE_BYTES]; /* the base of this gateway's prompt space there, as reported at: */
    uint64_t space_ns;              /* 0: not reported */
    bool leaving;                   /* it was removed from the members, at: */
    uint64_t leaving_ns;
    struct trust_pool trust;
    struct attempt *attempts; /* utlist, the latest last */
    uint32_t n_requests;      /* of this gateway, there now */
    double load;              /* tokens that it has to process and generate for those */
    double recent;            /* the same for recently ended ones */
    uint64_t n_statuses;      /* of the pool, when `foreign` was computed */
    uint32_t n_renewals;      /* the same for the pool's renewals */
    uint32_t foreign;         /* requests of others there, according to its status */
    uint64_t chosen, moved;   /* requests sent there; moved away from there */
    uint64_t moved_unequal;   /* of those, to a pool with a different arithmetic */
};

struct fleet {
    const char *place;         /* of its members; NULL: one pool */
    const char *client_key;    /* the gateway's own certificate; NULL: none */
    struct fleet_pool **pools; /* [n_pools], in the order of their names, including those that are leaving */
    size_t n_pools;
    struct members *members;
    struct trust trust;
    struct book book;
    uint64_t seed;                  /* of the book's hashes */
    struct fleet_secret secret;     /* of the pools' books; zeroed: none */
    char space[PROMPT_SPACE_BYTES]; /* the base of this gateway's prompt space, as most pools report it; only
                                       with a secret */
    bool has_space;
    uint32_t last_number;
    int watched;
    uint64_t stamp;            /* identifies what `models` were made from */
    struct pool_model *models; /* [n_models] of all pools of a fleet together */
    size_t n_models;
};

/* A single pool. Borrows the address. 0 or -ENOMEM. */
int fleet_init(struct fleet *fleet, const struct pool_address *address);

/* A fleet: the members of a folder, or of a DNS name; those of a name have this server key (members.h).
 * Borrows the texts. Fails as members_start does. */
int fleet_init_members(struct fleet *fleet, const char *place, const char *server_key, const char *client_key,
                       struct error *err);

/* Reads the fleet's secret (fleet_secret.h), which gives access to the pools' books. Call it right after
 * fleet_init_members. -errno with a reason. */
int fleet_take_secret(struct fleet *fleet, const char *path, struct error *err);
void fleet_deinit(struct fleet *fleet);

/* Whether it has, or may have, several pools. */
static inline bool fleet_is_many(const struct fleet *fleet)
{
    return fleet->place != NULL;
}

/* From now on fleet_wait also returns when this descriptor is readable; -1: none. */
void fleet_watch(struct fleet *fleet, int watched);

/* Handles messages for at most timeout_ms, keeps sessions open, and follows the members. */
void fleet_wait(struct fleet *fleet, int timeout_ms);

/* Unfinished requests of this gateway at all pools. */
size_t fleet_active(const struct fleet *fleet);

/* Whether a worker of any pool is ready, or was ready a few seconds ago. */
bool fleet_is_ready(const struct fleet *fleet);

/* Whether the gateway seems to be cut off: most pools have fallen silent at once. */
bool fleet_is_cut_off(const struct fleet *fleet);

/* Whether a request for this model (NULL: any) can be sent now. 0 or REFUSED: 503 if retrying makes sense,
 * with the code "loading" if no worker has reported its model yet. */
int fleet_check(const struct fleet *fleet, const char *model, struct refusal *refusal);

/* Whether a pool's session is open and it is not silent. */
bool fleet_pool_is_up(const struct fleet_pool *pool);

/* Whether the pool of this index is leaving and another pool already has its name. Reports omit it. */
bool fleet_is_outlived(const struct fleet *fleet, size_t index);

/* The models of all pools, [*ret_n]; the model with this name (NULL: the first), or NULL. Valid until the
 * next fleet_wait. */
const struct pool_model *fleet_models(const struct fleet *fleet, size_t *ret_n);
const struct pool_model *fleet_model(const struct fleet *fleet, const char *name);

/* The largest known context of all workers; 0: none is known. The smallest limit on answers that a pool sets;
 * 0: none does. */
uint32_t fleet_context(const struct fleet *fleet);
uint32_t fleet_max_tokens(const struct fleet *fleet);

/* A client of a pool that serves the model, for encoding requests; NULL: no pool serves it now. */
struct quern *fleet_client(const struct fleet *fleet, const char *model);

/* The pool that a report is about: the member with this name, or with `name` NULL the first that answers.
 * NULL: there is none. */
struct fleet_pool *fleet_named(const struct fleet *fleet, const char *name);

/* Forgets everything that the pool had. */
void fleet_forget_book(struct fleet_pool *pool);

/* The pool's work for other clients, in tokens. */
double fleet_foreign_load(const struct fleet_pool *pool);

/* The pool for a request, excluding the pools with these numbers, [n_except]; NULL: none serves it now. */
struct fleet_pool *fleet_choose(struct fleet *fleet, const struct fleet_wish *wish, const uint32_t *except,
                                size_t n_except);

#endif
