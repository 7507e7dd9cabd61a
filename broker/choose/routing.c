/* SPDX-License-Identifier: MIT */
/* The books of prefixes and of workers, put together.
 *
 * A worker counts as having a prompt from the moment it is given it: what comes next with the same beginning
 * goes there too and waits for it, instead of being read elsewhere at the same time. When too much waits
 * there, another worker reads it anew, and has it from then on, too: a prefix that is asked for often spreads
 * by itself.
 *
 * A request that leaves its worker before its first token may not have been read: what only it brought there
 * is taken back. */

#include "broker/choose/routing.h"

#include <stddef.h>

#define MOST_PIECES (1u << 17) /* of all prompts: 8 million tokens, 4.5 MiB */

/* Of what a worker has done lately: beyond, all that was done counts half. */
#define RECENT_TOKENS (1u << 18)

/* What a worker's cache need not find of what is believed: it keeps whole blocks, and never the last id. */
#define SLACK_TOKENS 64

_Static_assert(WORKER_MAX <= PREFIXES_MOST_WORKERS, "a bit for each worker");

/* How often a token counts that need not be read; and of what a worker did lately, how much of the mean is
 * its part: chance alone makes it uneven. */
#define WORTH          7
#define UNEVEN_PERCENT 108

/* Of what is brought from the store this part is as if it were read: blocks are copied, a few a step. */
#define RESTORE_COST 8

int routing_init(struct routing *routing, struct worker *workers, uint32_t n_workers, bool shares,
                 uint64_t secret)
{
    *routing =
        (struct routing){.workers = workers, .n_workers = n_workers, .shares = shares, .secret = secret};
    return n_workers > 1 ? prefixes_init(&routing->prefixes, MOST_PIECES) : 0;
}

int routing_publish(struct routing *routing, uint64_t secret)
{
    routing->secret = secret;
    int r = routing->n_workers > 1 ? 0 : prefixes_init(&routing->prefixes, MOST_PIECES);
    return r < 0 ? r : prefixes_publish(&routing->prefixes);
}

void routing_deinit(struct routing *routing)
{
    prefixes_deinit(&routing->prefixes);
}

void routing_admit(const struct routing *routing, struct request *request,
                   const struct generation *generation)
{
    if (routing->prefixes.most > 0 && !generation->embed) /* which uses no cache */
        request->pieces = prompt_pieces_cut(generation, routing->secret);
}

static uint64_t tokens_of(const struct request *request, uint32_t n_pieces)
{
    uint64_t tokens = (uint64_t)n_pieces * PROMPT_PIECE_TOKENS;
    return tokens < request->prompt_tokens ? tokens : request->prompt_tokens;
}

/* What a worker is likely to have of a prompt, in tokens, and what it is likely to bring from the store. */
struct expected {
    uint64_t believed; /* what the book says; `cached` is what of that comes true */
    uint64_t cached, restored;
};

/* What a worker need not read is time of this request, and of all that come behind it wherever it is read
 * anew. So it is worth several times that: else a pool that is busy moves what it has to workers that are
 * free for a moment, reads it there again, and is busier for it. What a worker has to bring first is worth
 * less, or a prompt would go round instead of staying where it is.
 *
 * What a worker that is busy has done lately beyond its part is taken off that, twice, so that one whose
 * prefixes are asked for more often loses some of them. One that has nothing to do loses none: having worked
 * is no reason to leave it idle. Nor does any while most of the pool is idle. But one that does not keep its
 * word is no better than another. */
static uint64_t saved_by(const struct worker *worker, const struct expected *expected, uint64_t part,
                         bool most_are_idle)
{
    bool keeps_its_word = 2 * expected->cached >= expected->believed;
    bool spared = keeps_its_word && (most_are_idle || worker->n_requests == 0);
    uint64_t excess = !spared && worker->recent > part ? 2 * (worker->recent - part) : 0;
    uint64_t saved = WORTH * expected->cached;
    if (expected->restored > saved)
        saved = expected->restored;
    return saved > excess ? saved - excess : 0;
}

/* What of the work done lately is a worker's part; beyond it, it had too much. */
static uint64_t part_of(const struct routing *routing, bool *ret_most_are_idle)
{
    uint64_t sum = 0;
    uint32_t n_busy = 0;
    for (uint32_t i = 0; i < routing->n_workers; i++) {
        sum += routing->workers[i].recent;
        n_busy += routing->workers[i].n_requests > 0;
    }
    *ret_most_are_idle = 2 * n_busy < routing->n_workers;
    return sum / routing->n_workers * UNEVEN_PERCENT / 100;
}

