/* SPDX-License-Identifier: MIT */
/* What the pool says of a request, in HTTP and in each family's JSON. */

#include "gateway/json/refusal.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <jansson.h>

static struct refusal of_error(const char *name, const char *text, uint32_t retry_after_ms)
{
    struct refusal refusal;
    struct quern_end end = {
        .reason = QUERN_ERROR, .error = name, .text = text, .retry_after_ms = retry_after_ms};
    refusal_of_end(&end, &refusal);
    return refusal;
}

START_TEST(each_error_of_the_pool_has_its_status)
{
    static const struct {
        const char *name;
        unsigned status;
    } expected[] = {{"bad_request", 400}, {"too_long", 400},    {"overloaded", 429},  {"unsupported", 400},
                    {"no_worker", 503},   {"worker_lost", 503}, {"draining", 503},    {"deadline", 504},
                    {"model_error", 500}, {"internal", 500},    {"never heard", 500}, {"conflict", 500}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct refusal refusal = of_error(expected[i].name, "why", 0);
        ck_assert_uint_eq(refusal.status, expected[i].status);
        ck_assert_str_eq(refusal.text, "why");
        ck_assert(refusal.status != 429 || refusal.retry_after_s > 0);
        ck_assert(refusal.status != 503 || refusal.retry_after_s > 0);
        ck_assert_str_eq(of_error(expected[i].name, "", 0).text, expected[i].name);
    }
    ck_assert_uint_eq(of_error("overloaded", "", 1).retry_after_s, 1);
    ck_assert_uint_eq(of_error("overloaded", "", 1001).retry_after_s, 2);
    ck_assert_uint_eq(of_error("overloaded", "", UINT32_MAX).retry_after_s, 4294968);
}
END_TEST

START_TEST(codes_of_the_library_too)
{
    static const struct {
        int code;
        const char *text, *told;
        unsigned status;
    } expected[] = {
        {-EINVAL, "n: no", "n: no", 400},
        {-EMSGSIZE, "large", "large", 413},
        {-EAGAIN, "busy", "busy", 429},
        {-ENOMEM, "", "the gateway is out of memory", 500},
        {-ETIMEDOUT, "silent", "silent", 503},
        {-EREMOTEIO, "no_worker: none is ready", "none is ready", 503},
        {-EREMOTEIO, "too_long: x", "x", 400},
        {-EREMOTEIO, "", "", 500},
        {-EREMOTEIO, "a text without a name that is longer than any name could be", NULL, 500},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct refusal refusal;
        refusal_of_code(expected[i].code, expected[i].text, &refusal);
        ck_assert_uint_eq(refusal.status, expected[i].status);
        ck_assert_str_eq(refusal.text, expected[i].told ? expected[i].told : expected[i].text);
    }
}
END_TEST

static json_t *told(const struct refusal *refusal, enum family family)
{
    struct json_out out = {0};
    refusal_write(refusal, family, &out);
    json_t *json = json_loadb((const char *)out.buffer.data, out.buffer.len, 0, NULL);
    ck_assert_ptr_nonnull(json);
    json_out_deinit(&out);
    return json;
}

START_TEST(each_family_is_told_in_its_form)
{
    struct refusal refusal;
    const char *message, *type, *param, *outer;
    ck_assert_int_eq(refuse(&refusal, 400, "odd", "a[1]", "%s is \"odd\"\n", "a[1]"), REFUSED);
    json_t *json = told(&refusal, FAMILY_OPENAI);
    ck_assert_int_eq(
        json_unpack(json, "{s:{s:s,s:s,s:s}}", "error", "message", &message, "type", &type, "param", &param),
        0);
    ck_assert_str_eq(message, "a[1] is \"odd\"?");
    ck_assert_str_eq(type, "invalid_request_error");
    ck_assert_str_eq(param, "a[1]");
    json_decref(json);
    refusal.status = 503;
    json = told(&refusal, FAMILY_ANTHROPIC);
    ck_assert_int_eq(
        json_unpack(json, "{s:s,s:{s:s,s:s}}", "type", &outer, "error", "message", &message, "type", &type),
        0);
    ck_assert_str_eq(outer, "error");
    ck_assert_str_eq(type, "overloaded_error");
    json_decref(json);
    json = told(&refusal, FAMILY_OLLAMA);
    ck_assert_int_eq(json_unpack(json, "{s:s}", "error", &message), 0);
    json_decref(json);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, each_error_of_the_pool_has_its_status);
    tcase_add_test(tests, codes_of_the_library_too);
    tcase_add_test(tests, each_family_is_told_in_its_form);
}

int main(void)
{
    return run_tests("gateway refusal", add);
}
