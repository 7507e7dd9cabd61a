/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_FLEET_H
#define GATEWAY_FLEET_FLEET_H

/* The pools behind the gateway: one, or the members of a fleet.
 *
 * One pool is waited for as libquern does it, and none of what follows concerns it. The members of a fleet
 * are those of a folder, or of a name in DNS (members.h). Each has a session of its own; a request goes to
 * the one that placing.h chooses among those that serve its model, and carry.h takes it to another one if its
 * pool dies.
 *
 * A member that is taken away from there is draining, not dead: it is chosen no more, and leaves when it
 * has none of our requests. A member whose address or keys change is another pool from then on.
 *
 * Membership says where a pool may be. Whether it is there is only learnt by asking it. */

#include "gateway/fleet/book.h"
#include "gateway/fleet/members.h"
#include "common/files/fleet_secret.h"
#include "gateway/fleet/pool.h"
#include "gateway/fleet/published.h"
#include "gateway/fleet/trust.h"
#include "proto/prompts/space.h"
#include "gateway/fleet/wish.h"

struct attempt; /* a request of ours at a pool (carry.h) */

struct fleet_pool {
    struct pool pool;
    struct member member; /* zeroed: the only pool */
    struct fleet *fleet;
    uint32_t number;     /* never reused */
    uint32_t in_book;    /* its number in the book; another one after all that it had was forgotten */
    uint32_t entered_as; /* the number under which carry.h has entered what is there now, and when: */
    uint64_t entered_ns;
    struct published published;
    char space[PROMPT_SPACE_BYTES]; /* the base of our prompts' space there, as it told at: */
    uint64_t space_ns;              /* 0: it has not */
    bool leaving;                   /* it was taken away from the members, at: */
    uint64_t leaving_ns;
    struct trust_pool trust;
    struct attempt *attempts; /* utlist, the latest last */
    uint32_t n_requests;      /* of ours, there now */
    double load;              /* tokens that it has to process and generate for those */
    double recent;            /* the same of those that have ended lately */
    uint64_t n_statuses;      /* of the pool, when `foreign` was computed */
    uint32_t n_renewals;      /* of the pool, the same */
    uint32_t foreign;         /* requests there that are not ours, by its status */
    uint64_t chosen, moved;   /* requests sent there; taken away from there */
    uint64_t moved_unequal;   /* of those, to a pool with another arithmetic */
};

struct fleet {
    const char *place;         /* of its members; NULL: one pool */
    const char *client_key;    /* the gateway's own certificate; NULL: none */
    struct fleet_pool **pools; /* [n_pools], in the order of their names; those that leave are among them */
    size_t n_pools;
    struct members *members;
    struct trust trust;
    struct book book;
    uint64_t seed;                  /* of the book's hashes */
    struct fleet_secret secret;     /* of the pools' books; zeroed: none */
    char space[PROMPT_SPACE_BYTES]; /* the base of our prompts' space, as most pools tell; with a secret */
    bool has_space;
    uint32_t last_number;
    int watched;
    uint64_t stamp;            /* of what `models` were made from */
    struct pool_model *models; /* [n_models] of a fleet, of all pools together */
    size_t n_models;
};

/* One pool. Borrows the address. 0 or -ENOMEM. */
int fleet_init(struct fleet *fleet, const struct pool_address *address);

/* The members of a folder, or of a name in DNS, which have this server key (members.h). Borrows the texts.
 * -errno with a reason: as members_start. */
int fleet_init_members(struct fleet *fleet, const char *place, const char *server_key, const char *client_key,
                       struct error *err);

/* Reads the fleet's secret (fleet_secret.h), with which the pools' books are read. Right after
 * fleet_init_members. -errno with a reason. */
int fleet_take_secret(struct fleet *fleet, const char *path, struct error *err);
void fleet_deinit(struct fleet *fleet);

/* Whether it has several pools, or may have. */
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

/* Whether a worker of any pool is ready, or was some seconds ago. */
bool fleet_is_ready(const struct fleet *fleet);

/* Whether the gateway seems to be cut off: most pools have fallen silent together. */
bool fleet_is_cut_off(const struct fleet *fleet);

/* Whether a request for this model (NULL: any) can be sent now. 0 or REFUSED: 503 if retrying makes sense,
 * with the code "loading" if no worker has reported its model yet. */
int fleet_check(const struct fleet *fleet, const char *model, struct refusal *refusal);

/* Whether a pool's session is open and it is not silent. */
bool fleet_pool_is_up(const struct fleet_pool *pool);

/* Whether the pool of this index leaves, and another one has its name by now. Reports are silent of it. */
bool fleet_is_outlived(const struct fleet *fleet, size_t index);

/* The models of all pools, [*ret_n], valid until the next fleet_wait; the one with this name (NULL: the
 * first), or NULL. */
const struct pool_model *fleet_models(const struct fleet *fleet, size_t *ret_n);
const struct pool_model *fleet_model(const struct fleet *fleet, const char *name);

/* The largest known context of all workers; 0: none is known. And the smallest limit of an answer that a pool
 * sets; 0: none does. */
uint32_t fleet_context(const struct fleet *fleet);
uint32_t fleet_max_tokens(const struct fleet *fleet);

/* A client of a pool that serves the model, with which to encode requests; NULL: none does now. */
struct quern *fleet_client(const struct fleet *fleet, const char *model);

/* The pool of a report: the member with this name; NULL: the first that answers. NULL: there is none. */
struct fleet_pool *fleet_named(const struct fleet *fleet, const char *name);

/* All that the pool had is forgotten. */
void fleet_forget_book(struct fleet_pool *pool);

/* What the pool has to do for others, in tokens. */
double fleet_foreign_load(const struct fleet_pool *pool);

/* The pool for a request, except those of these numbers, [n_except]; NULL: none serves it now. */
struct fleet_pool *fleet_choose(struct fleet *fleet, const struct fleet_wish *wish, const uint32_t *except,
                                size_t n_except);

#endif
