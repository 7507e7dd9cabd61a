/* SPDX-License-Identifier: MIT */
/* See carry.h.
 *
 * An attempt is one request at one pool. Each is in its pool's list until libquern has called for the last
 * time, or forgets it with its client.
 *
 *   carried ──sent──▶ attempt ──its end──▶ freed, the end is passed on
 *                       │└──its end says: elsewhere──▶ freed, another attempt
 *                       └──its pool is dead──▶ dropped, cancelled, another attempt; freed at its end */

#include "gateway/fleet/carry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "gateway/fleet/placing.h"

#include <utlist.h>

#define AGAIN_NS (500 * CLOCK_NS_PER_MS)
#define SOON_NS  (30 * CLOCK_NS_PER_MS) /* instead, if pools have too much on their way */
#define ENTER_NS (1 * CLOCK_NS_PER_S)   /* between two times that all of a pool's are entered again */

struct attempt {
    struct carried *carried; /* NULL: dropped */
    struct fleet *fleet;
    struct fleet_pool *pool;
    struct quern_id id;
    double unread, decode; /* its parts of the pool's load */
    uint32_t overlap;      /* leading pieces that the pool was believed to have before */
    uint32_t entered_as;   /* the pool's number under which its pieces are in the book; 0: they are not */
    struct attempt *prev, *next;
};

/* ---- the books ---- */

static void enter_pieces(struct attempt *attempt)
{
    const struct prompt_pieces *pieces = attempt->carried->wish.pieces;
    const struct fleet_pool *pool = attempt->pool;
    if (!pieces || attempt->entered_as == pool->in_book)
        return;
    book_find(&attempt->fleet->book, pieces, &pool->in_book, 1, &attempt->overlap);
    book_add(&attempt->fleet->book, pieces, pool->in_book);
    attempt->entered_as = pool->in_book;
}

static void enter(struct attempt *attempt)
{
    const struct fleet_wish *wish = &attempt->carried->wish;
    struct fleet_pool *pool = attempt->pool;
    enter_pieces(attempt);
    const double known = (double)attempt->overlap * PROMPT_PIECE_TOKENS;
    attempt->unread = wish->tokens > known ? wish->tokens - known : 0;
    attempt->decode = wish->decode;
    pool->load += attempt->unread + attempt->decode;
    pool->n_requests++;
    pool->chosen++;
    DL_APPEND(pool->attempts, attempt);
}

static void note_recent(struct fleet *fleet, struct fleet_pool *pool, double tokens)
{
    pool->recent += tokens;
    for (size_t i = 0; pool->recent > PLACING_RECENT_TOKENS && i < fleet->n_pools; i++)
        fleet->pools[i]->recent /= 2;
}

/* The pool has processed the prompt. */
static void note_read(struct attempt *attempt)
{
    attempt->pool->load -= attempt->unread;
    note_recent(attempt->fleet, attempt->pool, attempt->unread);
    attempt->unread = 0;
}

/* It counts no more. `begun`: its output had begun, so the pool has its prompt. */
static void leave(struct attempt *attempt, bool begun)
{
    struct fleet_pool *pool = attempt->pool;
    const struct prompt_pieces *pieces = attempt->carried->wish.pieces;
    if (pieces && !begun && attempt->entered_as == pool->in_book)
        book_drop(&attempt->fleet->book, pieces, attempt->overlap, pool->in_book);
    pool->load -= attempt->unread + attempt->decode;
    pool->n_requests--;
    if (pool->n_requests == 0)
        pool->load = 0; /* sums of fractions */
    note_recent(attempt->fleet, pool, attempt->decode);
    attempt->unread = attempt->decode = 0;
}

static void free_attempt(struct attempt *attempt)
{
    DL_DELETE(attempt->pool->attempts, attempt);
    free(attempt);
}

/* ---- sending ---- */

static void on_output(void *arg, const struct quern_output *output);

/* The request with what has come of it, for another pool. */
static int resume(const struct carried *carried, struct quern *client, struct quern_encoded **ret_encoded,
                  struct quern_error *err)
{
    const struct quern_resume so_far = {.output = (const int32_t *)(const void *)carried->ids.data,
                                        .n_output = carried->ids.len / sizeof(int32_t),
                                        .off = carried->off,
                                        .lost = carried->lost,
                                        .elapsed_ms = (clock_ns() - carried->sent_ns) / CLOCK_NS_PER_MS,
                                        .prompt_digest =
                                            carried->has_prompt_digest ? carried->prompt_digest : NULL};
    return quern_encode_resumed(client, carried->encoded, &so_far, ret_encoded, err);
}

