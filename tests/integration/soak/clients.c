/* SPDX-License-Identifier: MIT */
/* See clients.h. The callbacks of libquern compare while answers come, so what is wrong is told at the
 * first id that is. */

#include "tests/integration/soak/clients.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/integration/soak/promise.h"

enum { AT_ONCE = 4 };

static struct soak_clients *all;

struct job {
    int kind;
    bool busy, over, ended;
    uint32_t n_ids, n_text;
    uint64_t logprobs; /* their hash */
    uint64_t heard_ns;
    struct expected *learns; /* the first time; else it is compared */
};

/* Of nothing there need not be a pointer. */
static bool differ(const void *a, const void *b, size_t n)
{
    return n > 0 && memcmp(a, b, n) != 0;
}

static void learn_bytes(void *to, const void *from, size_t n)
{
    if (n > 0)
        memcpy(to, from, n);
}

static void take_output(struct job *job, const struct quern_output *output)
{
    struct expected *expected = job->learns ? job->learns : &all->expected[job->kind];
    if (job->n_ids + output->n_ids > SOAK_MOST_IDS || job->n_text + output->text_len > SOAK_MOST_TEXT) {
        promise_broken("an answer without end");
        return;
    }
    if (job->learns) {
        learn_bytes(expected->ids + job->n_ids, output->ids, output->n_ids * sizeof *output->ids);
        learn_bytes(expected->text + job->n_text, output->text, output->text_len);
        expected->n_ids = job->n_ids + (uint32_t)output->n_ids;
        expected->n_text = job->n_text + (uint32_t)output->text_len;
    } else if (output->index != job->n_ids || job->n_ids + output->n_ids > expected->n_ids ||
               job->n_text + output->text_len > expected->n_text ||
               differ(expected->ids + job->n_ids, output->ids, output->n_ids * sizeof *output->ids) ||
               differ(expected->text + job->n_text, output->text, output->text_len)) {
        promise_broken("request %d: another answer from id %u on", job->kind, job->n_ids);
    }
    job->n_ids += (uint32_t)output->n_ids;
    job->n_text += (uint32_t)output->text_len;
    job->logprobs = soak_hash_logprobs(job->logprobs, output);
}

/* What stops is to be stopped, and not by its length. */
static void learn_end(const struct job *job, const struct quern_end *end)
{
    job->learns->reason = end->reason;
    job->learns->logprobs = job->logprobs;
    if (job->kind >= SOAK_KINDS - SOAK_STOPPING && end->reason != QUERN_STOP)
        promise_broken("request %d does not stop", job->kind);
}

/* A rate is used up: of nothing that had begun, and it says when to come back. */
static bool is_over_rate(const struct job *job, const struct quern_end *end)
{
    return job->kind == SOAK_RATED && job->n_ids == 0 && end->reason == QUERN_ERROR &&
           strcmp(end->error, "overloaded") == 0 && strstr(end->text, "rpm") && end->retry_after_ms > 0;
}

static void take_end(struct job *job, const struct quern_end *end)
{
    const struct expected *expected = &all->expected[job->kind];
    if (is_over_rate(job, end)) {
        __atomic_add_fetch(&all->over_rate, 1, __ATOMIC_RELAXED);
        job->ended = true;
        return;
    }
    if (job->kind == SOAK_RATED)
        __atomic_add_fetch(&all->rated, 1, __ATOMIC_RELAXED);
    bool promised = end->reason == QUERN_ERROR && strcmp(end->error, "worker_lost") == 0 &&
                    strstr(end->text, "2 workers running this request had died before");
    if (promised)
        __atomic_add_fetch(&all->moved_out, 1, __ATOMIC_RELAXED);
    else if (end->reason == QUERN_ERROR)
        promise_broken("request %d: %s: %s", job->kind, end->error, end->text);
    else if (job->learns)
        learn_end(job, end);
    else if (job->n_ids != expected->n_ids || job->n_text != expected->n_text ||
             end->reason != expected->reason)
        promise_broken("request %d: %u of %u ids, %u of %u bytes, ended by reason %d", job->kind, job->n_ids,
                       expected->n_ids, job->n_text, expected->n_text, end->reason);
    else if (job->logprobs != expected->logprobs)
        promise_broken("request %d: other log probabilities", job->kind);
    __atomic_add_fetch(&all->ended, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&all->ids, job->n_ids, __ATOMIC_RELAXED);
    job->ended = true;
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct job *job = arg;
    uint64_t now = clock_ns();
    long ms = (long)((now - job->heard_ns) / CLOCK_NS_PER_MS);
    if (job->ended) {
        promise_broken("request %d: it goes on behind its end", job->kind);
        return;
    }
    if (job->n_ids > 0 && ms > __atomic_load_n(&all->longest_ms, __ATOMIC_RELAXED))
        __atomic_store_n(&all->longest_ms, ms, __ATOMIC_RELAXED);
    job->heard_ns = now;
    take_output(job, output);
    if (output->end) {
        take_end(job, output->end);
        job->busy = false;
    }
}

