/* SPDX-License-Identifier: MIT */
/* See fleet.h. A name that is found is a member. Requests go to it from when its session opens until it has
 * been silent for 400 ms; then its requests move, and it is chosen again once it answers. When the name is
 * gone, or has another address, the pool leaves: it gets no more requests, and is freed when ours have ended.
 *
 * The load of a pool is what this gateway has sent there, which it knows at once and exactly, and what the
 * pool has to do for others: as it tells several times a second, or an estimate by its last status. */

#include "gateway/fleet/fleet.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/log.h"
#include "gateway/fleet/placing.h"

#define TURN_MS        20                    /* at most between two turns: timers of libquern, and pings */
#define FOREIGN_TOKENS 512                   /* of a request of somebody else */
#define MOST_SLOTS     4096                  /* that a pool is believed to have */
#define LEAVES_NS      (20 * CLOCK_NS_PER_S) /* longer than a question waits for its answer */

/* ---- life ---- */

static struct fleet_pool *add_pool(struct fleet *fleet, const struct member *member,
                                   const struct pool_address *address)
{
    struct fleet_pool *pool = calloc(1, sizeof *pool);
    struct fleet_pool **pools = reallocarray(fleet->pools, fleet->n_pools + 1, sizeof *pools);
    if (pools)
        fleet->pools = pools;
    if (!pool || !pools) {
        free(pool);
        return NULL;
    }
    pool->fleet = fleet;
    pool->number = pool->in_book = ++fleet->last_number;
    if (member)
        pool->member = *member;
    const struct pool_address of_member = {pool->member.file.connect, pool->member.file.server_key,
                                           pool->member.file.server_key_next, fleet->client_key};
    pool_init(&pool->pool, member ? pool->member.name : NULL, address ? address : &of_member);
    fleet->pools[fleet->n_pools++] = pool;
    return pool;
}

int fleet_init(struct fleet *fleet, const struct pool_address *address)
{
    *fleet = (struct fleet){.watched = -1};
    return add_pool(fleet, NULL, address) ? 0 : -ENOMEM;
}

int fleet_init_members(struct fleet *fleet, const char *place, const char *server_key, const char *client_key,
                       struct error *err)
{
    *fleet = (struct fleet){.place = place, .client_key = client_key, .watched = -1};
    if (getrandom(&fleet->seed, sizeof fleet->seed, 0) != sizeof fleet->seed)
        return error_set(err, -errno, "fleet: random numbers: %s", strerror(errno));
    fleet->book.seed = fleet->seed;
    return members_start(place, server_key, &fleet->members, err);
}

int fleet_take_secret(struct fleet *fleet, const char *path, struct error *err)
{
    int r = fleet_secret_read(path, &fleet->secret, err);
    if (r < 0)
        return error_prefix(err, r, "--fleet-secret");
    fleet->seed = fleet->secret.seed;
    return 0;
}

static void forget_models(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->n_models; i++) {
        free(fleet->models[i].name);
        free(fleet->models[i].dialect);
    }
    free(fleet->models);
    fleet->models = NULL;
    fleet->n_models = 0;
}

void fleet_deinit(struct fleet *fleet)
{
    fleet->members = members_stop(fleet->members);
    for (size_t i = 0; i < fleet->n_pools; i++) {
        fleet->pools[i]->pool.name = NULL; /* goodbyes are waited for */
        pool_deinit(&fleet->pools[i]->pool);
        free(fleet->pools[i]);
    }
    free(fleet->pools);
    forget_models(fleet);
    book_deinit(&fleet->book);
    *fleet = (struct fleet){.watched = -1};
}

void fleet_watch(struct fleet *fleet, int watched)
{
    fleet->watched = watched;
    if (!fleet_is_many(fleet))
        pool_watch(&fleet->pools[0]->pool, watched);
}

/* ---- members ---- */

static struct fleet_pool *pool_of(const struct fleet *fleet, const char *name)
{
    for (size_t i = 0; i < fleet->n_pools; i++)
        if (!fleet->pools[i]->leaving && strcmp(fleet->pools[i]->member.name, name) == 0)
            return fleet->pools[i];
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    const struct fleet_pool *const *x = a, *const *y = b;
    int order = strcmp((*x)->member.name, (*y)->member.name);
    return order != 0 ? order : (*x)->number < (*y)->number ? -1 : 1;
}

static bool is_listed(const struct fleet_pool *pool, const struct member *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&pool->member, &list[i], sizeof list[i]) == 0)
            return true;
    return false;
}