/* What of the first pool every other one must have in common with it. */
static void note_pool(struct carried *carried, const struct pool *pool)
{
    const struct pool_model *model = pool_model(pool, carried->wish.model);
    carried->context = model ? model->context : 0;
    snprintf(carried->digest, sizeof carried->digest, "%s", model ? model->digest : "");
    snprintf(carried->arithmetic, sizeof carried->arithmetic, "%s", model ? model->arithmetic : "");
}

/* Sends it to this pool. 0 or a code of libquern. */
static int start(struct carried *carried, struct fleet_pool *pool, struct quern_error *err)
{
    struct quern_encoded *again = NULL;
    struct attempt *attempt = calloc(1, sizeof *attempt);
    if (!attempt)
        return -ENOMEM;
    *attempt = (struct attempt){.carried = carried, .fleet = carried->fleet, .pool = pool};
    int r = carried->begun || (carried->lost > 0 && carried->has_seed)
                ? resume(carried, pool->pool.client, &again, err)
                : 0;
    if (r == 0)
        r = quern_generate_encoded(pool->pool.client, again ? again : carried->encoded,
                                   carried->has_seed ? &carried->seed : NULL, on_output, attempt,
                                   &attempt->id, err);
    quern_encoded_free(again);
    if (r < 0) {
        free(attempt);
        return r;
    }
    enter(attempt);
    carried->attempt = attempt;
    carried->been[carried->moves] = pool->number;
    if (!carried->begun)
        note_pool(carried, &pool->pool);
    return 0;
}

static bool takes_it(const struct carried *carried, const struct fleet_pool *prefer)
{
    return prefer && !prefer->leaving && !prefer->pool.draining && fleet_pool_is_up(prefer) &&
           pool_model(&prefer->pool, carried->wish.model);
}

/* The best pool that takes it, except these: first all that it has been at. An earlier one may be back, as in
 * a fleet of two that are upgraded one after the other. */
static struct fleet_pool *choose(const struct carried *carried, const struct fleet_wish *wish,
                                 const uint32_t *except, size_t n)
{
    struct fleet_pool *pool = fleet_choose(carried->fleet, wish, except, n);
    const size_t earlier = carried->moves > 0 ? carried->moves - 1 : 0;
    return pool || earlier == 0 ? pool : fleet_choose(carried->fleet, wish, except + earlier, n - earlier);
}

/* Sends it to the best pool that takes it. */
static int send_somewhere(struct carried *carried, struct fleet_pool *prefer, struct quern_error *err)
{
    uint32_t except[2 * CARRY_MOVES + 1];
    struct fleet_wish wish = carried->wish;
    size_t n = carried->moves;
    int r = -EHOSTUNREACH;
    memcpy(except, carried->been, n * sizeof *except);
    if (carried->begun) {
        wish.context = carried->context;
        wish.digest = carried->digest;
        wish.arithmetic = carried->arithmetic[0] ? carried->arithmetic : NULL;
    }
    snprintf(err->text, sizeof err->text, "no pool of the fleet accepts the request now");
    struct fleet_pool *pool = takes_it(carried, prefer) ? prefer : choose(carried, &wish, except, n);
    while (pool && n < sizeof except / sizeof *except) {
        r = start(carried, pool, err);
        if (r != -EAGAIN)
            return r;
        except[n++] = pool->number; /* it has too much on its way already */
        pool = choose(carried, &wish, except, n);
    }
    return r;
}

static void note_move(const struct carried *carried, struct fleet_pool *from, const struct fleet_pool *to)
{
    const struct pool_model *model = pool_model(&to->pool, carried->wish.model);
    const bool unequal = carried->begun && model && strcmp(model->arithmetic, carried->arithmetic) != 0;
    from->moved++;
    from->moved_unequal += unequal;
    log_info("fleet: a request moves from %s to %s%s", from->member.name, to->member.name,
             unequal ? ", whose arithmetic differs" : "");
}

/* True if it is on its way to another pool. */
static bool move(struct carried *carried)
{
    struct quern_error err = {.text = ""};
    struct attempt *before = carried->attempt;
    carried->moves++;
    const int r = send_somewhere(carried, NULL, &err);
    if (r == 0) {
        note_move(carried, before->pool, carried->attempt->pool);
        return true;
    }
    carried->moves--;
    carried->attempt = before;
    /* To encode a long one at every turn would take the loop's time. Pools that have too much on their way
     * have room again within milliseconds. */
    if (r != -EHOSTUNREACH)
        carried->again_ns = clock_ns() + (r == -EAGAIN ? SOON_NS : AGAIN_NS);
    return false;
}

