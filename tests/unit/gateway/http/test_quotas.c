/* SPDX-License-Identifier: MIT */
/* What is left of a key's limits, as headers. */

#include "gateway/http/quotas.h"
#include "tests/unit/run.h"

#include <string.h>

static const char *header(struct MHD_Response *response, const char *name)
{
    return MHD_get_response_header(response, name);
}

START_TEST(durations_are_written_as_openai_does)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {{0, "0s"},        {1, "1ms"},          {999, "999ms"},        {1000, "1s"},
                 {1500, "1.500s"}, {59999, "59.999s"},  {60000, "1m0s"},       {60001, "1m1s"},
                 {360000, "6m0s"}, {3600000, "1h0m0s"}, {86400000, "24h0m0s"}, {86399000, "23h59m59s"}};
    char text[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(quotas_duration(cases[i].ms, text), cases[i].text);
}
END_TEST

START_TEST(only_limits_that_there_are_have_headers)
{
    const struct key_quotas quotas = {.requests = {60, 59, 1000}};
    struct MHD_Response *response = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    quotas_add_openai(&quotas, response);
    quotas_add_anthropic(&quotas, response);
    ck_assert_str_eq(header(response, "x-ratelimit-limit-requests"), "60");
    ck_assert_str_eq(header(response, "x-ratelimit-remaining-requests"), "59");
    ck_assert_str_eq(header(response, "x-ratelimit-reset-requests"), "1s");
    ck_assert_str_eq(header(response, "anthropic-ratelimit-requests-remaining"), "59");
    ck_assert_uint_eq(strlen(header(response, "anthropic-ratelimit-requests-reset")),
                      strlen("2026-11-27T20:00:00Z"));
    ck_assert_ptr_null(header(response, "x-ratelimit-limit-tokens"));
    ck_assert_ptr_null(header(response, "anthropic-ratelimit-tokens-limit"));
    MHD_destroy_response(response);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, durations_are_written_as_openai_does);
    tcase_add_test(tests, only_limits_that_there_are_have_headers);
}

int main(void)
{
    return run_tests("gateway/quotas", add);
}
