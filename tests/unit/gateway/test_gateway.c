/* SPDX-License-Identifier: MIT */
/* What a request gets that does not say how long its answer may be. */

#include "gateway/gateway.h"
#include "tests/unit/run.h"

START_TEST(an_answer_is_no_longer_than_half_of_the_context)
{
    struct pool_model models[] = {{.name = (char *)"small", .context = 1024},
                                  {.name = (char *)"large", .context = 131072}};
    static struct gateway gateway;
    gateway.options.max_tokens = 1024;
    gateway.pool.models = models;
    gateway.pool.n_models = 2;
    ck_assert_uint_eq(gateway_max_tokens(&gateway, "small"), 512);
    ck_assert_uint_eq(gateway_max_tokens(&gateway, "large"), 1024);
    ck_assert_uint_eq(gateway_max_tokens(&gateway, NULL), 512);
}
END_TEST

START_TEST(an_answer_is_short_while_no_context_is_known)
{
    struct pool_model loading[] = {{.name = (char *)"small"}};
    static struct gateway gateway;
    gateway.options.max_tokens = 1024;
    ck_assert_uint_eq(gateway_max_tokens(&gateway, NULL), 256);
    gateway.pool.models = loading;
    gateway.pool.n_models = 1;
    ck_assert_uint_eq(gateway_max_tokens(&gateway, "small"), 256);
    gateway.options.max_tokens = 100;
    ck_assert_uint_eq(gateway_max_tokens(&gateway, "small"), 100);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, an_answer_is_no_longer_than_half_of_the_context);
    tcase_add_test(tests, an_answer_is_short_while_no_context_is_known);
}

int main(void)
{
    return run_tests("gateway/gateway", add);
}
