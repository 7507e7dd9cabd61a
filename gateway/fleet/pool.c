/* SPDX-License-Identifier: MIT */
/* See pool.h.
 *
 *   no client ──quern_connect_begin──▶ opening ──▶ open ──silence beyond patience──▶ no client
 *        ▲          └──three handshakes failed: the other key, after a while──▶ │
 *        ▲──────────── at once, and after a quarter of a second ────────────────┘
 *
 * The status is asked every second, more often in the beginning. It says which models are served now, which
 * the opening of the session told only of that moment. Until a worker has said what it serves nothing is
 * asked of the pool: an answer could not name its model, nor would anybody know how long it may become or how
 * its model calls tools. */

#include "gateway/fleet/pool.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/log.h"

#define RETRY_NS  (250 * CLOCK_NS_PER_MS)
#define AWAY_NS   (5 * CLOCK_NS_PER_S) /* of a session, or of all workers, before that is told */
#define STATUS_NS (1 * CLOCK_NS_PER_S)
#define MEMBER_NS (500 * CLOCK_NS_PER_MS) /* the same, of a member, whose load decides what it gets */
#define SOON_NS   (50 * CLOCK_NS_PER_MS)  /* instead, until a worker is ready, or SETTLES_NS at most */
#define STATUS_MS 5000                    /* most that an answer is waited for */

/* A wrong server key makes libzmq try again every 24 ms for ever. */
#define WRONG_KEY_HANDSHAKES 3
#define WRONG_KEY_NS         (5 * CLOCK_NS_PER_S) /* until the next try, when no other key is left */

/* After the session has opened workers register with the broker, if they were there before. */
#define SETTLES_NS (10 * CLOCK_NS_PER_S)

void pool_init(struct pool *pool, const char *name, const struct pool_address *address)
{
    *pool = (struct pool){.name = name, .address = *address, .watched = -1, .retry_ns = RETRY_NS};
    snprintf(pool->reason, sizeof pool->reason, "the pool is not connected yet");
}

void pool_watch(struct pool *pool, int watched)
{
    pool->watched = watched;
    if (pool->client)
        quern_watch(pool->client, watched);
}

static void forget_models(struct pool *pool)
{
    for (size_t i = 0; i < pool->n_models; i++) {
        free(pool->models[i].name);
        free(pool->models[i].dialect);
    }
    free(pool->models);
    pool->models = NULL;
    pool->n_models = 0;
}

/* Of a member one line stands for all until it is back: it may be a host that is gone, whose file stays. */
static void say_reason(struct pool *pool, const char *reason)
{
    if (!pool->name && strcmp(pool->reason, reason) != 0)
        log_warn("%s", reason);
    else if (pool->name && !pool->told)
        log_warn("fleet: %s: %s", pool->name, reason);
    pool->told = true;
    snprintf(pool->reason, sizeof pool->reason, "%s", reason);
}

static bool has_next_key(const struct pool *pool)
{
    return pool->address.server_key_next && pool->address.server_key_next[0];
}

static void try_open(struct pool *pool, uint64_t now)
{
    struct quern_error err;
    if (pool->try_ns != 0 && now - pool->try_ns < pool->retry_ns)
        return;
    pool->try_ns = now;
    const struct pool_address *address = &pool->address;
    const char *key = pool->next_key ? address->server_key_next : address->server_key;
    int r = quern_connect_begin(address->connect, key, address->client_key, &pool->client, &err);
    if (r < 0) {
        say_reason(pool, err.text);
        return;
    }
    pool->n_clients++;
    quern_watch(pool->client, pool->watched);
    if (pool->name) {
        quern_set_ping(pool->client, POOL_PING_MS);
        quern_follow_load(pool->client);
    }
}

/* The entry of that name, a new one if there is none; NULL when out of memory. */
static struct pool_model *model_entry(struct pool *pool, const char *name)
{
    for (size_t i = 0; i < pool->n_models; i++)
        if (strcmp(pool->models[i].name, name) == 0)
            return &pool->models[i];
    struct pool_model *models = reallocarray(pool->models, pool->n_models + 1, sizeof *models);
    if (!models)
        return NULL;
    pool->models = models;
    char *copy = strdup(name);
    if (!copy)
        return NULL;
    models[pool->n_models] = (struct pool_model){.name = copy};
    return &models[pool->n_models++];
}

static bool serves(const struct quern_worker *worker)
{
    return worker->model[0] && strcmp(worker->state, "failed") != 0 && strcmp(worker->state, "absent") != 0;
}