/* Fills in what each worker is believed to have of the prompt, what that promises, and what it saves. */
static void look(const struct routing *routing, const struct request *request, uint32_t *ret_pieces,
                 struct expected *ret_expected, uint64_t *ret_saved)
{
    prefixes_find(&routing->prefixes, request->pieces, routing->n_workers, ret_pieces);
    for (uint32_t i = 0; i < routing->n_workers; i++) {
        const struct worker *worker = &routing->workers[i];
        struct expected *expected = &ret_expected[i];
        uint64_t restored = hit_estimate_expects(&worker->restored, tokens_of(request, request->n_stored));
        expected->believed = tokens_of(request, ret_pieces[i]);
        expected->cached = hit_estimate_expects(&worker->cached, expected->believed);
        expected->restored = restored - restored / RESTORE_COST;
    }
    bool most_are_idle;
    uint64_t part = part_of(routing, &most_are_idle);
    for (uint32_t i = 0; i < routing->n_workers; i++)
        ret_saved[i] = saved_by(&routing->workers[i], &ret_expected[i], part, most_are_idle);
}

int routing_choose(const struct routing *routing, const struct scheduler_wish *wish, struct request *request,
                   struct worker **ret_worker)
{
    /* By load first: when no worker has room, which is asked again and again, nothing is looked up. */
    int r = scheduler_pick(routing->workers, routing->n_workers, wish, ret_worker);
    if (r != 0)
        return r;
    request->n_found = request->n_stored = 0;
    request->prefill = request->prompt_tokens + request->log.count;
    if (!request->pieces)
        return 0;
    uint32_t pieces[WORKER_MAX];
    struct expected expected[WORKER_MAX];
    uint64_t saved[WORKER_MAX];
    struct scheduler_wish full = *wish;
    full.saved = saved;
    request->n_stored = prefixes_stored(&routing->prefixes, request->pieces);
    look(routing, request, pieces, expected, saved);
    r = scheduler_pick(routing->workers, routing->n_workers, &full, ret_worker);
    ptrdiff_t chosen = *ret_worker - routing->workers;
    request->n_found = pieces[chosen];
    const struct expected *had = &expected[chosen];
    request->prefill -= had->cached > had->restored ? had->cached : had->restored;
    return r;
}

void routing_assigned(struct routing *routing, struct request *request, struct worker *worker)
{
    worker_take(worker, request);
    if (request->pieces)
        prefixes_add(&routing->prefixes, request->pieces, worker->index);
}

void routing_prefilled(struct routing *routing, struct request *request)
{
    worker_prefilled(request->worker, request);
    /* Its blocks are copied as they become final. */
    if (request->pieces && routing->shares)
        prefixes_store(&routing->prefixes, request->pieces);
}

/* Of so many tokens that were believed to be there. */
static void learn(struct hit_estimate *estimate, uint64_t believed, uint64_t found)
{
    if (believed > 0)
        hit_estimate_learn(estimate, believed, found + SLACK_TOKENS >= believed ? believed : found);
}

/* The worker counts tokens, the book bytes: it is the share of the prompt that is compared. What the store
 * has beyond the worker is what the store is judged by. */
static void learn_both(struct worker *worker, const struct request *request, const struct usage *usage)
{
    uint64_t found = usage->cached_tokens;
    uint64_t cached = tokens_of(request, request->n_found) * usage->prompt_tokens / request->prompt_tokens;
    uint64_t stored = tokens_of(request, request->n_stored) * usage->prompt_tokens / request->prompt_tokens;
    learn(&worker->cached, cached, found);
    if (stored > cached)
        learn(&worker->restored, stored - cached, found > cached ? found - cached : 0);
}

void routing_left(struct routing *routing, struct request *request, const struct usage *usage)
{
    struct worker *worker = request->worker;
    if (request->pieces && !request->prefilled)
        prefixes_drop(&routing->prefixes, request->pieces, request->n_found, worker->index);
    else if (request->pieces && usage && usage->prompt_tokens > 0)
        learn_both(worker, request, usage);
    worker_drop(worker, request);
    bool much = worker->recent > RECENT_TOKENS;
    for (uint32_t i = 0; much && i < routing->n_workers; i++)
        routing->workers[i].recent /= 2;
}

void routing_lost(struct routing *routing, struct worker *worker)
{
    prefixes_forget(&routing->prefixes, worker->index);
    worker->cached = (struct hit_estimate){0}; /* of the store it is still believed what it is */
}
