/* SPDX-License-Identifier: MIT */
/* Memory is given back between any two steps, and no answer shows it. */

#include "tests/unit/engine/harness.h"

#define REQUESTS 24

/* Steps with what lies between them; `prefixes`: every other time. */
static uint64_t run_giving(struct harness *h, bool prefixes)
{
    struct error err = {0};
    struct engine_given given;
    uint64_t kv = 0;
    int r = 1;
    for (uint64_t i = 0; r == 1; i++) {
        ck_assert_msg(i < 100000, "the engine hangs");
        ck_assert_int_eq(engine_give_back(h->engine, prefixes && i % 2 > 0, &given), 0);
        ck_assert(prefixes || given.blocks == 0);
        kv += given.backend.kv;
        r = engine_step(h->engine, &err);
    }
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
    return kv;
}

START_TEST(answers_are_the_same_whenever_it_happens)
{
    struct harness *h = harness_start(_i % 4, (struct backend_config){.n_slots = 3, .max_rows = 24});
    for (uint64_t tag = 1; tag <= REQUESTS; tag++) {
        const struct engine_request request = request_of(tag, 20 + 7 * (uint32_t)tag, 30);
        submit(h, &request);
    }
    ck_assert_uint_gt(run_giving(h, _i >= 4), 0);
    for (uint64_t tag = 1; tag <= REQUESTS; tag++) {
        const struct engine_request request = request_of(tag, 20 + 7 * (uint32_t)tag, 30);
        check_outcome(h, &request);
    }
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(cached_prefixes_stay_unless_they_are_meant)
{
    struct harness *h = harness_start(0, (struct backend_config){.n_slots = 2});
    struct engine_request request = request_of(1, 200, 4);
    struct engine_given given;
    submit(h, &request);
    run_dry(h);
    const uint32_t cached = (uint32_t)stats_of(h).blocks_cached;
    ck_assert_uint_ge(cached, 200 / BACKEND_BLOCK_TOKENS);
    ck_assert_int_eq(engine_give_back(h->engine, false, &given), 0);
    request.tag = 2;
    submit(h, &request);
    run_dry(h);
    const uint64_t hits = stats_of(h).cache_hits;
    ck_assert_uint_ge(hits, 192);
    ck_assert_int_eq(engine_give_back(h->engine, true, &given), 0);
    ck_assert_uint_ge(given.blocks, cached);
    ck_assert_uint_eq(given.backend.kv, stats_of(h).blocks_total * (uint64_t)BACKEND_BLOCK_TOKENS * 4);
    request.tag = 3;
    submit(h, &request);
    run_dry(h);
    ck_assert_uint_eq(stats_of(h).cache_hits, hits);
    harness_free(h);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, answers_are_the_same_whenever_it_happens, 0, 8);
    tcase_add_test(tests, cached_prefixes_stay_unless_they_are_meant);
}

int main(void)
{
    return run_tests("give back", add);
}