static bool any_serves(const struct quern_status *status)
{
    for (size_t i = 0; i < status->n_workers; i++)
        if (serves(&status->workers[i]))
            return true;
    return false;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What a worker says of its model, under one of the names that it answers to. */
static void take_model(struct pool *pool, const struct quern_worker *worker, const char *name)
{
    struct pool_model *model = model_entry(pool, name);
    if (!model)
        return;
    if (model->workers == 0)
        snprintf(model->arithmetic, sizeof model->arithmetic, "%s", worker->arithmetic);
    else if (strcmp(model->arithmetic, worker->arithmetic) != 0)
        model->arithmetic[0] = 0;
    snprintf(model->digest, sizeof model->digest, "%s", worker->digest);
    model->workers++;
    model->ready += strcmp(worker->state, "ready") == 0;
    /* The smallest: what fits it fits on every worker. */
    if (worker->context > 0 && (model->context == 0 || worker->context < model->context))
        model->context = worker->context;
    if (worker->embedding > 0)
        model->embedding = worker->embedding;
    model->ranks |= worker->ranks;
    if (worker->dialect[0] && !model->dialect)
        model->dialect = strdup(worker->dialect);
}

/* What the pool takes goes by the largest. One that is gone for the moment comes back. */
static void take_context(struct pool *pool, const struct quern_status *status)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < status->n_workers; i++)
        if (status->workers[i].context > largest)
            largest = status->workers[i].context;
    if (largest > 0)
        pool->context = largest;
}

/* Whether it was there before. After a restart in a container the pids may be the same, but the steps begin
 * anew. */
static bool is_known(const struct pool *pool, const struct quern_worker *worker)
{
    for (size_t i = 0; i < pool->n_workers; i++)
        if (pool->workers[i].pid == worker->pid && pool->workers[i].steps <= worker->steps)
            return true;
    return false;
}

/* A broker that is replaced finds its workers alive, with all that is in their caches. */
void pool_note_workers(struct pool *pool, const struct quern_status *status)
{
    struct pool_worker now[POOL_WORKERS];
    size_t n = 0;
    bool any_known = false;
    for (size_t i = 0; i < status->n_workers && n < POOL_WORKERS; i++) {
        const struct quern_worker *worker = &status->workers[i];
        if (worker->pid == 0)
            continue;
        any_known |= is_known(pool, worker);
        now[n++] = (struct pool_worker){worker->pid, worker->steps};
    }
    if (n == 0)
        return; /* none runs, or the broker does not know them yet */
    pool->n_renewals += pool->n_workers > 0 && !any_known;
    memcpy(pool->workers, now, n * sizeof *now);
    pool->n_workers = n;
}

static void on_status(void *arg, const struct quern_answer *answer)
{
    struct pool *pool = arg;
    pool->asked = false;
    if (answer->code != 0)
        return; /* asked again in a second */
    pool->n_statuses++;
    if (any_serves(answer->status))
        forget_models(pool); /* else those of before are told, none of them ready, until one comes back */
    for (size_t i = 0; i < pool->n_models; i++)
        pool->models[i].workers = pool->models[i].ready = 0;
    pool->status = answer->status; /* lives until the next */
    pool->status_ms = now_ms();
    pool->draining = answer->status->draining;
    take_context(pool, answer->status);
    pool_note_workers(pool, answer->status);
    for (size_t i = 0; i < answer->status->n_workers; i++) {
        const struct quern_worker *worker = &answer->status->workers[i];
        if (!serves(worker))
            continue;
        if (strcmp(worker->state, "ready") == 0)
            pool->ready_ns = clock_ns();
        take_model(pool, worker, worker->model);
        for (size_t j = 0; worker->aliases[j]; j++)
            take_model(pool, worker, worker->aliases[j]);
    }
}

/* Whether the next status is likely to say more than the last one. */
static bool is_settling(const struct pool *pool, uint64_t now)
{
    return pool->n_models == 0 || (!pool_is_ready(pool) && now - pool->opened_ns < SETTLES_NS);
}

static void ask_status(struct pool *pool, uint64_t now)
{
    uint64_t wait_ns = is_settling(pool, now) ? SOON_NS : pool->name ? MEMBER_NS : STATUS_NS;
    if (pool->asked || (pool->asked_ns != 0 && now - pool->asked_ns < wait_ns))
        return;
    pool->asked_ns = now;
    pool->asked = quern_ask_status(pool->client, STATUS_MS, on_status, pool, NULL) == 0;
}

static void look(struct pool *pool, uint64_t now)
{
    bool open = quern_is_open(pool->client);
    if (open && !pool->was_open) {
        if (pool->name)
            log_info("fleet: %s at %s is connected", pool->name, pool->address.connect);
        else
            log_info("the pool is connected");
        pool->reason[0] = 0;
        pool->told = false;
        pool->retry_ns = RETRY_NS;
        pool->asked_ns = 0;
        pool->opened_ns = now;
    } else if (!open && pool->was_open) {
        say_reason(pool, "the pool does not answer");
    }
    pool->was_open = open;
    if (!open)
        return;
    pool->open_ns = now;
    ask_status(pool, now);
}

/* A goodbye that does not leave holds up who says it for 200 ms; with a fleet others wait meanwhile. */
static void *free_client(void *client)
{
    quern_free(client);
    return NULL;
}