static bool is_elsewhere(const struct member_file *a, const struct member_file *b)
{
    return strcmp(a->connect, b->connect) != 0 || strcmp(a->server_key, b->server_key) != 0;
}

/* The next key may be added while the pool serves with the present one. */
static void take_next_key(struct fleet *fleet, const struct member *member)
{
    struct fleet_pool *pool = pool_of(fleet, member->name);
    if (pool && !is_elsewhere(&pool->member.file, &member->file))
        memcpy(pool->member.file.server_key_next, member->file.server_key_next,
               sizeof pool->member.file.server_key_next);
}

/* It has not left yet, and is where it was. */
static void come_back(const struct fleet *fleet, struct fleet_pool *pool)
{
    if (!pool->leaving || pool_of(fleet, pool->member.name))
        return;
    log_info("fleet: %s at %s is a member again", pool->member.name, pool->member.file.connect);
    pool->leaving = false;
}

static void take_members(struct fleet *fleet, const struct member *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        take_next_key(fleet, &list[i]);
    for (size_t i = 0; i < fleet->n_pools; i++) {
        struct fleet_pool *pool = fleet->pools[i];
        if (is_listed(pool, list, n)) {
            come_back(fleet, pool);
            continue;
        }
        if (pool->leaving)
            continue;
        log_info("fleet: %s at %s was removed", pool->member.name, pool->member.file.connect);
        pool->leaving = true;
        pool->leaving_ns = clock_ns();
    }
    for (size_t i = 0; i < n; i++) {
        if (pool_of(fleet, list[i].name))
            continue;
        if (add_pool(fleet, &list[i], NULL))
            log_info("fleet: %s at %s is a member", list[i].name, list[i].file.connect);
        else
            log_error("fleet: %s: out of memory", list[i].name);
    }
    if (fleet->n_pools > 0)
        qsort(fleet->pools, fleet->n_pools, sizeof *fleet->pools, by_name);
}

/* Those that left and have nothing of ours any more. */
static void free_gone(struct fleet *fleet)
{
    size_t kept = 0;
    for (size_t i = 0; i < fleet->n_pools; i++) {
        struct fleet_pool *pool = fleet->pools[i];
        if (!pool->leaving || pool->attempts || clock_ns() - pool->leaving_ns < LEAVES_NS) {
            fleet->pools[kept++] = pool;
            continue;
        }
        log_info("fleet: %s has left", pool->member.name);
        pool_deinit(&pool->pool);
        free(pool);
    }
    fleet->n_pools = kept;
}

static void follow_members(struct fleet *fleet)
{
    struct member *list;
    size_t n;
    if (members_take(fleet->members, &list, &n)) {
        take_members(fleet, list, n);
        free(list);
    }
    free_gone(fleet);
}

/* ---- models ---- */

static struct pool_model *model_entry(struct fleet *fleet, const struct pool_model *of_pool)
{
    for (size_t i = 0; i < fleet->n_models; i++)
        if (strcmp(fleet->models[i].name, of_pool->name) == 0)
            return &fleet->models[i];
    struct pool_model *models = reallocarray(fleet->models, fleet->n_models + 1, sizeof *models);
    if (models)
        fleet->models = models;
    char *name = models ? strdup(of_pool->name) : NULL;
    if (!name)
        return NULL;
    models[fleet->n_models] = (struct pool_model){.name = name};
    return &models[fleet->n_models++];
}

static void add_model(struct fleet *fleet, const struct pool_model *of_pool)
{
    struct pool_model *model = model_entry(fleet, of_pool);
    if (!model)
        return;
    model->workers += of_pool->workers;
    model->ready += of_pool->ready;
    /* The smallest: what fits it fits in every pool. */
    if (of_pool->context > 0 && (model->context == 0 || of_pool->context < model->context))
        model->context = of_pool->context;
    if (of_pool->embedding > 0)
        model->embedding = of_pool->embedding;
    model->ranks |= of_pool->ranks;
    if (of_pool->dialect && !model->dialect)
        model->dialect = strdup(of_pool->dialect);
}

/* Whether new requests may go there. */
static bool takes_work(const struct fleet_pool *pool)
{
    return !pool->leaving && !pool->trust.dead && !pool->pool.draining && pool_answers(&pool->pool);
}

