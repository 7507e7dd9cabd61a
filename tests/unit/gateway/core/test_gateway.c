/* SPDX-License-Identifier: MIT */
/* What a request gets that does not say how long its answer may be. */

#include "gateway/core/gateway.h"
#include "tests/unit/run.h"

START_TEST(an_answer_is_no_longer_than_the_context)
{
    struct pool_model models[] = {{.name = (char *)"small", .context = 128},
                                  {.name = (char *)"large", .context = 131072},
                                  {.name = (char *)"loading"}};
    static struct gateway gateway;
    struct fleet_pool pool = {.pool = {.models = models, .n_models = 3}}, *pools[] = {&pool};
    gateway.options.max_tokens = 1024;
    gateway.fleet = (struct fleet){.pools = pools, .n_pools = 1};
    ck_assert_uint_eq(gateway_max_tokens(&gateway, "small", NULL, 1), 128);
    ck_assert_uint_eq(gateway_max_tokens(&gateway, "large", NULL, 1), 1024);
    ck_assert_uint_eq(gateway_max_tokens(&gateway, NULL, NULL, 1), 128);
    ck_assert_uint_eq(gateway_max_tokens(&gateway, "loading", NULL, 1), 1024);
}
END_TEST

START_TEST(what_nobody_asked_for_is_no_more_than_the_key_may_have)
{
    const struct key key = {.most_tokens = 300}, free_key = {.most_requests = 1};
    static struct gateway gateway;
    struct fleet_pool pool = {0}, *pools[] = {&pool};
    gateway.options.max_tokens = 1024;
    gateway.fleet = (struct fleet){.pools = pools, .n_pools = 1};
    ck_assert_uint_eq(gateway_max_tokens(&gateway, NULL, &free_key, 1), 1024);
    ck_assert_uint_eq(gateway_max_tokens(&gateway, NULL, &key, 1), 300);
    ck_assert_uint_eq(gateway_max_tokens(&gateway, NULL, &key, 7), 42);
    ck_assert_uint_eq(gateway_max_tokens(&gateway, NULL, &key, 301), 1024); /* refused: not one each */
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, an_answer_is_no_longer_than_the_context);
    tcase_add_test(tests, what_nobody_asked_for_is_no_more_than_the_key_may_have);
}

int main(void)
{
    return run_tests("gateway/gateway", add);
}