static void close_client(struct pool *pool)
{
    pthread_t thread;
    sigset_t all, before; /* signals are the main thread's */
    struct quern *client = pool->client;
    pool->client = NULL;
    pool->status = NULL; /* which was the client's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (client && pool->name && pthread_create(&thread, NULL, free_client, client) == 0)
        pthread_detach(thread);
    else
        quern_free(client);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void lose(struct pool *pool, const char *reason)
{
    say_reason(pool, reason);
    close_client(pool);
    forget_models(pool);
    pool->asked = pool->was_open = pool->wrong_key = false;
    pool->open_ns = pool->ready_ns = 0;
    pool->try_ns = clock_ns();
}

/* With a wrong key there is no answer, ever. The other key is tried at once, and both again after a while.
 * What was sent with this one must end first, which libquern sees to when it has no patience left. */
static void judge_key(struct pool *pool)
{
    if (quern_failed_handshakes(pool->client) < WRONG_KEY_HANDSHAKES)
        return;
    pool->wrong_key = true;
    pool->retry_ns = has_next_key(pool) && !pool->next_key ? 0 : WRONG_KEY_NS;
    pool->next_key = has_next_key(pool) && !pool->next_key;
    quern_set_patience(pool->client, 0);
}

static const char *reason_of_loss(const struct pool *pool, const struct quern_error *err)
{
    if (!pool->wrong_key)
        return err->text;
    return pool->next_key ? "its server key has changed; trying server-key-next"
                          : "it has none of the server keys that are configured for it";
}

void pool_deinit(struct pool *pool)
{
    close_client(pool);
    forget_models(pool);
}

void pool_turn(struct pool *pool, uint64_t now)
{
    if (!pool->client)
        try_open(pool, now);
    if (!pool->client || pool->wrong_key)
        return;
    look(pool, now);
    if (pool->name)
        judge_key(pool);
}

static int dispatch(struct pool *pool, int timeout_ms)
{
    struct quern_error err;
    int r = quern_dispatch(pool->client, timeout_ms, &err);
    if (r == -EACCES && pool->name)
        pool->retry_ns = WRONG_KEY_NS; /* our key has to be put into its folder first */
    if (r < 0)
        lose(pool, reason_of_loss(pool, &err));
    return r;
}

void pool_dispatch(struct pool *pool)
{
    if (pool->client)
        dispatch(pool, 0);
}

void pool_wait(struct pool *pool, int timeout_ms)
{
    uint64_t now = clock_ns();
    pool_turn(pool, now);
    if (!pool->client) {
        struct pollfd watched = {.fd = pool->watched, .events = POLLIN};
        int left = (int)(RETRY_NS / CLOCK_NS_PER_MS);
        poll(&watched, 1, timeout_ms >= 0 && timeout_ms < left ? timeout_ms : left);
        return;
    }
    int timer_ms = is_settling(pool, now) ? (int)(SOON_NS / CLOCK_NS_PER_MS) : 250;
    if (timeout_ms < 0 || timeout_ms > timer_ms)
        timeout_ms = timer_ms; /* for the timers here */
    dispatch(pool, timeout_ms);
}

const struct pool_model *pool_model(const struct pool *pool, const char *name)
{
    for (size_t i = 0; i < pool->n_models; i++)
        if (!name || strcmp(pool->models[i].name, name) == 0)
            return &pool->models[i];
    return NULL;
}

static int refuse_unavailable(const struct pool *pool, struct refusal *refusal)
{
    refuse(refusal, 503, "unavailable", NULL, "%s",
           pool->reason[0] ? pool->reason : "the pool does not answer");
    refusal->retry_after_s = 1;
    return REFUSED;
}

bool pool_answers(const struct pool *pool)
{
    if (!pool->client)
        return false;
    return quern_is_open(pool->client) || (pool->open_ns != 0 && clock_ns() - pool->open_ns < AWAY_NS);
}

bool pool_is_ready(const struct pool *pool)
{
    return pool->ready_ns != 0 && clock_ns() - pool->ready_ns < AWAY_NS;
}

int pool_status(const struct pool *pool, const struct quern_status **ret_status, struct refusal *refusal)
{
    if (!pool_answers(pool) || !pool->status)
        return refuse_unavailable(pool, refusal);
    *ret_status = pool->status;
    return 0;
}

int pool_check(const struct pool *pool, const char *model, struct refusal *refusal)
{
    if (!pool_answers(pool))
        return refuse_unavailable(pool, refusal);
    if (pool->draining) {
        refuse(refusal, 503, "draining", NULL, "the pool is shutting down");
        refusal->retry_after_s = 1;
        return REFUSED;
    }
    if (pool->n_models == 0) {
        refuse(refusal, 503, "loading", NULL, "no worker has reported its model yet");
        refusal->retry_after_s = 1;
        return REFUSED;
    }
    if (model && !pool_model(pool, model))
        return refuse(refusal, 404, "model_not_found", "model", "the model \"%.128s\" does not exist", model);
    return 0;
}
