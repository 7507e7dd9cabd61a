/* SPDX-License-Identifier: MIT */
/* Routing by prefix in a simulated pool with many tenants; other ways to route are printed beside. */

#include "tests/unit/broker/choose/routed.h"

#include <stdio.h>

#define TENANTS   40
#define PREFIX    1984 /* ids that all requests of a tenant begin with */
#define QUESTION  80   /* ids of each request's own */
#define REQUESTS  4000
#define ALIVE_MAX REQUESTS

enum policy { ROUND_ROBIN, LEAST_LOAD, BY_PREFIX };

struct alive {
    struct request request;
    unsigned tenant;
    double first_token, end; /* when */
    struct usage usage;
};

struct model_worker {
    uint64_t used[TENANTS]; /* its cache: when a tenant's prefix was used last; 0: it is not there */
    double busy_until;
    uint64_t work; /* tokens read and made */
};

struct simulation {
    enum policy policy;
    unsigned cached_most; /* prefixes in one worker's cache */
    bool shares;          /* what one has read others bring, for an eighth of the work */
    uint64_t random, n_sent;
    struct model_worker models[N];
    struct alive *alive[ALIVE_MAX];
    unsigned n_alive;
    uint64_t hits, best_hits; /* tokens; with one cache for all that forgets nothing */
    bool seen[TENANTS];
    bool stored[TENANTS]; /* read to the end by somebody */
};

static uint64_t draw(struct simulation *s, uint64_t n)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->random % n;
}

/* Zipf: the k-th has a share of 1/k. */
static unsigned draw_tenant(struct simulation *s)
{
    double sum = 0, at = (double)draw(s, 1000000) / 1e6;
    for (unsigned k = 1; k <= TENANTS; k++)
        sum += 1.0 / k;
    for (unsigned k = 1; k < TENANTS; k++)
        if ((at -= 1.0 / k / sum) < 0)
            return k - 1;
    return TENANTS - 1;
}

/* What happens until then: first tokens, and ends. */
static void pass(struct simulation *s, double until)
{
    for (unsigned i = 0; i < s->n_alive;) {
        struct alive *alive = s->alive[i];
        struct request *request = &alive->request;
        if (!request->prefilled && alive->first_token <= until) {
            routing_prefilled(&routing, request);
            s->stored[alive->tenant] = true;
        }
        if (alive->end > until) {
            i++;
            continue;
        }
        routing_left(&routing, request, &alive->usage);
        free(request->pieces);
        free(alive);
        s->alive[i] = s->alive[--s->n_alive];
    }
}

static bool use_cache(struct simulation *s, struct model_worker *model, unsigned tenant)
{
    bool hit = model->used[tenant] != 0;
    unsigned n = 0, oldest = tenant;
    model->used[tenant] = s->n_sent;
    for (unsigned i = 0; i < TENANTS; i++) {
        n += model->used[i] != 0;
        if (model->used[i] != 0 && model->used[i] < model->used[oldest])
            oldest = i;
    }
    if (n > s->cached_most)
        model->used[oldest] = 0;
    return hit;
}

static struct worker *choose(struct simulation *s, struct request *request,
                             const struct generation *generation)
{
    struct worker *worker = NULL;
    const struct scheduler_wish any = {0};
    if (s->policy == BY_PREFIX)
        routing_admit(&routing, request, generation);
    ck_assert_int_eq(routing_choose(&routing, &any, request, &worker), 0);
    return s->policy == ROUND_ROBIN ? &workers[s->n_sent % N] : worker;
}

/* A worker reads prompts one after the other, a token in a unit of time, and makes tokens of many at once. */
static void arrive(struct simulation *s, double now)
{
    static int32_t ids[PREFIX + QUESTION];
    struct alive *alive = calloc(1, sizeof *alive);
    struct generation generation;
    unsigned tenant = draw_tenant(s);
    uint32_t made = 20 + (uint32_t)draw(s, 160);
    alive->tenant = tenant;
    s->n_sent++;
    for (int i = 0; i < PREFIX; i++)
        ids[i] = (int32_t)tenant;
    for (int i = 0; i < QUESTION; i++)
        ids[PREFIX + i] = (int32_t)s->n_sent;
    generation_defaults(&generation);
    generation.prompt.form = PROMPT_IDS;
    generation.prompt.ids = (struct id_list){ids, PREFIX + QUESTION};
    admission_fix(&alive->request, &generation, 0, 0);
    struct worker *worker = choose(s, &alive->request, &generation);
    routing_assigned(&routing, &alive->request, worker);
    struct model_worker *model = &s->models[worker->index];
    bool hit = use_cache(s, model, tenant), brought = !hit && s->shares && s->stored[tenant];
    uint32_t cached = hit || brought ? PREFIX : 0;
    uint32_t read = PREFIX + QUESTION - cached + (brought ? PREFIX / 8 : 0);
    alive->usage =
        (struct usage){.prompt_tokens = PREFIX + QUESTION, .cached_tokens = cached, .output_tokens = made};
    alive->first_token = (model->busy_until > now ? model->busy_until : now) + read;
    alive->end = alive->first_token + made;
    model->busy_until = alive->first_token + made / 4.0;
    model->work += read + made;
    s->hits += cached;
    s->best_hits += s->seen[tenant] ? PREFIX : 0;
    s->seen[tenant] = true;
    ck_assert_uint_lt(s->n_alive, ALIVE_MAX);
    s->alive[s->n_alive++] = alive;
}

