/* SPDX-License-Identifier: MIT */
/* What an observer is told: each step once, and of each request its stages in their order. */

#include "tests/unit/engine/harness.h"

#define REQUESTS 20

static struct seen {
    uint64_t steps, ids, rows, last_ns;
    enum engine_mark last[MOST_TAGS]; /* of each tag */
    bool any[MOST_TAGS];
    uint64_t n[MOST_TAGS][ENGINE_MARK_SLOT_LOST + 1], count[MOST_TAGS][ENGINE_MARK_SLOT_LOST + 1];
} seen;

static void on_step(void *arg, const struct engine_step_facts *facts)
{
    ck_assert_ptr_eq(arg, &seen);
    ck_assert_uint_ge(facts->read_ns, facts->begun_ns);
    ck_assert_uint_ge(facts->begun_ns, seen.last_ns); /* one after the other */
    seen.last_ns = facts->begun_ns;
    seen.steps++;
    seen.ids += facts->ids;
    seen.rows += facts->decode_rows + facts->prefill_rows;
}

static void on_mark(void *arg, uint64_t tag, enum engine_mark mark, uint64_t n, uint64_t now)
{
    ck_assert_ptr_eq(arg, &seen);
    ck_assert_uint_gt(now, 0);
    ck_assert(mark == ENGINE_MARK_SLOT ? !seen.any[tag] || seen.last[tag] == ENGINE_MARK_SLOT_LOST
                                       : seen.any[tag] && mark > seen.last[tag]);
    seen.any[tag] = true;
    seen.last[tag] = mark;
    seen.n[tag][mark] += n;
    seen.count[tag][mark]++;
}

static const struct engine_observer observer = {.step = on_step, .mark = on_mark, .arg = &seen};

static struct harness *start(int kind)
{
    memset(&seen, 0, sizeof seen);
    struct harness *h = harness_start(kind, (struct backend_config){.n_slots = 4, .max_rows = 32});
    engine_observe(h->engine, &observer);
    return h;
}

START_TEST(each_step_is_told_once_and_each_request_in_order)
{
    struct harness *h = start(_i);
    for (uint64_t tag = 1; tag <= REQUESTS; tag++) {
        struct engine_request request = request_of(tag, 50 + (uint32_t)tag, 30);
        submit(h, &request);
    }
    run_dry(h);
    const struct engine_stats stats = stats_of(h);
    ck_assert_uint_eq(seen.steps, stats.steps);
    ck_assert_uint_eq(seen.ids, stats.tokens);
    ck_assert_uint_ge(seen.rows, stats.prefill_tokens);
    uint64_t computed = 0, found = 0;
    for (uint64_t tag = 1; tag <= REQUESTS; tag++) {
        for (int mark = 0; mark < ENGINE_MARK_SLOT_LOST; mark++)
            if (seen.count[tag][ENGINE_MARK_SLOT_LOST] == 0)
                ck_assert_uint_eq(seen.count[tag][mark], 1);
        ck_assert_uint_eq(seen.count[tag][ENGINE_MARK_FIRST_TOKEN], 1);
        ck_assert_uint_lt(seen.n[tag][ENGINE_MARK_SLOT], 4 * seen.count[tag][ENGINE_MARK_SLOT]);
        computed += seen.n[tag][ENGINE_MARK_PREFILL_END];
        found += seen.n[tag][ENGINE_MARK_PREFIX];
    }
    ck_assert_uint_eq(found, stats.cache_hits);
    ck_assert_uint_le(computed, stats.prefill_tokens);
    ck_assert_uint_gt(computed, 0);
    harness_free(h);
}
END_TEST

/* Too few blocks for all: some are preempted, and begin anew. */
START_TEST(a_lost_slot_is_told_and_the_next_one_too)
{
    memset(&seen, 0, sizeof seen);
    struct harness *h =
        harness_start(_i, (struct backend_config){.n_slots = 4, .max_rows = 64, .n_blocks = 8});
    engine_observe(h->engine, &observer);
    for (uint64_t tag = 1; tag <= 4; tag++) {
        struct engine_request request = request_of(tag, 40, 100);
        request.sampling.seed = lasting_seed(&request, 100);
        submit(h, &request);
    }
    run_dry(h);
    uint64_t lost = 0;
    for (uint64_t tag = 1; tag <= 4; tag++) {
        lost += seen.count[tag][ENGINE_MARK_SLOT_LOST];
        ck_assert_uint_eq(seen.count[tag][ENGINE_MARK_SLOT], 1 + seen.count[tag][ENGINE_MARK_SLOT_LOST]);
        ck_assert_uint_eq(seen.count[tag][ENGINE_MARK_FIRST_TOKEN], 1);
        ck_assert_uint_eq(h->outcomes[tag].n_output, 100);
    }
    ck_assert_uint_gt(lost, 0);
    harness_free(h);
}
END_TEST

START_TEST(an_observer_that_is_gone_is_told_nothing)
{
    struct harness *h = start(_i);
    struct engine_request request = request_of(1, 40, 10);
    submit(h, &request);
    run_dry(h);
    const uint64_t steps = seen.steps;
    ck_assert_uint_gt(steps, 0);
    engine_observe(h->engine, NULL);
    request = request_of(2, 40, 10);
    submit(h, &request);
    run_dry(h);
    ck_assert_uint_eq(seen.steps, steps);
    ck_assert(!seen.any[2]);
    harness_free(h);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, each_step_is_told_once_and_each_request_in_order, 0, 4);
    tcase_add_loop_test(tests, a_lost_slot_is_told_and_the_next_one_too, 0, 2);
    tcase_add_loop_test(tests, an_observer_that_is_gone_is_told_nothing, 0, 2);
}

int main(void)
{
    return run_tests("observe", add);
}