static bool has_quotas(const struct quern_end *end)
{
    return end->requests.limit > 0 || end->tokens.limit > 0;
}

static bool says(const struct quern_end *end, const char *error)
{
    return strcmp(end->error, error) == 0;
}

/* A pool with another chat template refuses what another one has begun, as does one too old to resume. */
static bool says_not_here(const struct carried *carried, const struct quern_end *end)
{
    return carried->moves > 0 && end->reason == QUERN_ERROR &&
           (says(end, "conflict") || says(end, "unsupported"));
}

/* Whether another pool may do better. One that has lost three workers with a request says so, and libquern
 * says "worker_lost" of a pool that is gone. */
static bool is_for_others(const struct carried *carried, const struct quern_end *end)
{
    if (end->reason != QUERN_ERROR)
        return false;
    if (says(end, "worker_lost"))
        return end->lost < 3;
    return says_not_here(carried, end) || says(end, "draining") || says(end, "no_worker") ||
           (says(end, "overloaded") && !has_quotas(end));
}

static bool may_move(const struct carried *carried)
{
    if (carried->cancelled || carried->moves == CARRY_MOVES)
        return false;
    return !carried->begun || (carried->has_seed && carried->digest[0] && !carried->forgot);
}

/* Notes what has come, for the next pool. */
static void keep(struct carried *carried, const struct quern_output *output)
{
    if (output->prompt_digest && (!carried->begun || !carried->has_prompt_digest)) {
        memcpy(carried->prompt_digest, output->prompt_digest, sizeof carried->prompt_digest);
        carried->has_prompt_digest = true;
    }
    if (output->n_ids == 0 && output->text_len == 0)
        return;
    carried->begun = true;
    carried->off += output->text_len;
    if (output->n_ids > 0 &&
        buffer_append(&carried->ids, output->ids, output->n_ids * sizeof *output->ids) < 0)
        carried->forgot = true;
}

/* An end is told last: its owner may be gone after it. That of a request that no pool could continue says so,
 * and not only why the last one refused. */
static void pass_on(struct carried *carried, const struct quern_output *output)
{
    struct quern_output other = *output;
    struct quern_end end;
    char text[256];
    if (output->end)
        buffer_deinit(&carried->ids);
    if (output->end && says_not_here(carried, output->end)) {
        end = *output->end;
        snprintf(text, sizeof text, "its pool is gone, and no other pool could continue it: %.160s",
                 end.text);
        end.error = "worker_lost";
        end.text = text;
        other.end = &end;
    }
    carried->fn(carried->arg, &other);
}

/* What came with an end that is not the request's is told without it. */
static void tell_rest(struct carried *carried, const struct quern_output *output)
{
    struct quern_output rest = *output;
    rest.end = NULL;
    if (rest.n_ids > 0 || rest.text_len > 0)
        carried->fn(carried->arg, &rest);
}

/* The attempt has ended, and is freed. True if the request goes on elsewhere. */
static bool go_on(struct attempt *attempt, const struct quern_output *output)
{
    struct carried *carried = attempt->carried;
    const struct quern_end *end = output->end;
    carried->lost = end->lost > carried->lost ? end->lost : carried->lost;
    leave(attempt, carried->begun || output->embedding);
    const bool moved = is_for_others(carried, end) && may_move(carried) && move(carried);
    if (!moved)
        carried->attempt = NULL;
    free_attempt(attempt);
    return moved;
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct attempt *attempt = arg;
    struct carried *carried = attempt->carried;
    if (!carried) { /* dropped */
        if (output->end)
            free_attempt(attempt);
        return;
    }
    keep(carried, output);
    if (attempt->unread > 0 && (output->n_ids > 0 || output->text_len > 0))
        note_read(attempt);
    if (output->end && go_on(attempt, output)) {
        tell_rest(carried, output);
        return;
    }
    if (output->admitted && carried->admitted)
        return; /* told of the first pool */
    carried->admitted |= output->admitted != NULL;
    pass_on(carried, output);
}

