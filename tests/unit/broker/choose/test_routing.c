/* SPDX-License-Identifier: MIT */
/* Routing by prefix: who gets what, and what is learned of it. */

#include "tests/unit/broker/choose/routed.h"

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
    const struct usage usage = {
        .prompt_tokens = (uint32_t)request->prompt_tokens, .cached_tokens = cached, .output_tokens = 1};
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
        ck_assert_uint_le(request.prefill, 2000 % PROMPT_PIECE_TOKENS);
        finish(&request, 1984);
    }
    for (int i = 0; i < N; i++)
        ck_assert_uint_eq(workers[i].load, 0);
}
END_TEST

/* However much it has done lately: the second question about a document goes where the first one was read. */
START_TEST(a_free_worker_that_has_the_prompt_is_chosen_whatever_it_did_lately)
{
    struct request request, other, busy[N - 1];
    struct worker *first = send(&request, prompt, 2000);
    finish(&request, 0);
    for (int32_t i = 0; i < 100; i++) { /* the same worker does much, and nobody else anything */
        uint64_t recent = first->recent;
        first->recent = 0;
        static int32_t another[2000];
        another[0] = i + 1;
        send(&other, another, 2000);
        finish(&other, 0);
        first->recent = recent + 4000;
        ck_assert_ptr_eq(send(&request, prompt, 2000), first);
        finish(&request, 1984);
    }
    /* The others being busy, too, or having a part of it. */
    for (int i = 0; i < N - 1; i++) {
        first->n_requests++; /* keeps them off it */
        first->load += 1 << 20;
        ck_assert_ptr_ne(send(&busy[i], prompt, 1024), first);
        first->load -= 1 << 20;
        first->n_requests--;
    }
    ck_assert_ptr_eq(send(&request, prompt, 2000), first);
    finish(&request, 1984);
    for (int i = 0; i < N - 1; i++)
        finish(&busy[i], 0);
}
END_TEST

/* What all have done lately is halved together, so that it weighs the same between them ever after. */
START_TEST(what_was_done_lately_fades_for_all_alike)
{
    struct request request;
    struct worker *first = send(&request, prompt, 2000);
    struct worker *other = &workers[(first->index + 1) % N];
    first->recent = (1 << 19) + 2000;
    other->recent = 1000;
    finish(&request, 0);
    ck_assert_uint_ge(first->recent, 1 << 18);
    ck_assert_uint_le(first->recent, (1 << 18) + 4000); /* with what the request itself was */
    ck_assert_uint_eq(other->recent, 500);
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
        got[send(&requests[i], prompt, 256)->index]++;
    for (int i = 0; i < N; i++) {
        ck_assert_uint_gt(got[i], ALL / N / 2);
        ck_assert_uint_lt(got[i], ALL / N * 2);
    }
    for (int i = 0; i < ALL; i++)
        finish(&requests[i], i < N ? 0 : 256);
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
    ck_assert_uint_eq(third.n_found, 1280 / PROMPT_PIECE_TOKENS);
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
        ck_assert_uint_lt(hit_estimate_expects(&workers[i].cached, 1000), 250);
    for (int i = 0; i < 1000; i++) {
        worker = send(&request, prompt, 2000);
        finish(&request, 1984);
    }
    ck_assert_uint_gt(hit_estimate_expects(&worker->cached, 1000), 750);
    ck_assert_uint_eq(hit_estimate_expects(&worker->cached, 0), 0);
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
        const struct hit_estimate before = worker->cached;
        finish(&request, request.n_found * PROMPT_PIECE_TOKENS - lacks);
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
    const struct usage odd[] = {{.prompt_tokens = UINT32_MAX, .cached_tokens = UINT32_MAX},
                                {.prompt_tokens = UINT32_MAX},
                                {.prompt_tokens = 1, .cached_tokens = UINT32_MAX},
                                {.cached_tokens = 9}};
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
        ck_assert_uint_le(hit_estimate_expects(&workers[i].cached, 2000), 2000);
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
    ck_assert_uint_eq(request.n_stored, 2000 / PROMPT_PIECE_TOKENS);
    ck_assert_uint_le(request.prefill, 2000 / 8 + PROMPT_PIECE_TOKENS);
    finish(&request, 1984);
    /* A worker whose request moves had read it, too. */
    prompt[0] = 1;
    first = send(&request, prompt, 2000);
    routing_prefilled(&routing, &request);
    routing_left(&routing, &request, NULL);
    routing_lost(&routing, first);
    free(request.pieces);
    send(&request, prompt, 2000);
    ck_assert_uint_eq(request.n_stored, 2000 / PROMPT_PIECE_TOKENS);
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
        ck_assert_uint_lt(hit_estimate_expects(&workers[i].restored, 1000), 250);
    }
    send(&request, prompt, 2000);
    ck_assert_uint_gt(request.prefill, 1500);
    finish(&request, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_same_prompt_goes_where_it_was_read);
    tcase_add_test(tests, a_free_worker_that_has_the_prompt_is_chosen_whatever_it_did_lately);
    tcase_add_test(tests, what_was_done_lately_fades_for_all_alike);
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
}

int main(void)
{
    return run_tests("broker/routing", add);
}
