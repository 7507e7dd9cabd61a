/* SPDX-License-Identifier: MIT */
/* How well a fleet's gateways place requests: the gateway's own code before simulated pools.
 *
 * Conversations come at random times. Each is of a tenant, some much more often than others (Zipf), whose
 * system prompt it begins with, and has five turns on average, ten seconds apart. A pool reads prompts one
 * after the other, makes a token in 20 ms, and has a cache of whole pieces that forgets what was used longest
 * ago, the deepest piece first. Its broker has a book of the prompts that it was sent, which holds as many
 * pieces. Each turn comes by any of the gateways, by chance.
 *
 * `published`: each gateway knows the pools' loads as of 200 ms ago, their books as of a second ago, and what
 * it sent itself at once. `own`: the books only of what it sent itself. `ideal`: every gateway knows loads
 * and caches exactly and at once, and the same rule chooses. Hits are the tokens of prompts that were found
 * in the cache, work is what had to be read. The first third of the requests is not counted. `busy` is the
 * share of its time that a pool of the ideal reads; the last rows have slower pools, so that it is large.
 *
 * --check: the goals decide the exit status. --short: 8 pools and fewer requests. --delays: hits by how late
 * books and loads are. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/choose/prefixes.h"
#include "common/hash.h"
#include "common/heap.h"
#include "gateway/fleet/book.h"
#include "gateway/fleet/placing.h"
#include "gateway/fleet/wish.h"
#include "tests/bench/simulated.h"

#define GATEWAYS     8
#define MOST_POOLS   1000
#define CACHE_PIECES 2048 /* 131,072 tokens */
#define MOST_PIECES  512  /* of a prompt */
#define TURNS        5.0
#define PAUSE_S      10.0
#define TOKEN_S      0.02
#define MOST_CHANGES 4096 /* that are taken over at once */

enum knowledge { IDEAL, PUBLISHED, OWN };

struct setting {
    uint32_t pools;
    double rate;     /* requests a second and pool */
    double tokens_s; /* that a pool reads */
    enum knowledge knowledge;
    double load_delay, book_delay; /* s */
    uint32_t requests;
    uint64_t seed;
};

struct outcome {
    double hits; /* of the tokens of prompts */
    double imbalance;
    double busy;
    double p50, p99; /* s to the first token */
};

struct conversation {
    uint64_t name;
    uint32_t tenant;
    uint32_t said; /* tokens behind the system prompt */
};

struct turn {
    struct conversation conversation; /* with this turn and its answer said */
    uint32_t pool, gateway;
    double unread, decode, read; /* its parts of the load, as the gateway and as the pool count it */
    struct prompt_pieces *pieces;
};

enum event_kind { STARTS, COMES, READ, ENDS, PUBLISHES };

struct event {
    struct heap_node node;
    double at;
    enum event_kind kind;
    uint32_t pool;                    /* PUBLISHES */
    struct conversation conversation; /* COMES */
    struct turn *turn;                /* READ, ENDS */
};

struct pool {
    struct prefixes cache; /* what it has */
    struct prefixes book;  /* what its broker believes */
    uint64_t next_change;  /* that is not published yet */
    double busy_until, work;
    double load, load_of[GATEWAYS];
    uint64_t tick; /* when these were as follows */
    double told, told_of[GATEWAYS];
};

struct gateway {
    struct book book;
    double load[MOST_POOLS], recent[MOST_POOLS];
};

struct simulation {
    const struct setting *setting;
    uint64_t random;
    double now;
    struct heap events;
    struct pool pools[MOST_POOLS];
    struct gateway gateways[GATEWAYS];
    double *popular;  /* [n_tenants], cumulative */
    uint32_t *system; /* [n_tenants], tokens */
    uint32_t n_tenants;
    uint64_t n_conversations;
    uint32_t n_sent;
    double counted_from, prompt_tokens, hits;
    double *waits; /* [n_waits] */
    size_t n_waits;
};

static double draw(struct simulation *s)
{
    return simulated_draw(&s->random);
}

static double draw_exp(struct simulation *s, double mean)
{
    return -log(1 - draw(s)) * mean;
}

static uint32_t draw_tokens(struct simulation *s, uint32_t least, double more)
{
    return least + (uint32_t)draw_exp(s, more);
}

