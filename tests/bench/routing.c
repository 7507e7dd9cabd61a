/* SPDX-License-Identifier: MIT */
/* How well requests are routed: the broker's own code before simulated workers.
 *
 * Time is counted in tokens that a worker reads. A worker reads prompts one after the other; a token that it
 * makes takes a quarter of one's time, since it makes many at once, and an answer runs for as many units as
 * it has tokens. Its cache has whole blocks of 32 ids and forgets what was used longest ago. Requests come at
 * random times; what nobody has room for waits in order.
 *
 * Three kinds of load. `chat`: conversations of up to 12 turns over 40 prompts of 512 ids, some asked for
 * much more often (Zipf). `documents`: of 6,016 ids each, with four questions about each, one after the
 * other. `one`: 2,048 ids with which every request begins.
 *
 * Hits and waits are counted from the second third of the requests on, when the beginnings are where they are
 * asked for, and work from the first on. The ideal that hits are compared with has one cache for all workers,
 * which forgets nothing. Load is that of a pool which finds as much as the ideal. Beside the broker's rule
 * the table has the one that looks at load alone.
 *
 * With --check the goals decide the exit status. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/choose/admission.h"
#include "broker/choose/routing.h"
#include "proto/message.h"
#include "tests/bench/simulated.h"

#include <uthash.h>

#define SLOTS       32
#define BLOCK       32
#define TURN        96  /* ids of a question */
#define MADE_LEAST  32  /* of an answer */
#define MADE_MORE   192 /* at most so many more */
#define MOST_PROMPT 16384
#define REQUESTS    6000 /* and as many again for each 16 workers */
#define CACHE_IDS   (1u << 18)

enum kind { CHAT, DOCUMENTS, ONE, N_KINDS };

static const struct workload {
    const char *name;
    unsigned n_prompts;  /* beginnings that are asked for again and again; 0: each story has its own */
    uint32_t prompt_ids; /* of each */
    unsigned turns_least, turns_more;
    bool grows;     /* a turn has what was said before it */
    uint32_t pause; /* between turns: mean, in units of time */
} workloads[N_KINDS] = {
    [CHAT] = {"chat", 40, 512, 1, 12, true, 6000},
    [DOCUMENTS] = {"documents", 0, 6016, 4, 1, false, 6000},
    [ONE] = {"one", 1, 2048, 1, 1, false, 0},
};

/* What a worker's cache has: of each beginning, so many ids. */
struct cached {
    uint64_t name;
    uint32_t ids;
    uint64_t used;
    UT_hash_handle hh;
};

struct model {
    struct cached *cached;
    uint64_t ids;
    double busy_until;
    double work;
};

struct story { /* a conversation, or the questions about a document */
    uint64_t name;
    unsigned prompt;
    unsigned turns_left;
    uint32_t said; /* ids behind the prompt */
    double next;   /* when its next turn comes */
};

struct alive {
    struct request request;
    struct story *story; /* NULL: it was its last turn */
    double came, first_token, end;
    struct usage usage;
    struct alive *next; /* that wait */
};

struct simulation {
    const struct workload *workload;
    bool by_load; /* no prefix is looked at */
    uint32_t n;
    uint64_t random;
    struct worker workers[WORKER_MAX];
    struct model models[WORKER_MAX];
    struct routing routing;
    struct alive **alive; /* [n_alive] */
    size_t n_alive;
    struct alive *waiting, **last_waiting;
    struct story **stories; /* [n_stories] that go on */
    size_t n_stories;
    uint64_t n_named, uses;
    uint64_t hits, ideal_hits;
    bool seen[64];
    double waited;
    unsigned n_sent, n_counted;
};

static double draw(struct simulation *s)
{
    return simulated_draw(&s->random);
}

static unsigned draw_below(struct simulation *s, unsigned n)
{
    return (unsigned)(draw(s) * n);
}

/* Zipf: the k-th has a share of 1/k. */
static unsigned draw_prompt(struct simulation *s, unsigned n)
{
    double sum = 0, at = draw(s);
    for (unsigned k = 1; k <= n; k++)
        sum += 1.0 / k;
    for (unsigned k = 1; k < n; k++)
        if ((at -= 1.0 / k / sum) < 0)
            return k - 1;
    return n > 0 ? n - 1 : 0;
}

