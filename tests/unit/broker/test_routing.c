/* SPDX-License-Identifier: MIT */
/* Routing by prefix: who gets what, what is learned of it, and a simulation of a pool with many tenants, with
 * other ways to route printed beside. */

#include "broker/admission.h"
#include "broker/routing.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

#define N 4 /* workers */

static struct worker workers[N];
static struct routing routing;

static void serve(uint32_t slots, bool shares)
{
    routing_deinit(&routing);
    memset(workers, 0, sizeof workers);
    for (uint32_t i = 0; i < N; i++)
        workers[i] = (struct worker){.index = i, .state = WORKER_READY, .slots = slots, .peer = {.len = 5}};
    ck_assert_int_eq(routing_init(&routing, workers, N, shares, 1), 0);
}

static void set_up(void)
{
    serve(64, false);
}

static void tear_down(void)
{
    routing_deinit(&routing);
}

/* ---- one request after the other ---- */

static struct worker *send(struct request *request, const int32_t *ids, size_t n)
{
    struct generation generation;
    struct worker *worker = NULL;
    const struct scheduler_wish any = {0};
    generation_defaults(&generation);
    generation.prompt.form = PROMPT_IDS;
    generation.prompt.ids = (struct id_list){ids, n};
    *request = (struct request){0};
    admission_fix(request, &generation, 0, 0);
    routing_admit(&routing, request, &generation);
    ck_assert_int_eq(routing_choose(&routing, &any, request, &worker), 0);
    routing_assigned(&routing, request, worker);
    return worker;
}

static void finish(struct request *request, uint32_t cached)
{
    const struct usage usage = {(uint32_t)request->prompt_tokens, cached, 1};
    routing_prefilled(&routing, request);
    routing_left(&routing, request, &usage);
    free(request->pieces);
}

static int32_t prompt[2000];

START_TEST(the_same_prompt_goes_where_it_was_read)
{
    struct request request;
    struct worker *first = send(&request, prompt, 2000);
    finish(&request, 0);
    for (int i = 0; i < 20; i++) {
        ck_assert_ptr_eq(send(&request, prompt, 2000), first);
        ck_assert_uint_le(request.prefill, 2000 % PREFIXES_PIECE_TOKENS);
        finish(&request, 1984);
    }
    for (int i = 0; i < N; i++)
        ck_assert_uint_eq(workers[i].load, 0);
}
END_TEST

START_TEST(many_that_come_at_once_with_one_prompt_are_read_once)
{
    struct request requests[16];
    struct worker *first = send(&requests[0], prompt, 2000);
    for (int i = 1; i < 16; i++)
        ck_assert_ptr_eq(send(&requests[i], prompt, 2000), first);
    for (int i = 0; i < 16; i++)
        finish(&requests[i], i == 0 ? 0 : 1984);
}
END_TEST

START_TEST(a_worker_with_too_much_to_do_lets_its_prefix_be_read_elsewhere)
{
    enum { ALL = 200 };
    struct request requests[ALL];
    unsigned got[N] = {0};
    for (int i = 0; i < ALL; i++)
        got[send(&requests[i], prompt, 2000)->index]++;
    for (int i = 0; i < N; i++) {
        ck_assert_uint_gt(got[i], ALL / N / 2);
        ck_assert_uint_lt(got[i], ALL / N * 2);
    }
    for (int i = 0; i < ALL; i++)
        finish(&requests[i], i < N ? 0 : 1984);
}
END_TEST

START_TEST(prompts_that_nobody_had_are_spread)
{
    enum { ALL = 40 };
    struct request requests[ALL];
    unsigned got[N] = {0};
    for (int i = 0; i < ALL; i++) {
        prompt[0] = i;
        got[send(&requests[i], prompt, 2000)->index]++;
    }
    for (int i = 0; i < N; i++)
        ck_assert_uint_eq(got[i], ALL / N);
    for (int i = 0; i < ALL; i++)
        finish(&requests[i], 0);
    /* One by one, too. */
    memset(got, 0, sizeof got);
    for (int i = 0; i < ALL; i++) {
        prompt[0] = ALL + i;
        got[send(&requests[i], prompt, 2000)->index]++;
        finish(&requests[i], 0);
    }
    for (int i = 0; i < N; i++)
        ck_assert_uint_eq(got[i], ALL / N);
}
END_TEST

START_TEST(what_was_never_read_is_not_believed)
{
    struct request request;
    send(&request, prompt, 2000);
    routing_left(&routing, &request, NULL); /* cancelled before its first token */
    free(request.pieces);
    send(&request, prompt, 2000);
    ck_assert_uint_eq(request.n_found, 0);
    finish(&request, 0);
}
END_TEST