/* ---- events ---- */

static bool is_before(const struct heap_node *a, const struct heap_node *b)
{
    return HEAP_ITEM(a, const struct event, node)->at < HEAP_ITEM(b, const struct event, node)->at;
}

static void plan(struct simulation *s, struct event planned)
{
    struct event *event = simulated_memory(1, sizeof *event);
    *event = planned;
    if (heap_push(&s->events, &event->node) < 0)
        simulated_no_memory();
}

static struct event take_next(struct simulation *s)
{
    struct event *event = HEAP_ITEM(heap_first(&s->events), struct event, node);
    const struct event next = *event;
    heap_remove(&s->events, &event->node);
    free(event);
    return next;
}

/* ---- prompts ---- */

static uint32_t draw_tenant(struct simulation *s)
{
    const double at = draw(s) * s->popular[s->n_tenants - 1];
    uint32_t low = 0, high = s->n_tenants - 1;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (s->popular[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t tokens_of(const struct simulation *s, const struct conversation *conversation)
{
    return s->system[conversation->tenant] + conversation->said;
}

/* Whole pieces of the first `tokens`. */
static struct prompt_pieces *cut(const struct simulation *s, const struct conversation *conversation,
                                 uint32_t tokens)
{
    uint32_t n = tokens / PROMPT_PIECE_TOKENS;
    n = n < MOST_PIECES ? n : MOST_PIECES;
    struct prompt_pieces *pieces = simulated_memory(1, sizeof *pieces + n * sizeof *pieces->hashes);
    const uint32_t shared = s->system[conversation->tenant] / PROMPT_PIECE_TOKENS;
    for (pieces->n = 0; pieces->n < n; pieces->n++) {
        const bool own = pieces->n >= shared;
        const uint64_t of[] = {own, own ? conversation->name : conversation->tenant, pieces->n};
        pieces->hashes[pieces->n] = hash64(of, sizeof of, 1);
    }
    return pieces;
}

/* ---- what pools tell ---- */

/* Before the load of a pool is read or changes. */
static void tell_load(struct simulation *s, struct pool *pool)
{
    const double delay = s->setting->load_delay;
    const uint64_t tick = delay > 0 ? (uint64_t)(s->now / delay) : 0;
    if (delay > 0 && tick <= pool->tick)
        return;
    pool->tick = tick;
    pool->told = pool->load;
    memcpy(pool->told_of, pool->load_of, sizeof pool->told_of);
}

static void change_load(struct simulation *s, const struct turn *turn, double tokens)
{
    struct pool *pool = &s->pools[turn->pool];
    tell_load(s, pool);
    pool->load += tokens;
    pool->load_of[turn->gateway] += tokens;
}

static void publish(struct simulation *s, uint32_t index)
{
    static uint64_t added[MOST_CHANGES], dropped[MOST_CHANGES];
    struct pool *pool = &s->pools[index];
    struct prefixes_delta delta = {.added = added, .dropped = dropped};
    while (pool->next_change < pool->book.next_change) {
        pool->next_change = prefixes_changes(&pool->book, pool->next_change, MOST_CHANGES, &delta);
        for (int g = 0; g < GATEWAYS; g++) {
            book_note(&s->gateways[g].book, added, delta.n_added, index + 1);
            book_strike(&s->gateways[g].book, dropped, delta.n_dropped, index + 1);
        }
    }
}

static void let_publish(struct simulation *s, uint32_t index, double after)
{
    plan(s, (struct event){.at = s->now + after, .kind = PUBLISHES, .pool = index});
}

/* ---- placing ---- */

static uint32_t choose(struct simulation *s, struct gateway *gateway, const struct prompt_pieces *pieces,
                       double tokens, uint32_t *ret_overlap)
{
    static struct placing_pool views[MOST_POOLS];
    static uint32_t numbers[MOST_POOLS], overlaps[MOST_POOLS];
    const uint32_t n = s->setting->pools;
    const bool ideal = s->setting->knowledge == IDEAL;
    for (uint32_t p = 0; p < n; p++)
        numbers[p] = p + 1;
    if (!ideal)
        book_find(&gateway->book, pieces, numbers, n, overlaps);
    for (uint32_t p = 0; p < n; p++) {
        struct pool *pool = &s->pools[p];
        tell_load(s, pool);
        if (ideal)
            prefixes_find(&pool->cache, pieces, 1, &overlaps[p]);
        const double others = pool->told - pool->told_of[gateway - s->gateways];
        views[p] = (struct placing_pool){.load = ideal ? pool->load : gateway->load[p] + others,
                                         .recent = gateway->recent[p],
                                         .overlap = (double)overlaps[p] * PROMPT_PIECE_TOKENS};
    }
    const uint32_t chosen = (uint32_t)placing_choose(views, n, tokens);
    *ret_overlap = overlaps[chosen];
    return chosen;
}

static void note_recent(struct simulation *s, struct gateway *gateway, uint32_t pool, double tokens)
{
    gateway->recent[pool] += tokens;
    for (uint32_t p = 0; gateway->recent[pool] > PLACING_RECENT_TOKENS && p < s->setting->pools; p++)
        gateway->recent[p] /= 2;
}

/* Whose books the gateway has: with all knowledge they are the same. */
static struct gateway *gateway_of(struct simulation *s, uint32_t index)
{
    return &s->gateways[s->setting->knowledge == IDEAL ? 0 : index];
}

static void count(struct simulation *s, double tokens, double cached, double waited)
{
    if (s->counted_from < 0)
        return;
    s->prompt_tokens += tokens;
    s->hits += cached;
    s->waits[s->n_waits++] = waited;
}

/* The pool begins with a turn, at once or behind others. */
static void give(struct simulation *s, struct turn *turn, uint32_t tokens, uint32_t made)
{
    struct pool *pool = &s->pools[turn->pool];
    uint32_t had;
    prefixes_find(&pool->cache, turn->pieces, 1, &had);
    const double cached = (double)had * PROMPT_PIECE_TOKENS;
    prefixes_add(&pool->cache, turn->pieces, 0);
    prefixes_add(&pool->book, turn->pieces, 0);
    turn->read = tokens - cached;
    change_load(s, turn, turn->read + turn->decode);
    const double from = pool->busy_until > s->now ? pool->busy_until : s->now;
    pool->busy_until = from + turn->read / s->setting->tokens_s;
    if (s->counted_from >= 0)
        pool->work += turn->read;
    count(s, tokens, cached, pool->busy_until - s->now);
    plan(s, (struct event){.at = pool->busy_until, .kind = READ, .turn = turn});
    plan(s, (struct event){.at = pool->busy_until + made * TOKEN_S, .kind = ENDS, .turn = turn});
}

static void arrive(struct simulation *s, struct conversation conversation)
{
    struct turn *turn = simulated_memory(1, sizeof *turn);
    if (++s->n_sent == s->setting->requests / 3)
        s->counted_from = s->now;
    conversation.said += draw_tokens(s, 20, 180);
    const uint32_t tokens = tokens_of(s, &conversation), made = draw_tokens(s, 20, 200);
    turn->pieces = cut(s, &conversation, tokens);
    turn->gateway = (uint32_t)(draw(s) * GATEWAYS);
    struct gateway *gateway = gateway_of(s, turn->gateway);
    uint32_t overlap;
    turn->pool = choose(s, gateway, turn->pieces, tokens, &overlap);
    if (s->setting->knowledge != IDEAL)
        book_add(&gateway->book, turn->pieces, turn->pool + 1);
    turn->unread = tokens - fmin(tokens, (double)overlap * PROMPT_PIECE_TOKENS);
    turn->decode = WISH_DECODE_TOKENS;
    gateway->load[turn->pool] += turn->unread + turn->decode;
    conversation.said += made;
    turn->conversation = conversation;
    give(s, turn, tokens, made);
}

static void note_read(struct simulation *s, const struct turn *turn)
{
    struct gateway *gateway = gateway_of(s, turn->gateway);
    change_load(s, turn, -turn->read);
    gateway->load[turn->pool] -= turn->unread;
    note_recent(s, gateway, turn->pool, turn->unread);
}

/* The cache has the answer too, of which the broker knows nothing. */
static void end(struct simulation *s, struct turn *turn)
{
    struct gateway *gateway = gateway_of(s, turn->gateway);
    change_load(s, turn, -turn->decode);
    gateway->load[turn->pool] -= turn->decode;
    note_recent(s, gateway, turn->pool, turn->decode);
    struct prompt_pieces *all = cut(s, &turn->conversation, tokens_of(s, &turn->conversation));
    prefixes_add(&s->pools[turn->pool].cache, all, 0);
    free(all);
    if (draw(s) < 1 - 1 / TURNS && tokens_of(s, &turn->conversation) < MOST_PIECES * PROMPT_PIECE_TOKENS / 2)
        plan(s, (struct event){
                    .at = s->now + draw_exp(s, PAUSE_S), .kind = COMES, .conversation = turn->conversation});
    free(turn->pieces);
    free(turn);
}

static void start(struct simulation *s)
{
    const double apart = TURNS / (s->setting->rate * s->setting->pools);
    const struct conversation conversation = {.name = ++s->n_conversations, .tenant = draw_tenant(s)};
    arrive(s, conversation);
    plan(s, (struct event){.at = s->now + draw_exp(s, apart), .kind = STARTS});
}

static void happen(struct simulation *s, const struct event *event)
{
    s->now = event->at;
    switch (event->kind) {
    case STARTS:
        start(s);
        break;
    case COMES:
        arrive(s, event->conversation);
        break;
    case READ:
        note_read(s, event->turn);
        break;
    case ENDS:
        end(s, event->turn);
        break;
    case PUBLISHES:
        publish(s, event->pool);
        let_publish(s, event->pool, s->setting->book_delay);
        break;
    }
}

/* ---- a run ---- */

static struct simulation *begin(const struct setting *setting)
{
    struct simulation *s = simulated_memory(1, sizeof *s);
    s->setting = setting;
    s->events.before = is_before;
    s->random = 88172645463325252u + setting->seed * 7919;
    s->counted_from = -1;
    s->waits = simulated_memory(setting->requests, sizeof *s->waits);
    s->n_tenants = 4 * setting->pools + 100;
    s->popular = simulated_memory(s->n_tenants, sizeof *s->popular);
    s->system = simulated_memory(s->n_tenants, sizeof *s->system);
    double sum = 0;
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        s->popular[i] = sum += 1.0 / (i + 1);
        s->system[i] = draw_tokens(s, 256, 1024);
    }
    for (uint32_t p = 0; p < setting->pools; p++) {
        struct pool *pool = &s->pools[p];
        if (prefixes_init(&pool->cache, CACHE_PIECES) < 0 || prefixes_init(&pool->book, CACHE_PIECES) < 0 ||
            prefixes_publish(&pool->book) < 0)
            simulated_no_memory();
        pool->next_change = pool->book.next_change;
        if (setting->knowledge == PUBLISHED)
            let_publish(s, p, draw(s) * setting->book_delay);
    }
    plan(s, (struct event){.kind = STARTS});
    return s;
}

static void finish(struct simulation *s)
{
    for (uint32_t p = 0; p < s->setting->pools; p++) {
        prefixes_deinit(&s->pools[p].cache);
        prefixes_deinit(&s->pools[p].book);
    }
    for (int g = 0; g < GATEWAYS; g++)
        book_deinit(&s->gateways[g].book);
    while (heap_first(&s->events)) {
        const struct event left = take_next(s);
        if (left.kind == ENDS) {
            free(left.turn->pieces);
            free(left.turn);
        }
    }
    heap_deinit(&s->events);
    free(s->waits);
    free(s->popular);
    free(s->system);
    free(s);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct outcome simulate(const struct setting *setting)
{
    struct simulation *s = begin(setting);
    while (s->n_sent < setting->requests) {
        const struct event event = take_next(s);
        happen(s, &event);
    }
    double most = 0, sum = 0;
    for (uint32_t p = 0; p < setting->pools; p++) {
        most = fmax(most, s->pools[p].work);
        sum += s->pools[p].work;
    }
    qsort(s->waits, s->n_waits, sizeof *s->waits, by_size);
    const double mean = sum / setting->pools;
    const struct outcome outcome = {.hits = s->hits / s->prompt_tokens,
                                    .imbalance = most / mean,
                                    .busy = mean / setting->tokens_s / (s->now - s->counted_from),
                                    .p50 = s->waits[s->n_waits / 2],
                                    .p99 = s->waits[s->n_waits * 99 / 100]};
    finish(s);
    return outcome;
}

/* ---- the table ---- */

static const struct {
    uint32_t pools, requests;
} sizes[] = {{8, 40000}, {64, 120000}, {1000, 400000}};
#define N_SIZES (sizeof sizes / sizeof *sizes)

static const struct row {
    const char *name;
    double rate, tokens_s[N_SIZES];
    double goal_hits, goal_imbalance; /* 0: none */
} rows[] = {
    {"moderate", 3, {4000, 4000, 4000}, 0.98, 0},
    {"near saturation", 4.5, {4000, 4000, 4000}, 0.93, 0},
    {"busy", 3, {1600, 1250, 1000}, 0.93, 1.25},
};

static struct outcome run(const struct row *row, size_t size, enum knowledge knowledge, uint32_t requests)
{
    const bool late = knowledge != IDEAL;
    const struct setting setting = {
        sizes[size].pools, row->rate, row->tokens_s[size], knowledge, late ? 0.2 : 0, late ? 1 : 0,
        requests,          1};
    return simulate(&setting);
}

/* True if a goal is missed. */
static bool print_row(const struct row *row, size_t size, uint32_t requests)
{
    const struct outcome ideal = run(row, size, IDEAL, requests);
    const struct outcome published = run(row, size, PUBLISHED, requests);
    const struct outcome own = run(row, size, OWN, requests);
    const double hits = published.hits / ideal.hits;
    const bool missed =
        hits < row->goal_hits || (row->goal_imbalance > 0 && published.imbalance > row->goal_imbalance);
    printf("%-15s %5u %4.1f %4.0f%% %6.3f  %6.3f %5.2f %6.2f %6.2f   %6.3f %5.2f %6.2f   %5.2f %6.2f%s\n",
           row->name, sizes[size].pools, row->rate, ideal.busy * 100, ideal.hits, hits, published.imbalance,
           published.p50, published.p99, own.hits / ideal.hits, own.imbalance, own.p99, ideal.imbalance,
           ideal.p99, missed ? "  missed" : "");
    fflush(stdout);
    return missed;
}

static int print_table(bool brief)
{
    int missed = 0;
    printf(
        "%-15s %5s %4s %5s %6s  %-26s   %-20s   %s\n%-15s %5s %4s %5s %6s  %6s %5s %6s %6s   %6s %5s %6s   "
        "%5s %6s\n",
        "", "", "", "", "ideal", "published", "own", "ideal", "", "pools", "rate", "busy", "hits", "hits",
        "most", "p50 s", "p99 s", "hits", "most", "p99 s", "most", "p99 s");
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t i = 0; i < (brief ? 1 : N_SIZES); i++)
            missed += print_row(&rows[r], i, brief ? sizes[i].requests / 4 : sizes[i].requests);
    return missed;
}

static void print_delays(void)
{
    static const double delays[][2] = {{0, 0.001}, {0.05, 0.2}, {0.2, 0.2}, {0.2, 1},
                                       {0.2, 2},   {0.2, 5},    {1, 1}};
    const struct outcome ideal = run(&rows[0], 1, IDEAL, 60000);
    printf("64 pools, 3 requests a second each: hits / ideal by the delays of loads and of books, in s\n");
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        const struct setting setting = {64, 3, 4000, PUBLISHED, delays[i][0], delays[i][1], 60000, 1};
        printf("%5.2f %5.2f  %6.3f\n", delays[i][0], delays[i][1], simulate(&setting).hits / ideal.hits);
    }
}

int main(int argc, char **argv)
{
    bool check = false, brief = false, delays = false;
    for (int i = 1; i < argc; i++) {
        check |= strcmp(argv[i], "--check") == 0;
        brief |= strcmp(argv[i], "--short") == 0;
        delays |= strcmp(argv[i], "--delays") == 0;
    }
    if (argc > 1 && !check && !brief && !delays) {
        fprintf(stderr, "Usage: %s [--check] [--short] [--delays]\n", argv[0]);
        return 2;
    }
    if (delays) {
        print_delays();
        return 0;
    }
    const int missed = print_table(brief);
    return check && missed > 0;
}