/* What the list of models was made from, as a number. */
static uint64_t stamp_of(const struct fleet *fleet)
{
    uint64_t stamp = 1;
    for (size_t i = 0; i < fleet->n_pools; i++)
        stamp = stamp * 1099511628211u + fleet->pools[i]->number +
                (fleet->pools[i]->pool.n_statuses << 1 | takes_work(fleet->pools[i]));
    return stamp;
}

static void gather_models(struct fleet *fleet)
{
    const uint64_t stamp = stamp_of(fleet);
    if (stamp == fleet->stamp)
        return;
    fleet->stamp = stamp;
    forget_models(fleet);
    for (size_t i = 0; i < fleet->n_pools; i++)
        for (size_t j = 0; takes_work(fleet->pools[i]) && j < fleet->pools[i]->pool.n_models; j++)
            add_model(fleet, &fleet->pools[i]->pool.models[j]);
}

const struct pool_model *fleet_models(const struct fleet *fleet, size_t *ret_n)
{
    *ret_n = fleet_is_many(fleet) ? fleet->n_models : fleet->pools[0]->pool.n_models;
    return fleet_is_many(fleet) ? fleet->models : fleet->pools[0]->pool.models;
}

const struct pool_model *fleet_model(const struct fleet *fleet, const char *name)
{
    size_t n;
    const struct pool_model *models = fleet_models(fleet, &n);
    for (size_t i = 0; i < n; i++)
        if (!name || strcmp(models[i].name, name) == 0)
            return &models[i];
    return NULL;
}

uint32_t fleet_context(const struct fleet *fleet)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < fleet->n_pools; i++)
        if (fleet->pools[i]->pool.context > largest)
            largest = fleet->pools[i]->pool.context;
    return largest;
}

uint32_t fleet_max_tokens(const struct fleet *fleet)
{
    uint32_t least = 0;
    for (size_t i = 0; i < fleet->n_pools; i++) {
        const struct quern_status *status = fleet->pools[i]->pool.status;
        if (status && status->max_tokens > 0 && (least == 0 || status->max_tokens < least))
            least = status->max_tokens;
    }
    return least;
}

/* ---- turns ---- */

void fleet_forget_book(struct fleet_pool *pool)
{
    pool->in_book = ++pool->fleet->last_number;
}

/* By a status that has just come: whether the pool's caches are empty, unless its book is read, which tells
 * that (and that of a broker that was replaced begins empty, though its workers have what they had); and the
 * requests of others there, which are what it counts, without ours. */
static void take_status(struct fleet_pool *pool)
{
    const struct quern_status *status = pool->pool.status;
    if (pool->n_statuses == pool->pool.n_statuses || !status)
        return;
    pool->n_statuses = pool->pool.n_statuses;
    if (pool->n_renewals != pool->pool.n_renewals && pool->published.boot == 0)
        fleet_forget_book(pool);
    pool->n_renewals = pool->pool.n_renewals;
    const uint32_t all = status->queued + status->running;
    pool->foreign = all > pool->n_requests ? all - pool->n_requests : 0;
}

/* A drain is told with the load sooner than by the status. */
static void follow_loads(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->n_pools; i++) {
        struct pool *pool = &fleet->pools[i]->pool;
        const struct quern_load *load = pool->client ? quern_load(pool->client) : NULL;
        if (load)
            pool->draining = load->draining;
    }
}

static void judge(struct fleet *fleet, uint64_t now)
{
    struct trust_pool *views[FLEET_MEMBERS * 2];
    size_t n = 0;
    for (size_t i = 0; i < fleet->n_pools && n < sizeof views / sizeof *views; i++) {
        struct fleet_pool *pool = fleet->pools[i];
        struct quern *client = pool->pool.client;
        /* One that ends falls silent, and says nothing of the gateway by it. */
        const bool ends = (pool->leaving || pool->pool.draining) && pool->n_requests == 0;
        pool->trust.watched = client && pool->pool.open_ns > 0 && !ends;
        if (client)
            pool->trust.answered_ns = now - quern_silence(client) * CLOCK_NS_PER_MS;
        views[n++] = &pool->trust;
    }
    const bool doubted = fleet->trust.doubted_ns != 0;
    trust_judge(&fleet->trust, views, n, now);
    if (!doubted && fleet->trust.doubted_ns != 0)
        log_warn(
            "fleet: most pools stopped responding at the same time: no request moves until one responds");
    else if (doubted && fleet->trust.doubted_ns == 0)
        log_info("fleet: a pool responds again");
}