static void send_job(struct quern *client, struct job *job, int kind, struct expected *learns)
{
    struct quern_request request = soak_request(kind, all->tokens, all->chat, all->expected);
    struct quern_error err = {0};
    *job = (struct job){.kind = kind, .busy = true, .heard_ns = clock_ns(), .learns = learns};
    if (quern_generate(client, &request, on_output, job, NULL, &err) == 0)
        return;
    promise_broken("generate: %s", err.text);
    job->busy = false;
}

struct quern *soak_connect(const char *endpoint)
{
    struct quern *client = NULL;
    struct quern_error err = {0};
    if (quern_connect(endpoint, SOAK_PATIENCE_S * 1000, &client, &err) != 0) {
        promise_broken("connect: %s", err.text);
        return NULL;
    }
    quern_set_patience(client, SOAK_PATIENCE_S * 1000);
    return client;
}

/* True when the client is of no more use. */
static bool dispatch(struct quern *client)
{
    struct quern_error err = {0};
    if (quern_dispatch(client, 100, &err) >= 0)
        return false;
    promise_broken("dispatch: %s", err.text);
    return true;
}

static bool is_tcp(int fd)
{
    int domain = 0;
    socklen_t size = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
           (domain == AF_INET || domain == AF_INET6);
}

/* Shuts one of our TCP connections, as a network that fails does: neither libzmq nor the broker is asked. One
 * that loses both at once has left, for all that the broker can see. */
static void cut_connection(void)
{
    int fds[256], n = 0;
    for (int fd = 3; fd < 256; fd++)
        if (is_tcp(fd))
            fds[n++] = fd;
    if (n > 0)
        shutdown(fds[rand() % n], SHUT_RDWR);
}

static void nap_ms(int ms)
{
    usleep((useconds_t)ms * 1000);
}

static int any_kind(bool by_tcp)
{
    int kind = rand() % SOAK_KINDS;
    return kind == SOAK_RATED && by_tcp ? 0 : kind;
}

void soak_clients_be_one(struct soak_clients *clients, const char *endpoint, int index, unsigned seed)
{
    static struct job jobs[AT_ONCE];
    all = clients;
    struct quern *client = soak_connect(endpoint);
    bool busy = client != NULL;
    srand(seed);
    while (busy) {
        busy = false;
        for (int i = 0; i < AT_ONCE; i++) {
            if (!jobs[i].busy && !__atomic_load_n(&all->ending, __ATOMIC_RELAXED))
                send_job(client, &jobs[i], any_kind(index % 2 == 1), NULL);
            busy |= jobs[i].busy;
        }
        if (dispatch(client))
            break;
        if (__atomic_exchange_n(&all->cut[index], false, __ATOMIC_RELAXED))
            cut_connection();
        if (index % 4 == 3)
            nap_ms(rand() % (rand() % 20 ? 100 : 2000));
    }
    quern_free(client);
}

/* False when the client is of no more use. */
static bool learn_kinds(struct quern *client, int from, int to)
{
    static struct job jobs[SOAK_KINDS];
    bool busy = true;
    for (int i = from; i < to; i++)
        send_job(client, &jobs[i], i, &all->expected[i]);
    while (busy) {
        busy = false;
        for (int i = from; i < to; i++)
            busy |= jobs[i].busy;
        if (busy && dispatch(client))
            return false;
    }
    return true;
}

void soak_clients_learn(struct soak_clients *clients, const char *endpoint)
{
    size_t n_models;
    all = clients;
    struct quern *client = soak_connect(endpoint);
    if (!client)
        return;
    const struct quern_model *models = quern_models(client, &n_models);
    all->chat = n_models > 0 && models[0].chat;
    if (learn_kinds(client, 0, SOAK_KINDS - SOAK_STOPPING))
        learn_kinds(client, SOAK_KINDS - SOAK_STOPPING, SOAK_KINDS);
    quern_free(client);
    all->ended = all->ids = all->longest_ms = 0;
}