int carry_send(struct fleet *fleet, struct carried *carried, const struct fleet_wish *wish,
               const struct fleet_pool *prefer, struct quern_encoded *encoded, const uint64_t *seed,
               quern_output_fn *fn, void *arg, struct quern_error *err)
{
    *carried = (struct carried){
        .fleet = fleet, .wish = *wish, .encoded = encoded, .fn = fn, .arg = arg, .sent_ns = clock_ns()};
    if (seed) {
        carried->has_seed = true;
        carried->seed = *seed;
    }
    if (fleet_is_many(fleet))
        return send_somewhere(carried, (struct fleet_pool *)prefer, err);
    return quern_generate_encoded(fleet->pools[0]->pool.client, encoded, seed, fn, arg, &carried->id, err);
}

void carry_cancel(struct carried *carried)
{
    carried->cancelled = true;
    if (!fleet_is_many(carried->fleet))
        quern_cancel(carried->fleet->pools[0]->pool.client, carried->id, NULL);
    else if (carried->attempt && carried->attempt->pool->pool.client)
        quern_cancel(carried->attempt->pool->pool.client, carried->attempt->id, NULL);
}

const struct fleet_pool *carry_pool(const struct carried *carried)
{
    return carried->attempt ? carried->attempt->pool : NULL;
}

/* ---- pools that are dead ---- */

/* Nobody wants it, and its pool does not say that it is over. */
static void end_here(struct attempt *attempt)
{
    struct carried *carried = attempt->carried;
    const struct quern_end end = {
        .reason = QUERN_CANCELLED, .error = "", .text = "", .stop = "", .limit = ""};
    leave(attempt, carried->begun);
    attempt->carried = NULL;
    carried->attempt = NULL;
    pass_on(carried, &(struct quern_output){.text = "", .end = &end});
}

/* It goes elsewhere, if it can; else it stays where it is, for its pool may come back. */
static void take_away(struct attempt *attempt)
{
    struct carried *carried = attempt->carried;
    if (carried->cancelled) {
        end_here(attempt);
        return;
    }
    if (clock_ns() < carried->again_ns || !may_move(carried) || !move(carried))
        return;
    leave(attempt, carried->begun);
    attempt->carried = NULL;
    quern_cancel(attempt->pool->pool.client, attempt->id, NULL);
}

/* Shortest prompts first, of those the newest: they wait for least. */
static int by_size(const void *a, const void *b)
{
    const struct attempt *const *x = a, *const *y = b;
    const double left = (*x)->carried->wish.tokens, right = (*y)->carried->wish.tokens;
    return left < right ? -1 : left > right;
}

static void take_all_away(struct fleet_pool *pool)
{
    size_t n = 0;
    struct attempt *attempt, **all = calloc(pool->n_requests + 1, sizeof *all);
    if (!all)
        return; /* at the next turn */
    DL_FOREACH(pool->attempts, attempt)
    {
        if (attempt->carried && n < pool->n_requests)
            all[n++] = attempt;
    }
    for (size_t i = 0; i < n / 2; i++) {
        struct attempt *other = all[i];
        all[i] = all[n - 1 - i];
        all[n - 1 - i] = other;
    }
    qsort(all, n, sizeof *all, by_size);
    for (size_t i = 0; i < n; i++)
        take_away(all[i]);
    free(all);
}

/* The pool's book has begun anew. What is there now may not be told yet. */
static void enter_again(struct fleet_pool *pool, uint64_t now)
{
    struct attempt *attempt;
    if (pool->entered_as == pool->in_book || now - pool->entered_ns < ENTER_NS)
        return;
    pool->entered_as = pool->in_book;
    if (pool->attempts)
        pool->entered_ns = now;
    DL_FOREACH(pool->attempts, attempt)
    {
        if (attempt->carried)
            enter_pieces(attempt);
    }
}

void carry_turn(struct fleet *fleet)
{
    const uint64_t now = clock_ns();
    for (size_t i = 0; i < fleet->n_pools; i++)
        enter_again(fleet->pools[i], now);
    for (size_t i = 0; fleet_is_many(fleet) && i < fleet->n_pools; i++)
        if (fleet->pools[i]->trust.dead && fleet->pools[i]->n_requests > 0 && fleet->pools[i]->pool.client)
            take_all_away(fleet->pools[i]);
}

void carry_end_all(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->n_pools; i++)
        while (fleet->pools[i]->attempts) {
            if (fleet->pools[i]->attempts->carried)
                end_here(fleet->pools[i]->attempts);
            free_attempt(fleet->pools[i]->attempts);
        }
}
