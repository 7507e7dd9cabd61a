/* SPDX-License-Identifier: MIT */
/* What a key may have, as time goes by. */

#include "tests/unit/run.h"

#include <string.h>

#include "broker/settings/allowance.h"
#include "common/clock.h"

#define SECOND CLOCK_NS_PER_S

static struct error reason;
static uint32_t retry_ms;

START_TEST(without_a_key_or_a_bound_there_is_none)
{
    const struct allowance none = {0}, some = {.sessions = 1, .tokens = 1};
    struct client_key key = {.sessions = 1000};
    ck_assert_int_eq(allowance_check_session(&some, NULL, &reason), PROTO_OK);
    ck_assert_int_eq(allowance_check_session(&none, &key, &reason), PROTO_OK);
    allowance_charge(&none, &key, 1 << 30, SECOND);
    allowance_charge(&some, NULL, 1 << 30, SECOND);
    ck_assert_int_eq(allowance_check_tokens(&none, &key, SECOND, &retry_ms, &reason), PROTO_OK);
    ck_assert_int_eq(allowance_check_tokens(&some, NULL, SECOND, &retry_ms, &reason), PROTO_OK);
}
END_TEST

START_TEST(sessions_are_counted_for_the_key)
{
    const struct allowance allowance = {.sessions = 2};
    struct client_key key = {.sessions = 1};
    ck_assert_int_eq(allowance_check_session(&allowance, &key, &reason), PROTO_OK);
    key.sessions = 2;
    ck_assert_int_eq(allowance_check_session(&allowance, &key, &reason), PROTO_OVERLOADED);
    ck_assert_str_eq(reason.text,
                     "this client's key has 2 sessions open; at most 2 are allowed (client-sessions)");
}
END_TEST

START_TEST(subscriptions_are_bounded_by_their_number)
{
    const struct allowance allowance = {.subscriptions = 2}, none = {0};
    const struct client_key key = {0};
    ck_assert_int_eq(allowance_check_subscription(&allowance, &key, 1, &reason), PROTO_OK);
    ck_assert_int_eq(allowance_check_subscription(&allowance, &key, 2, &reason), PROTO_OVERLOADED);
    ck_assert_str_eq(
        reason.text,
        "this client's key has 2 subscriptions of the stream; at most 2 are allowed (client-subscriptions)");
    ck_assert_int_eq(allowance_check_subscription(&allowance, NULL, 2, &reason), PROTO_OK);
    ck_assert_int_eq(allowance_check_subscription(&none, &key, 1 << 30, &reason), PROTO_OK);
}
END_TEST

START_TEST(a_minutes_tokens_may_be_had_at_once_and_come_back_in_a_minute)
{
    const struct allowance allowance = {.tokens = 600};
    struct client_key key = {0};
    ck_assert_int_eq(allowance_check_tokens(&allowance, &key, SECOND, &retry_ms, &reason), PROTO_OK);
    allowance_charge(&allowance, &key, 599, SECOND);
    ck_assert_int_eq(allowance_check_tokens(&allowance, &key, SECOND, &retry_ms, &reason), PROTO_OK);
    allowance_charge(&allowance, &key, 101, SECOND); /* what runs is not stopped */
    ck_assert_int_eq(allowance_check_tokens(&allowance, &key, SECOND, &retry_ms, &reason), PROTO_OVERLOADED);
    ck_assert_msg(strstr(reason.text, "has used its 600 tokens a minute (client-tokens): more in "), "%s",
                  reason.text);
    /* A hundred too many are ten seconds, and one more a tenth. */
    ck_assert_uint_ge(retry_ms, 10100);
    ck_assert_uint_le(retry_ms, 10102);
    uint64_t then = SECOND + retry_ms * CLOCK_NS_PER_MS;
    ck_assert_int_eq(allowance_check_tokens(&allowance, &key, SECOND * 10, &retry_ms, &reason),
                     PROTO_OVERLOADED);
    ck_assert_int_eq(allowance_check_tokens(&allowance, &key, then, &retry_ms, &reason), PROTO_OK);
    /* However long it rests, it never has more than a minute's. */
    allowance_check_tokens(&allowance, &key, then + 3600 * SECOND, &retry_ms, &reason);
    ck_assert_double_eq(key.tokens, 600);
}
END_TEST

START_TEST(who_has_had_all_is_told_when_there_is_one_more)
{
    const struct allowance allowance = {.tokens = 600};
    struct client_key key = {0};
    allowance_charge(&allowance, &key, 600, SECOND);
    ck_assert_double_eq(key.tokens, 0);
    ck_assert_int_eq(allowance_check_tokens(&allowance, &key, SECOND, &retry_ms, &reason), PROTO_OVERLOADED);
    ck_assert_uint_eq(retry_ms, 101);
    ck_assert_str_eq(reason.text,
                     "this client's key has used its 600 tokens a minute (client-tokens): more in 1 s");
    allowance_charge(&allowance, &key, 100, SECOND);
    ck_assert_int_eq(allowance_check_tokens(&allowance, &key, SECOND, &retry_ms, &reason), PROTO_OVERLOADED);
    ck_assert_uint_eq(retry_ms, 10101);
    ck_assert_ptr_nonnull(strstr(reason.text, "more in 11 s"));
    allowance_charge(&allowance, &key, 0, 7 * SECOND); /* sixty have come back */
    ck_assert_double_eq(key.tokens, -40);
}
END_TEST

START_TEST(a_wait_beyond_all_numbers_is_the_longest_that_can_be_told)
{
    const struct allowance allowance = {.tokens = 1};
    struct client_key key = {0};
    allowance_charge(&allowance, &key, 1 << 30, SECOND);
    ck_assert_int_eq(allowance_check_tokens(&allowance, &key, SECOND, &retry_ms, &reason), PROTO_OVERLOADED);
    ck_assert_uint_eq(retry_ms, UINT32_MAX);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, without_a_key_or_a_bound_there_is_none);
    tcase_add_test(tests, sessions_are_counted_for_the_key);
    tcase_add_test(tests, subscriptions_are_bounded_by_their_number);
    tcase_add_test(tests, a_minutes_tokens_may_be_had_at_once_and_come_back_in_a_minute);
    tcase_add_test(tests, who_has_had_all_is_told_when_there_is_one_more);
    tcase_add_test(tests, a_wait_beyond_all_numbers_is_the_longest_that_can_be_told);
}

int main(void)
{
    return run_tests("allowance", add);
}