/* A worker is killed, and another process takes its place: what it was doing is done elsewhere. */
static void replace(struct simulation *s, uint32_t index, double now)
{
    for (unsigned i = 0; i < s->n_alive;) {
        struct request *request = &s->alive[i]->request;
        if (request->worker->index != index) {
            i++;
            continue;
        }
        routing_left(&routing, request, NULL);
        free(request->pieces);
        free(s->alive[i]);
        s->alive[i] = s->alive[--s->n_alive];
    }
    routing_lost(&routing, &workers[index]);
    memset(s->models[index].used, 0, sizeof s->models[index].used);
    s->models[index].busy_until = now;
}

struct outcome {
    double hits;      /* of what one cache for all would have */
    double imbalance; /* of work: the most of a worker ÷ the mean */
};

/* `use`: of the pool, were every prefix found. `restarts`: workers share a store, and one after the other is
 * killed, with all it had, and its place taken. */
static struct outcome simulate(enum policy policy, double use, unsigned cached_most, bool restarts)
{
    struct simulation s = {
        .policy = policy, .cached_most = cached_most, .shares = restarts, .random = 88172645463325252u};
    double now = 0, apart = (QUESTION + 100 / 4.0 + PREFIX * TENANTS / (double)REQUESTS) / (N * use);
    uint64_t most = 0, sum = 0;
    serve(ALIVE_MAX, restarts);
    for (int i = 0; i < REQUESTS; i++) {
        now += apart * (double)draw(&s, 2000) / 1000;
        pass(&s, now);
        if (restarts && i % 100 == 99)
            replace(&s, (uint32_t)i / 100 % N, now);
        arrive(&s, now);
    }
    pass(&s, 1e18);
    for (int i = 0; i < N; i++) {
        ck_assert_uint_eq(workers[i].load, 0);
        most = s.models[i].work > most ? s.models[i].work : most;
        sum += s.models[i].work;
    }
    routing_deinit(&routing);
    return (struct outcome){(double)s.hits / (double)s.best_hits, (double)most * N / (double)sum};
}

START_TEST(tenants_with_long_prompts_are_read_once_and_the_work_is_shared)
{
    static const double uses[] = {0.05, 0.4, 0.7, 0.95};
    printf("4 workers, 40 tenants, Zipf: hits ÷ those of one cache for all (goal >= 0.95), most ÷ mean work "
           "(goal <= 1.30)\n"
           "in use  cached     by prefix    least load   round-robin\n");
    for (unsigned cached = TENANTS / 2; cached >= TENANTS * 3 / 8; cached -= 5)
        for (unsigned i = 0; i < sizeof uses / sizeof *uses; i++) {
            struct outcome prefix = simulate(BY_PREFIX, uses[i], cached, false);
            struct outcome load = simulate(LEAST_LOAD, uses[i], cached, false);
            struct outcome turn = simulate(ROUND_ROBIN, uses[i], cached, false);
            printf("%5.0f%%  %u of %u  %.3f %5.2f   %.3f %5.2f   %.3f %5.2f\n", uses[i] * 100, cached,
                   TENANTS, prefix.hits, prefix.imbalance, load.hits, load.imbalance, turn.hits,
                   turn.imbalance);
            ck_assert_double_ge(prefix.hits, 0.95);
            ck_assert_double_le(prefix.imbalance, 1.3);
        }
}
END_TEST

START_TEST(with_a_store_workers_that_are_killed_cost_neither_hits_nor_balance)
{
    static const double uses[] = {0.05, 0.4, 0.7, 0.95};
    printf("the same, a worker killed every 100 requests, with a prefix store\n");
    for (unsigned i = 0; i < sizeof uses / sizeof *uses; i++) {
        struct outcome outcome = simulate(BY_PREFIX, uses[i], TENANTS / 2, true);
        printf("%5.0f%%  %u of %u  %.3f %5.2f\n", uses[i] * 100, TENANTS / 2, TENANTS, outcome.hits,
               outcome.imbalance);
        ck_assert_double_ge(outcome.hits, 0.95);
        ck_assert_double_le(outcome.imbalance, 1.3);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, tenants_with_long_prompts_are_read_once_and_the_work_is_shared);
    tcase_add_test(tests, with_a_store_workers_that_are_killed_cost_neither_hits_nor_balance);
}

int main(void)
{
    return run_tests("broker/routing_tenants", add);
}
