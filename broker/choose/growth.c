/* SPDX-License-Identifier: MIT */
/* Credit.
 *
 *     queued ──growth_start──▶ started ◀──credit──▶ waiting for credit
 *                                 └────────growth_left────────┘
 *
 * Of what may be reserved for started requests (all but the eighth for the queue), `free` is what they do not
 * have. Two conditions hold after everything that is given to any but the oldest:
 *
 *     free ≥ what the oldest may still need
 *     free + what the oldest has ≥ the most that any may still need
 *
 * What the oldest itself is given changes neither. When it has ended, the second is the first for the next
 * oldest. A newcomer is the youngest, whatever its priority, so it finds them as they are. Where they do not
 * hold, because ids took more bytes than reckoned or another broker had a larger journal, the oldest is given
 * its credit beyond the limit: the memory behind has room for that (vault.h).
 *
 * Unread answers count as taken for all but the oldest, up to half of the journal. */

#include "broker/choose/growth.h"

#include <utlist.h>

#define HORIZON_PART 4 /* of what is free to each: given ahead */

static struct request *of_age(const struct heap_node *node)
{
    return node ? HEAP_ITEM(node, struct request, growth.age) : NULL;
}

static struct request *of_need(const struct heap_node *node)
{
    return node ? HEAP_ITEM(node, struct request, growth.need) : NULL;
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t at_least(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Bytes that it may need beside those it has. */
static uint64_t need_of(const struct request *request)
{
    const struct growth_claim *claim = &request->growth;
    return claim->most > claim->credit ? (claim->most - claim->credit) * claim->token_bytes : 0;
}

static bool is_older(const struct heap_node *a, const struct heap_node *b)
{
    return of_age(a)->growth.order < of_age(b)->growth.order;
}

static bool needs_more(const struct heap_node *a, const struct heap_node *b)
{
    return need_of(of_need(a)) > need_of(of_need(b));
}

void growth_init(struct growth *growth, struct journal *journal, struct ledger *ledger,
                 struct admission *admission)
{
    *growth = (struct growth){.journal = journal,
                              .ledger = ledger,
                              .admission = admission,
                              .started.before = is_older,
                              .needs.before = needs_more};
}

void growth_deinit(struct growth *growth)
{
    heap_deinit(&growth->started);
    heap_deinit(&growth->needs);
}

uint64_t growth_most_ids(const struct journal *journal, uint32_t token_bytes)
{
    uint64_t ids = journal_most_of_one(journal) / token_bytes;
    return ids > 0 ? ids : 1;
}

void growth_follow(struct growth *growth, const struct worker *workers, uint32_t n, uint64_t room)
{
    const uint64_t token_bytes = journal_token_bytes(0, false);
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < n; i++)
        tokens += at_most((uint64_t)workers[i].slots * workers[i].context, room / token_bytes + 1);
    const uint64_t wanted = at_most(at_least(tokens * token_bytes, JOURNAL_LIMIT_BYTES), room);
    growth->journal->limit = at_least(growth->journal->limit, wanted);
}

void growth_plan(struct request *request, uint64_t most, uint32_t token_bytes)
{
    request->growth = (struct growth_claim){.most = most, .token_bytes = token_bytes, .ask_at = UINT64_MAX};
}

/* ---- what is free ---- */

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* For started requests, in the last resort at the cost of every answer that ended. */
static uint64_t free_at_worst(const struct growth *growth)
{
    const struct journal *journal = growth->journal;
    uint64_t started = journal->used - journal->settled - growth->admission->waiting_bytes;
    return minus(journal->limit - journal->limit / ADMISSION_JOURNAL_PART, started);
}

/* The same without what is unread, as far as that is kept for its readers. */
static uint64_t free_now(const struct growth *growth)
{
    const struct journal *journal = growth->journal;
    uint64_t kept = journal->limit / JOURNAL_UNREAD_PART;
    return minus(free_at_worst(growth), journal->unread < kept ? journal->unread : kept);
}

/* Whether a younger one may have so many bytes, after which it may still need `need`. */
static bool leaves_enough(const struct growth *growth, uint64_t cost, uint64_t need)
{
    const struct request *oldest = of_age(heap_first(&growth->started));
    uint64_t worst = need_of(of_need(heap_first(&growth->needs)));
    uint64_t left = minus(free_at_worst(growth), cost);
    if (need > worst)
        worst = need;
    return cost <= free_now(growth) && left >= need_of(oldest) &&
           left + journal_charge(&oldest->log) >= worst;
}

/* ---- credit ---- */

/* The mean of what its ids took so far, if that is more than what was reckoned. */
static void learn(struct growth *growth, struct request *request)
{
    struct growth_claim *claim = &request->growth;
    const struct journal_log *log = &request->log;
    uint64_t mean = journal_made(log) >= GROWTH_LEAST_IDS ? journal_written(log) / journal_made(log) : 0;
    if (mean <= claim->token_bytes)
        return;
    claim->token_bytes = mean < UINT32_MAX ? (uint32_t)mean : UINT32_MAX;
    heap_settle(&growth->needs, &claim->need);
}

/* What its log has to be promised for so many ids in all. */
static uint64_t reservation(const struct request *request, uint64_t credit)
{
    uint64_t ahead = minus(credit, request->log.count) * request->growth.token_bytes;
    return journal_reservation(&request->log, journal_start_bytes(request_overhead()), ahead);
}

/* More is asked for when half of what is ahead is made. */
static void set_ask_at(struct request *request)
{
    struct growth_claim *claim = &request->growth;
    uint64_t ahead = minus(claim->credit, request->log.count);
    claim->ask_at = claim->credit < claim->most ? request->log.count + (ahead + 1) / 2 : UINT64_MAX;
}

/* Whether a younger one gets so many bytes more, after which it may still need `need`: 0 or why not. */
static int may_have(const struct growth *growth, const struct request *request, uint64_t cost, uint64_t need)
{
    if (of_age(heap_first(&growth->started)) == request)
        return 0;
    if (!leaves_enough(growth, cost, need))
        return GROWTH_E_FULL;
    return admission_may_grow(growth->admission, request, cost, free_now(growth)) ? 0 : GROWTH_E_SHARE;
}

/* Gives credit for `target` ids in all. */
static int give(struct growth *growth, struct request *request, uint64_t target)
{
    struct growth_claim *claim = &request->growth;
    const struct journal *journal = growth->journal;
    uint64_t reserved = reservation(request, target);
    uint64_t cost = minus(reserved, journal_charge(&request->log));
    int r = may_have(growth, request, cost, (claim->most - target) * claim->token_bytes);
    if (r != 0)
        return r;
    bool is_oldest = of_age(heap_first(&growth->started)) == request;
    uint64_t for_queue = minus(journal->limit / ADMISSION_JOURNAL_PART, growth->admission->waiting_bytes);
    ledger_make_room(growth->ledger, growth->journal, cost + (is_oldest ? for_queue : 0), is_oldest);
    admission_grows(request, (int64_t)reserved - (int64_t)request->log.reserved);
    journal_extend(growth->journal, &request->log, reserved);
    claim->credit = target;
    heap_settle(&growth->needs, &claim->need);
    set_ask_at(request);
    return 0;
}

/* As far ahead as is fair, or as little as makes sense. */
static int give_some(struct growth *growth, struct request *request)
{
    struct growth_claim *claim = &request->growth;
    uint64_t count = request->log.count;
    uint64_t each = free_now(growth) / HORIZON_PART / growth->started.n / claim->token_bytes;
    uint64_t far = at_most(claim->most, count + at_most(each, GROWTH_MOST_IDS));
    uint64_t near = at_most(claim->most, count + GROWTH_LEAST_IDS);
    int r = far > near && far > claim->credit ? give(growth, request, far) : GROWTH_E_FULL;
    if (r != 0 && near > claim->credit)
        return give(growth, request, near);
    if (r != 0) /* it has as much ahead */
        set_ask_at(request);
    return 0;
}

/* ---- who waits ---- */

/* Why it waits, which may change while it does; 0: it does not. */
static void wait_for(struct growth *growth, struct growth_claim *claim, int why)
{
    growth->n_full -= claim->waits == GROWTH_E_FULL;
    growth->n_full += why == GROWTH_E_FULL;
    claim->waits = (uint8_t)why;
}

static void wait_no_more(struct growth *growth, struct request *request)
{
    struct growth_claim *claim = &request->growth;
    if (!claim->waits)
        return;
    DL_DELETE2(growth->waiting, request, growth.prev, growth.next);
    growth->n_waiting--;
    wait_for(growth, claim, 0);
    if (request->worker)
        request->worker->n_waiting--;
}

/* In its place by age: from the back, for the youngest come last. */
static void wait(struct growth *growth, struct request *request, int why)
{
    struct growth_claim *claim = &request->growth;
    wait_no_more(growth, request);
    struct request *at = growth->waiting ? growth->waiting->growth.prev : NULL;
    while (at && at->growth.order > claim->order)
        at = at == growth->waiting ? NULL : at->growth.prev;
    if (at)
        DL_APPEND_ELEM2(growth->waiting, at, request, growth.prev, growth.next);
    else
        DL_PREPEND2(growth->waiting, request, growth.prev, growth.next);
    wait_for(growth, claim, why);
    growth->n_waiting++;
    claim->ask_at = UINT64_MAX;
    if (request->worker)
        request->worker->n_waiting++;
}

bool growth_ask(struct growth *growth, struct request *request)
{
    uint64_t before = request->growth.credit;
    learn(growth, request);
    int r = give_some(growth, request);
    if (r == 0)
        wait_no_more(growth, request);
    else
        wait(growth, request, r);
    return request->growth.credit > before;
}

void growth_retry(struct growth *growth, void (*credited)(void *arg, struct request *request), void *arg)
{
    struct request *request, *next;
    DL_FOREACH_SAFE2(growth->waiting, request, next, growth.next)
    {
        int r = give_some(growth, request);
        if (r != 0)
            wait_for(growth, &request->growth, r);
        if (r == GROWTH_E_FULL)
            break; /* whoever is younger waits behind it */
        if (r != 0)
            continue;
        wait_no_more(growth, request);
        credited(arg, request);
    }
}

/* ---- from the start to the end ---- */

static int enter(struct growth *growth, struct request *request)
{
    struct growth_claim *claim = &request->growth;
    claim->order = growth->order + 1;
    int r = heap_push(&growth->started, &claim->age);
    if (r == 0 && (r = heap_push(&growth->needs, &claim->need)) < 0)
        heap_remove(&growth->started, &claim->age);
    if (r == 0)
        growth->order++;
    else
        claim->order = 0;
    return r;
}

int growth_start(struct growth *growth, struct request *request)
{
    if (request->growth.order != 0)
        return 0;
    if (growth->n_full > 0)
        return GROWTH_E_FULL;
    int r = enter(growth, request);
    if (r == 0 && (r = give_some(growth, request)) != 0)
        growth_left(growth, request);
    return r;
}

void growth_withdraw(struct growth *growth, struct request *request)
{
    uint64_t reserved = journal_start_bytes(request_overhead());
    growth_left(growth, request);
    admission_grows(request, -(int64_t)(request->log.reserved - reserved));
    journal_extend(growth->journal, &request->log, reserved);
    request->growth.credit = 0;
}

int growth_restore(struct growth *growth, struct request *request, uint64_t credit)
{
    struct growth_claim *claim = &request->growth;
    claim->credit = at_least(credit, request->log.count);
    claim->most = at_least(claim->most, claim->credit);
    int r = enter(growth, request);
    if (r < 0)
        return r;
    uint64_t reserved = reservation(request, claim->credit);
    admission_grows(request, (int64_t)reserved - (int64_t)request->log.reserved);
    journal_extend(growth->journal, &request->log, reserved);
    set_ask_at(request);
    if (growth_is_due(request)) /* it makes nothing more by which it could ask */
        wait(growth, request, GROWTH_E_SHARE);
    return 0;
}

void growth_left(struct growth *growth, struct request *request)
{
    struct growth_claim *claim = &request->growth;
    if (claim->order == 0)
        return;
    wait_no_more(growth, request);
    heap_remove(&growth->started, &claim->age);
    heap_remove(&growth->needs, &claim->need);
    claim->order = 0;
    claim->ask_at = UINT64_MAX;
}
