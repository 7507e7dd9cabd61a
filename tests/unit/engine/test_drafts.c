/* SPDX-License-Identifier: MIT */
/* How long drafts are, where they may go, and what a sequence with a state does after a wrong one. That ids
 * are those without drafts is tested in test_resume.c. Loop tests run on a synchronous and an asynchronous
 * backend, each without states and with them. */

#include "tests/unit/engine/harness.h"

static const struct backend_config four_slots = {.n_slots = 4, .n_context = 512, .n_blocks = 64};

/* What the drafts of a test are, and what was asked of them. */
struct drafter {
    bool right;
    uint64_t seed;             /* of the requests whose ids it knows */
    uint32_t n, most, longest; /* drafts; ids of the last, and of the longest, that were asked for */
};

static uint32_t draft(void *arg, const int32_t *ids, uint32_t n, uint32_t most, int32_t *ret_draft)
{
    struct drafter *drafter = arg;
    int32_t all[1024];
    memcpy(all, ids, n * sizeof *all);
    for (uint32_t i = 0; i < most; i++) {
        all[n + i] = fake_next(drafter->seed, all, n + i);
        ret_draft[i] = drafter->right ? all[n + i] : 'z' + (all[n + i] == 'z');
    }
    drafter->n++;
    drafter->most = most;
    drafter->longest = most > drafter->longest ? most : drafter->longest;
    return most;
}

static struct harness *start(int kind, struct drafter *drafter, uint32_t most_draft, uint32_t chunk_least)
{
    fake_script = (struct fake_script){
        .asynchronous = kind % 2, .n_snapshots = kind < 2 ? 0 : 8, .chunk_least = chunk_least};
    struct harness *h = calloc(1, sizeof *h);
    struct error err = {0};
    const struct engine_config config = {.model = &fake_model,
                                         .backend = &backend_fake,
                                         .most_cached = UINT32_MAX,
                                         .backend_config = four_slots,
                                         .draft = draft,
                                         .draft_arg = drafter,
                                         .most_draft = most_draft};
    ck_assert_msg(engine_new(&config, harness_sink, h, &h->engine, &err) == 0, "%s", err.text);
    return h;
}

/* A request whose answer has so many ids, which the drafter knows. */
static struct engine_request asking(struct drafter *drafter, uint64_t tag, uint32_t n)
{
    struct engine_request request = request_of(tag, 10, n);
    request.prompt = request_of(1, 10, n).prompt;
    drafter->seed = request.sampling.seed = lasting_seed(&request, n);
    return request;
}

START_TEST(right_drafts_grow_up_to_the_most)
{
    struct drafter drafter = {.right = true};
    struct harness *h = start(_i, &drafter, 12, 64);
    const struct engine_request request = asking(&drafter, 1, 200);
    submit(h, &request);
    run_dry(h);
    check_outcome(h, &request);
    const struct engine_stats stats = stats_of(h);
    ck_assert_uint_eq(drafter.longest, 12);
    ck_assert_uint_gt(stats.drafted, 100);
    ck_assert_uint_eq(stats.accepted, stats.drafted);
    ck_assert_uint_eq(h->outcomes[1].n_drafted, stats.drafted);
    ck_assert_uint_eq(h->outcomes[1].n_accepted, stats.accepted);
    ck_assert_uint_lt(fake_script.steps, 80);
    ck_assert_uint_eq(stats.prefill_tokens, 10);
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(wrong_drafts_become_short_and_rare)
{
    struct drafter drafter = {.right = false};
    struct harness *h = start(_i, &drafter, 12, 64);
    const struct engine_request request = asking(&drafter, 1, 200);
    submit(h, &request);
    run_dry(h);
    check_outcome(h, &request);
    const struct engine_stats stats = stats_of(h);
    ck_assert_uint_eq(stats.accepted, 0);
    ck_assert_uint_eq(h->outcomes[1].n_drafted, stats.drafted);
    ck_assert_uint_eq(h->outcomes[1].n_accepted, 0);
    ck_assert_uint_le(stats.drafted, 4 + 14); /* the first of four; pauses of 0, 1, 3 … 31, 31 … steps */
    ck_assert_uint_eq(drafter.most, 1);
    ck_assert_uint_eq(stats.prefill_tokens, 10); /* nothing is fed again as if it were a prompt */
    ck_assert_uint_eq(fake_script.steps, 200);   /* a step for each id all the same */
    check_idle(h);
    harness_free(h);
}
END_TEST

/* The rows that others need come first, and drafts get what is left of those that are cheap. */
START_TEST(a_step_with_many_rows_has_no_drafts)
{
    struct drafter drafter = {.right = true};
    struct harness *h = start(_i, &drafter, 12, 4);
    for (uint64_t tag = 1; tag <= 4; tag++) {
        const struct engine_request request = asking(&drafter, tag, 20 * (uint32_t)tag);
        submit(h, &request);
    }
    run_dry(h);
    uint64_t drafted = 0, accepted = 0;
    for (uint64_t tag = 1; tag <= 4; tag++) {
        const struct engine_request request = asking(&drafter, tag, 20 * (uint32_t)tag);
        check_outcome(h, &request);
        drafted += h->outcomes[tag].n_drafted;
        accepted += h->outcomes[tag].n_accepted;
    }
    ck_assert_uint_eq(drafted, stats_of(h).drafted); /* each counts for the request that had it */
    ck_assert_uint_eq(accepted, stats_of(h).accepted);
    ck_assert_uint_eq(drafter.longest, 3); /* the last of them, alone */
    ck_assert_uint_le(fake_script.most_rows, 40);
    check_idle(h);
    harness_free(h);
}
END_TEST

/* Each id of an answer was sampled by a step of its own, or came with a draft; those that were right but
 * stand behind a stop string are no part of it. */
START_TEST(accepted_ids_are_those_of_the_answer)
{
    static const struct bytes stops[] = {BYTES_LITERAL("ab"), BYTES_LITERAL("ff"), BYTES_LITERAL("cb")};
    int n_cut = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct drafter drafter = {.right = true, .seed = seed};
        struct harness *h = start(_i, &drafter, 12, 64);
        struct engine_request request = request_of(1, 10, 100);
        request.sampling.seed = seed;
        request.stop = stops;
        request.n_stop = 3;
        submit(h, &request);
        run_dry(h);
        check_outcome(h, &request);
        const struct outcome *o = &h->outcomes[1];
        const uint32_t n_sampled = o->n_output - o->n_accepted;
        const bool is_cut = n_sampled < fake_script.steps;
        ck_assert_uint_eq(n_sampled + is_cut, fake_script.steps);
        if (stats_of(h).accepted > o->n_accepted) {
            ck_assert(is_cut);
            n_cut++;
        }
        check_idle(h);
        harness_free(h);
    }
    ck_assert_int_gt(n_cut, 5);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, right_drafts_grow_up_to_the_most, 0, 4);
    tcase_add_loop_test(tests, wrong_drafts_become_short_and_rare, 0, 4);
    tcase_add_loop_test(tests, a_step_with_many_rows_has_no_drafts, 0, 4);
    tcase_add_loop_test(tests, accepted_ids_are_those_of_the_answer, 0, 4);
}

int main(void)
{
    return run_tests("drafts", add);
}