/* Waits for messages of any pool. */
static void wait_for_any(const struct fleet *fleet, int timeout_ms)
{
    struct quern *clients[FLEET_MEMBERS * 2];
    size_t n = 0;
    for (size_t i = 0; i < fleet->n_pools && n < sizeof clients / sizeof *clients; i++)
        if (fleet->pools[i]->pool.client)
            clients[n++] = fleet->pools[i]->pool.client;
    quern_wait(clients, n, fleet->watched, timeout_ms < 0 || timeout_ms > TURN_MS ? TURN_MS : timeout_ms);
}

static void wait_for_many(struct fleet *fleet, int timeout_ms)
{
    follow_members(fleet);
    const uint64_t before = clock_ns();
    for (size_t i = 0; i < fleet->n_pools; i++)
        pool_turn(&fleet->pools[i]->pool, before);
    wait_for_any(fleet, timeout_ms);
    trust_turn(&fleet->trust, clock_ns());
    for (size_t i = 0; i < fleet->n_pools; i++) {
        pool_dispatch(&fleet->pools[i]->pool);
        take_status(fleet->pools[i]);
    }
    follow_loads(fleet);
    judge(fleet, clock_ns());
    gather_models(fleet);
}

void fleet_wait(struct fleet *fleet, int timeout_ms)
{
    if (fleet_is_many(fleet))
        wait_for_many(fleet, timeout_ms);
    else
        pool_wait(&fleet->pools[0]->pool, timeout_ms);
}

size_t fleet_active(const struct fleet *fleet)
{
    size_t n = 0;
    for (size_t i = 0; i < fleet->n_pools; i++)
        n += fleet->pools[i]->pool.client ? quern_active(fleet->pools[i]->pool.client) : 0;
    return n;
}

bool fleet_is_ready(const struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->n_pools; i++)
        if (pool_is_ready(&fleet->pools[i]->pool) && (!fleet_is_many(fleet) || takes_work(fleet->pools[i])))
            return true;
    return false;
}

bool fleet_is_cut_off(const struct fleet *fleet)
{
    return fleet->trust.doubted_ns != 0;
}

bool fleet_pool_is_up(const struct fleet_pool *pool)
{
    return pool->pool.client && quern_is_open(pool->pool.client) && !pool->trust.dead;
}

/* They stand in the order of their names, the newest last. */
bool fleet_is_outlived(const struct fleet *fleet, size_t index)
{
    return index + 1 < fleet->n_pools &&
           strcmp(fleet->pools[index]->member.name, fleet->pools[index + 1]->member.name) == 0;
}

/* ---- choices ---- */

static int refuse_for_now(struct refusal *refusal, const char *code, const char *text)
{
    refuse(refusal, 503, code, NULL, "%s", text);
    refusal->retry_after_s = 1;
    return REFUSED;
}

static int check_many(const struct fleet *fleet, const char *model, struct refusal *refusal)
{
    bool any = false, loads = false;
    for (size_t i = 0; i < fleet->n_pools; i++) {
        const struct fleet_pool *pool = fleet->pools[i];
        if (!takes_work(pool))
            continue;
        any = true;
        loads |= pool->pool.n_models == 0;
        if (pool_model(&pool->pool, model))
            return 0;
    }
    if (!any)
        return refuse_for_now(refusal, "unavailable",
                              fleet->n_pools == 0 ? "the fleet has no members"
                                                  : "no pool of the fleet responds");
    if (fleet->n_models == 0)
        return refuse_for_now(refusal, "loading", "no worker has reported its model yet");
    for (size_t i = 0; i < fleet->n_pools; i++) /* also those that drain or are silent for the moment */
        if (pool_model(&fleet->pools[i]->pool, model))
            return refuse_for_now(refusal, "unavailable", "no pool that serves this model responds");
    if (loads)
        return refuse_for_now(refusal, "loading", "a pool has not reported its model yet");
    return refuse(refusal, 404, "model_not_found", "model", "the model \"%.128s\" does not exist", model);
}

int fleet_check(const struct fleet *fleet, const char *model, struct refusal *refusal)
{
    return fleet_is_many(fleet) ? check_many(fleet, model, refusal)
                                : pool_check(&fleet->pools[0]->pool, model, refusal);
}

struct fleet_pool *fleet_named(const struct fleet *fleet, const char *name)
{
    if (!fleet_is_many(fleet))
        return fleet->pools[0];
    if (name)
        return pool_of(fleet, name);
    for (size_t i = 0; i < fleet->n_pools; i++)
        if (takes_work(fleet->pools[i]) && fleet->pools[i]->pool.status)
            return fleet->pools[i];
    return NULL;
}