START_TEST(a_cancel_takes_back_only_what_it_brought)
{
    struct request first, second, third;
    struct worker *worker = send(&first, prompt, 1280);
    send(&second, prompt, 2000);
    ck_assert_ptr_eq(second.worker, worker);
    routing_left(&routing, &second, NULL);
    free(second.pieces);
    finish(&first, 0);
    ck_assert_ptr_eq(send(&third, prompt, 2000), worker);
    ck_assert_uint_eq(third.n_found, 1280 / PREFIXES_PIECE_TOKENS);
    finish(&third, 1280);
}
END_TEST

START_TEST(a_worker_that_was_started_again_has_nothing)
{
    struct request request;
    struct worker *worker = send(&request, prompt, 2000);
    finish(&request, 0);
    routing_lost(&routing, worker);
    ck_assert_ptr_ne(send(&request, prompt, 2000), worker);
    ck_assert_uint_eq(request.n_found, 0);
    finish(&request, 0);
}
END_TEST

/* Without its cache, or with one that is too small, what is believed of a worker comes to count for next to
 * nothing, and its work goes by load; and it is believed again when it keeps its word. */
START_TEST(a_worker_is_believed_as_far_as_it_keeps_its_word)
{
    struct request request;
    struct worker *worker = NULL;
    for (int i = 0; i < 1000; i++) {
        send(&request, prompt, 2000);
        finish(&request, 0);
    }
    for (int i = 0; i < N; i++)
        ck_assert_uint_lt(belief_expects(&workers[i].cached, 1000), 250);
    for (int i = 0; i < 1000; i++) {
        worker = send(&request, prompt, 2000);
        finish(&request, 1984);
    }
    ck_assert_uint_gt(belief_expects(&worker->cached, 1000), 750);
    ck_assert_uint_eq(belief_expects(&worker->cached, 0), 0);
}
END_TEST

/* Its cache keeps whole blocks, and never the last id. */
START_TEST(what_a_block_lacks_is_no_broken_word)
{
    struct request request;
    struct worker *worker = send(&request, prompt, 2000);
    finish(&request, 0);
    for (uint32_t lacks = 64; lacks <= 65; lacks++) {
        ck_assert_ptr_eq(send(&request, prompt, 2000), worker);
        ck_assert_uint_gt(request.n_found, 0);
        const struct belief before = worker->cached;
        finish(&request, request.n_found * PREFIXES_PIECE_TOKENS - lacks);
        ck_assert_uint_gt(worker->cached.believed, before.believed);
        ck_assert_uint_eq(worker->cached.believed - before.believed,
                          worker->cached.came_true - before.came_true + (lacks > 64 ? lacks : 0));
    }
}
END_TEST

START_TEST(what_a_worker_says_cannot_break_the_books)
{
    struct request request;
    serve(64, _i);
    const struct usage odd[] = {
        {UINT32_MAX, UINT32_MAX, 0}, {UINT32_MAX, 0, 0}, {1, UINT32_MAX, 0}, {0, 9, 0}};
    for (int i = 0; i < 400; i++) {
        send(&request, prompt, 2000);
        routing_prefilled(&routing, &request);
        routing_left(&routing, &request, &odd[i % 4]);
        free(request.pieces);
    }
    for (int i = 0; i < N; i++) {
        ck_assert_uint_eq(workers[i].load, 0);
        ck_assert_uint_le(workers[i].cached.came_true, workers[i].cached.believed);
        ck_assert_uint_le(workers[i].restored.came_true, workers[i].restored.believed);
        ck_assert_uint_le(belief_expects(&workers[i].cached, 2000), 2000);
    }
}
END_TEST

START_TEST(a_lone_worker_costs_nothing)
{
    struct routing alone;
    struct request request = {0};
    struct generation generation = {.prompt = {.form = PROMPT_IDS, .ids = {prompt, 2000}}};
    ck_assert_int_eq(routing_init(&alone, workers, 1, true, 1), 0);
    routing_admit(&alone, &request, &generation);
    ck_assert_ptr_null(request.pieces);
    ck_assert_uint_eq(alone.prefixes.most, 0);
    routing_deinit(&alone);
}
END_TEST

/* ---- with a prefix store ---- */

START_TEST(what_the_store_has_outlives_the_worker_that_read_it)
{
    struct request request;
    serve(64, true);
    struct worker *first = send(&request, prompt, 2000);
    finish(&request, 0);
    routing_lost(&routing, first);
    send(&request, prompt, 2000);
    ck_assert_uint_eq(request.n_found, 0);
    ck_assert_uint_eq(request.n_stored, 2000 / PREFIXES_PIECE_TOKENS);
    ck_assert_uint_le(request.prefill, 2000 / 8 + PREFIXES_PIECE_TOKENS);
    finish(&request, 1984);
    /* A worker whose request moves had read it, too. */
    prompt[0] = 1;
    first = send(&request, prompt, 2000);
    routing_prefilled(&routing, &request);
    routing_left(&routing, &request, NULL);
    routing_lost(&routing, first);
    free(request.pieces);
    send(&request, prompt, 2000);
    ck_assert_uint_eq(request.n_stored, 2000 / PREFIXES_PIECE_TOKENS);
    finish(&request, 1984);
}
END_TEST