/* ---- a worker's cache ---- */

#define PROMPT_NAME(prompt) ((uint64_t)(prompt) + 1)
#define STORY_NAME(story)   ((story)->name + 1000)

static struct cached *find_cached(const struct model *model, uint64_t name)
{
    struct cached *found;
    HASH_FIND(hh, model->cached, &name, sizeof name, found);
    return found;
}

static void keep(struct simulation *s, struct model *model, uint64_t name, uint32_t ids)
{
    struct cached *cached = find_cached(model, name);
    if (!cached) {
        cached = simulated_memory(1, sizeof *cached);
        cached->name = name;
        HASH_ADD(hh, model->cached, name, sizeof name, cached);
    }
    if (ids > cached->ids) {
        model->ids += ids - cached->ids;
        cached->ids = ids;
    }
    cached->used = ++s->uses;
    while (model->ids > CACHE_IDS) {
        struct cached *at, *next, *oldest = NULL;
        HASH_ITER(hh, model->cached, at, next)
        {
            if (!oldest || at->used < oldest->used)
                oldest = at;
        }
        model->ids -= oldest->ids;
        HASH_DELETE(hh, model->cached, oldest);
        free(oldest);
    }
}

static void forget_all(struct model *model)
{
    struct cached *at, *next;
    HASH_ITER(hh, model->cached, at, next)
    {
        HASH_DELETE(hh, model->cached, at);
        free(at);
    }
}

/* ---- requests ---- */

/* The ids of a turn: the prompt's, then the story's. */
static uint32_t write_ids(const struct workload *workload, const struct story *story, int32_t *ret_ids)
{
    uint64_t prompt = workload->n_prompts > 0 ? story->prompt : story->name;
    uint32_t n = 0, all = workload->prompt_ids + story->said + TURN;
    for (; n < workload->prompt_ids; n++)
        ret_ids[n] = (int32_t)((prompt * 2654435761u + n) & INT32_MAX);
    for (; n < all; n++)
        ret_ids[n] =
            (int32_t)((story->name * 40503u + story->turns_left * (n >= all - TURN) * 77 + n) & INT32_MAX);
    return n;
}

/* What the worker finds of it, and has of it from then on. */
static uint32_t look_up(struct simulation *s, struct model *model, const struct story *story, uint32_t n_ids,
                        uint32_t made)
{
    const struct workload *workload = s->workload;
    bool own = workload->n_prompts == 0;
    const struct cached *prompt = find_cached(model, own ? STORY_NAME(story) : PROMPT_NAME(story->prompt));
    const struct cached *said = own ? NULL : find_cached(model, STORY_NAME(story));
    uint32_t found = prompt ? prompt->ids : 0;
    if (said && found >= workload->prompt_ids)
        found += said->ids;
    keep(s, model, own ? STORY_NAME(story) : PROMPT_NAME(story->prompt), workload->prompt_ids);
    if (workload->grows)
        keep(s, model, STORY_NAME(story), n_ids - workload->prompt_ids + made);
    uint32_t most = workload->prompt_ids + story->said;
    found = found < most ? found : most;
    return found / BLOCK * BLOCK;
}

/* What one cache for all would have found. */
static uint32_t ideal(struct simulation *s, const struct story *story, bool first)
{
    const struct workload *workload = s->workload;
    bool seen = workload->n_prompts > 0 ? s->seen[story->prompt] : !first;
    s->seen[story->prompt] = true;
    uint32_t found = (seen || !first ? workload->prompt_ids : 0) + (first ? 0 : story->said);
    return found / BLOCK * BLOCK;
}