struct quern *fleet_client(const struct fleet *fleet, const char *model)
{
    if (!fleet_is_many(fleet))
        return fleet->pools[0]->pool.client;
    for (size_t i = 0; i < fleet->n_pools; i++)
        if (takes_work(fleet->pools[i]) && pool_model(&fleet->pools[i]->pool, model))
            return fleet->pools[i]->pool.client;
    return NULL;
}

static const struct quern_load *load_of(const struct fleet_pool *pool)
{
    return pool->pool.client ? quern_load(pool->pool.client) : NULL;
}

double fleet_foreign_load(const struct fleet_pool *pool)
{
    const struct quern_load *load = load_of(pool);
    if (!load)
        return (double)pool->foreign * FOREIGN_TOKENS;
    return load->tokens > load->own ? (double)(load->tokens - load->own) : 0;
}

static uint32_t slots_of(const struct fleet_pool *pool)
{
    const struct quern_load *load = load_of(pool);
    uint64_t slots = 0;
    if (load && load->slots > 0)
        return load->slots < MOST_SLOTS ? load->slots : MOST_SLOTS;
    for (size_t i = 0; pool->pool.status && i < pool->pool.status->n_workers && slots < MOST_SLOTS; i++)
        slots += pool->pool.status->workers[i].slots;
    return slots < MOST_SLOTS ? (uint32_t)slots : MOST_SLOTS;
}

/* How much of what a pool should have it probably has. */
static double kept_of(const struct fleet_pool *pool)
{
    const struct quern_load *load = load_of(pool);
    return load && load->slots > 0 ? load->kept : 1;
}

/* How well a pool serves the wish: with a worker that is ready, with one of another arithmetic, with one that
 * will be ready, not at all. */
enum fit { FITS, FITS_UNEQUAL, MAY_FIT, FITS_NOT };

static enum fit fit_of(const struct fleet *fleet, const struct fleet_pool *pool,
                       const struct fleet_wish *wish)
{
    const struct pool_model *first = wish->model ? NULL : fleet_model(fleet, NULL);
    const struct pool_model *model = pool_model(&pool->pool, first ? first->name : wish->model);
    if (!takes_work(pool) || !model || (wish->digest && strcmp(model->digest, wish->digest) != 0) ||
        (wish->context > 0 && model->context > 0 && model->context < wish->context))
        return FITS_NOT;
    if (model->ready == 0 || !quern_is_open(pool->pool.client))
        return MAY_FIT;
    return wish->arithmetic && strcmp(model->arithmetic, wish->arithmetic) != 0 ? FITS_UNEQUAL : FITS;
}

static bool is_among(uint32_t number, const uint32_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

struct fleet_pool *fleet_choose(struct fleet *fleet, const struct fleet_wish *wish, const uint32_t *except,
                                size_t n_except)
{
    struct fleet_pool *found[FLEET_MEMBERS];
    struct placing_pool views[FLEET_MEMBERS];
    uint32_t numbers[FLEET_MEMBERS], overlaps[FLEET_MEMBERS] = {0};
    enum fit best = FITS_NOT;
    size_t n = 0;
    if (!fleet_is_many(fleet))
        return n_except == 0 ? fleet->pools[0] : NULL;
    for (size_t i = 0; i < fleet->n_pools && n < FLEET_MEMBERS; i++) {
        const enum fit fit = fit_of(fleet, fleet->pools[i], wish);
        if (fit == FITS_NOT || fit > best || is_among(fleet->pools[i]->number, except, n_except))
            continue;
        n = fit < best ? 0 : n;
        best = fit;
        numbers[n] = fleet->pools[i]->in_book;
        found[n++] = fleet->pools[i];
    }
    if (n == 0)
        return NULL;
    if (wish->pieces)
        book_find(&fleet->book, wish->pieces, numbers, n, overlaps);
    for (size_t i = 0; i < n; i++)
        views[i] = (struct placing_pool){.load = found[i]->load + fleet_foreign_load(found[i]),
                                         .recent = found[i]->recent,
                                         .overlap = kept_of(found[i]) * overlaps[i] * PROMPT_PIECE_TOKENS,
                                         .slots = slots_of(found[i])};
    return found[placing_choose(views, n, wish->tokens)];
}