START_TEST(what_was_not_read_the_store_does_not_have)
{
    struct request first, second;
    serve(64, true);
    send(&first, prompt, 2000); /* still being read: the other waits for it there */
    ck_assert_ptr_eq(send(&second, prompt, 2000), first.worker);
    ck_assert_uint_eq(second.n_stored, 0);
    struct worker *worker = first.worker;
    routing_left(&routing, &second, NULL);
    routing_left(&routing, &first, NULL);
    routing_lost(&routing, worker);
    free(second.pieces);
    free(first.pieces);
    send(&first, prompt, 2000);
    ck_assert_uint_eq(first.n_stored, 0);
    ck_assert_uint_eq(first.prefill, 2000);
    finish(&first, 0);
}
END_TEST

/* One worker has read all of them and is gone: each of the others can bring them. */
START_TEST(what_only_the_store_has_is_spread_by_load)
{
    enum { ALL = 40 };
    struct request requests[ALL];
    unsigned got[N] = {0};
    serve(64, true);
    for (int i = 1; i < N; i++)
        workers[i].state = WORKER_STARTING;
    for (int i = 0; i < ALL; i++) {
        prompt[0] = i;
        send(&requests[i], prompt, 2000);
        finish(&requests[i], 0);
    }
    routing_lost(&routing, &workers[0]);
    for (int i = 0; i < N; i++) {
        workers[i].state = WORKER_READY;
        workers[i].recent = 0;
    }
    for (int i = 0; i < ALL; i++) {
        prompt[0] = i;
        got[send(&requests[i], prompt, 2000)->index]++;
    }
    for (int i = 0; i < N; i++)
        ck_assert_uint_eq(got[i], ALL / N);
    for (int i = 0; i < ALL; i++)
        finish(&requests[i], 1984);
}
END_TEST

/* It costs nothing to find, and the others would copy it. */
START_TEST(a_worker_that_has_it_goes_before_the_store)
{
    struct request request;
    serve(64, true);
    struct worker *first = send(&request, prompt, 2000);
    finish(&request, 0);
    for (int i = 0; i < 20; i++) {
        ck_assert_ptr_eq(send(&request, prompt, 2000), first);
        finish(&request, 1984);
    }
}
END_TEST

/* One that is too small, or a worker whose blocks are of another kind. */
START_TEST(the_store_is_believed_as_far_as_it_keeps_its_word)
{
    struct request request;
    serve(64, true);
    for (int i = 0; i < 200; i++) {
        send(&request, prompt, 2000);
        finish(&request, 0);
        for (int j = 0; j < N; j++)
            routing_lost(&routing, &workers[j]); /* nobody has it but the store */
    }
    for (int i = 0; i < N; i++) {
        ck_assert_uint_eq(workers[i].restored.came_true, 0);
        ck_assert_uint_lt(belief_expects(&workers[i].restored, 1000), 250);
    }
    send(&request, prompt, 2000);
    ck_assert_uint_gt(request.prefill, 1500);
    finish(&request, 0);
}
END_TEST

/* ---- a pool with tenants ---- */

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
    alive->usage = (struct usage){PREFIX + QUESTION, cached, made};
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
    tcase_add_test(tests, the_same_prompt_goes_where_it_was_read);
    tcase_add_test(tests, many_that_come_at_once_with_one_prompt_are_read_once);
    tcase_add_test(tests, a_worker_with_too_much_to_do_lets_its_prefix_be_read_elsewhere);
    tcase_add_test(tests, prompts_that_nobody_had_are_spread);
    tcase_add_test(tests, what_was_never_read_is_not_believed);
    tcase_add_test(tests, a_cancel_takes_back_only_what_it_brought);
    tcase_add_test(tests, a_worker_that_was_started_again_has_nothing);
    tcase_add_test(tests, a_worker_is_believed_as_far_as_it_keeps_its_word);
    tcase_add_test(tests, what_a_block_lacks_is_no_broken_word);
    tcase_add_loop_test(tests, what_a_worker_says_cannot_break_the_books, 0, 2);
    tcase_add_test(tests, a_lone_worker_costs_nothing);
    tcase_add_test(tests, what_the_store_has_outlives_the_worker_that_read_it);
    tcase_add_test(tests, what_was_not_read_the_store_does_not_have);
    tcase_add_test(tests, what_only_the_store_has_is_spread_by_load);
    tcase_add_test(tests, a_worker_that_has_it_goes_before_the_store);
    tcase_add_test(tests, the_store_is_believed_as_far_as_it_keeps_its_word);
    tcase_add_test(tests, tenants_with_long_prompts_are_read_once_and_the_work_is_shared);
    tcase_add_test(tests, with_a_store_workers_that_are_killed_cost_neither_hits_nor_balance);
}

int main(void)
{
    return run_tests("broker/routing", add);
}