static void give(struct simulation *s, struct alive *alive, struct worker *worker, double now)
{
    struct model *model = &s->models[worker->index];
    const uint32_t made = alive->usage.output_tokens, n = alive->usage.prompt_tokens;
    struct story *story = alive->story;
    routing_assigned(&s->routing, &alive->request, worker);
    uint32_t cached = look_up(s, model, story, n, made), read = n - cached;
    alive->usage.cached_tokens = cached;
    alive->first_token = (model->busy_until > now ? model->busy_until : now) + read;
    alive->end = alive->first_token + made;
    model->busy_until = alive->first_token + made / 4.0;
    model->work += read + made / 4.0;
    s->hits += cached;
    s->waited += alive->first_token - alive->came;
    s->alive[s->n_alive++] = alive;
    /* What comes of the story next. */
    story->said += s->workload->grows ? TURN + made : 0;
    if (--story->turns_left == 0 || s->workload->prompt_ids + story->said + TURN > MOST_PROMPT) {
        free(story);
    } else {
        story->next = alive->end + -log(1 - draw(s)) * s->workload->pause;
        s->stories[s->n_stories++] = story;
    }
}

static bool dispatch(struct simulation *s, struct alive *alive, double now)
{
    static const struct scheduler_wish any = {.bytes = 1};
    struct worker *worker;
    if (routing_choose(&s->routing, &any, &alive->request, &worker) != 0)
        return false;
    give(s, alive, worker, now);
    return true;
}

static void arrive(struct simulation *s, struct story *story, bool first, double now)
{
    static int32_t ids[MOST_PROMPT];
    struct alive *alive = simulated_memory(1, sizeof *alive);
    struct generation generation;
    generation_defaults(&generation);
    generation.prompt.form = PROMPT_IDS;
    uint32_t n = write_ids(s->workload, story, ids);
    generation.prompt.ids = (struct id_list){ids, n};
    admission_fix(&alive->request, &generation, 0, 0);
    if (!s->by_load)
        routing_admit(&s->routing, &alive->request, &generation);
    alive->story = story;
    alive->came = now;
    alive->usage = (struct usage){.prompt_tokens = n, .output_tokens = MADE_LEAST + draw_below(s, MADE_MORE)};
    s->ideal_hits += ideal(s, story, first);
    s->n_sent++;
    s->n_counted++;
    if (s->waiting || !dispatch(s, alive, now)) {
        *s->last_waiting = alive;
        s->last_waiting = &alive->next;
    }
}

static void dispatch_waiting(struct simulation *s, double now)
{
    while (s->waiting) {
        struct alive *first = s->waiting, *second = first->next;
        if (!dispatch(s, first, now))
            return;
        s->waiting = second;
        if (!second)
            s->last_waiting = &s->waiting;
    }
}

/* The next first token or end before a time, in order; false: there is none. */
static bool next_event(struct simulation *s, double until)
{
    size_t at = s->n_alive;
    double when = until;
    for (size_t i = 0; i < s->n_alive; i++) {
        const struct alive *alive = s->alive[i];
        double next = alive->request.prefilled ? alive->end : alive->first_token;
        if (next <= when) {
            when = next;
            at = i;
        }
    }
    if (at == s->n_alive)
        return false;
    struct alive *alive = s->alive[at];
    if (!alive->request.prefilled) {
        routing_prefilled(&s->routing, &alive->request);
        return true;
    }
    routing_left(&s->routing, &alive->request, &alive->usage);
    free(alive->request.pieces);
    free(alive);
    s->alive[at] = s->alive[--s->n_alive];
    dispatch_waiting(s, when);
    return true;
}

/* The story whose turn comes first before a time, taken out; NULL: none. */
static struct story *next_turn(struct simulation *s, double until)
{
    size_t at = s->n_stories;
    for (size_t i = 0; i < s->n_stories; i++)
        if (s->stories[i]->next <= until) {
            until = s->stories[i]->next;
            at = i;
        }
    if (at == s->n_stories)
        return NULL;
    struct story *story = s->stories[at];
    s->stories[at] = s->stories[--s->n_stories];
    return story;
}

/* ---- a run ---- */

struct outcome {
    double hits;      /* of the ideal's */
    double imbalance; /* of work: of the busiest worker ÷ the mean */
    double waited;    /* from its arrival to a request's first token, mean */
};

/* Mean time of a story that finds what the ideal finds. */
static double story_time(const struct workload *workload)
{
    double turns = workload->turns_least + (workload->turns_more - 1) / 2.0;
    double made = MADE_LEAST + (MADE_MORE - 1) / 2.0;
    return turns * (TURN + BLOCK / 2.0 + made / 4) + (workload->n_prompts == 0 ? workload->prompt_ids : 0);
}

static struct story *new_story(struct simulation *s)
{
    struct story *story = simulated_memory(1, sizeof *story);
    story->name = ++s->n_named;
    story->prompt = draw_prompt(s, s->workload->n_prompts);
    story->turns_left = s->workload->turns_least + draw_below(s, s->workload->turns_more);
    return story;
}

static void begin_to_count(struct simulation *s)
{
    s->hits = s->ideal_hits = 0;
    s->waited = 0;
    s->n_counted = 0;
}

static struct outcome simulate(const struct workload *workload, uint32_t n, double load, bool by_load)
{
    struct simulation *s = simulated_memory(1, sizeof *s);
    const unsigned requests = REQUESTS * (1 + n / 16);
    s->workload = workload;
    s->by_load = by_load;
    s->n = n;
    s->random = 88172645463325252u;
    s->alive = simulated_memory(requests + 64, sizeof *s->alive);
    s->stories = simulated_memory(requests + 64, sizeof *s->stories);
    s->last_waiting = &s->waiting;
    for (uint32_t i = 0; i < n; i++)
        s->workers[i] =
            (struct worker){.index = i, .state = WORKER_READY, .slots = SLOTS, .peer = {.len = 5}};
    if (routing_init(&s->routing, s->workers, n, false, 1) < 0)
        simulated_no_memory();
    double now = 0, apart = story_time(workload) / (n * load), next_story = 0;
    while (s->n_sent < requests) {
        if (s->n_sent == requests / 3)
            begin_to_count(s);
        struct story *story = next_turn(s, next_story);
        bool first = !story;
        now = first ? next_story : story->next;
        if (first) {
            story = new_story(s);
            next_story += -log(1 - draw(s)) * apart;
        }
        while (next_event(s, now)) {
        }
        arrive(s, story, first, now);
    }
    while (next_event(s, 1e300)) {
    }
    double most = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        most = s->models[i].work > most ? s->models[i].work : most;
        sum += s->models[i].work;
        forget_all(&s->models[i]);
    }
    const struct outcome outcome = {(double)s->hits / (double)s->ideal_hits, most * n / sum,
                                    s->waited / s->n_counted};
    for (size_t i = 0; i < s->n_stories; i++)
        free(s->stories[i]);
    free(s->stories);
    free(s->alive);
    routing_deinit(&s->routing);
    free(s);
    return outcome;
}

int main(int argc, char **argv)
{
    static const uint32_t workers[] = {2, 4, 8, 16, 32, 64};
    static const double loads[] = {0.05, 0.4, 0.7, 0.85};
    const bool check = argc == 2 && strcmp(argv[1], "--check") == 0;
    int missed = 0;
    if (argc > 1 && !check) {
        fprintf(stderr, "Usage: %s [--check]\n", argv[0]);
        return 2;
    }
    printf("hits / the ideal's (goal 0.98), work of the busiest worker / the mean (goal 1.25 at 70 %%), mean "
           "time to the "
           "first token\n%-10s %7s %5s  %6s %8s %8s    %s\n",
           "", "workers", "load", "hits", "busiest", "first", "by load alone");
    for (int kind = 0; kind < N_KINDS; kind++)
        for (size_t w = 0; w < sizeof workers / sizeof *workers; w++)
            for (size_t l = 0; l < sizeof loads / sizeof *loads; l++) {
                const struct outcome ours = simulate(&workloads[kind], workers[w], loads[l], false),
                                     other = simulate(&workloads[kind], workers[w], loads[l], true);
                const bool bad =
                    ours.hits < 0.98 || (loads[l] > 0.69 && loads[l] < 0.71 && ours.imbalance > 1.25);
                missed += bad;
                printf("%-10s %7u %4.0f%%  %6.3f %8.2f %8.0f    %.3f %5.2f %8.0f%s\n", workloads[kind].name,
                       workers[w], loads[l] * 100, ours.hits, ours.imbalance, ours.waited, other.hits,
                       other.imbalance, other.waited, bad ? "  missed" : "");
            }
    return check && missed > 0;
}
