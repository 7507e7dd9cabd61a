/* SPDX-License-Identifier: MIT */
/* Limits a minute and a day, where several pools answer: how much passes, and that it adds up over gateways.
 */

#include "gateway/http/use.h"
#include "common/clock.h"
#include "tests/unit/run.h"

#include <string.h>

#define MINUTE_NS (60 * CLOCK_NS_PER_S)

static uint64_t now = 1000 * CLOCK_NS_PER_S;
static struct refusal refusal;

/* Asks as often as every `step` for so long; how many pass. */
static int pass(struct use *use, uint64_t step, uint64_t ns)
{
    int n = 0;
    for (const uint64_t until = now + ns; now < until; now += step)
        if (use_check(use, now, &refusal) == 0) {
            use_count(use, 1, 0, now);
            n++;
        }
    return n;
}

START_TEST(a_full_limit_passes_at_once_and_then_its_rate)
{
    static const uint64_t limits[] = {1, 2, 3, 60, 1000};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct use use = {.limits = {[QUERN_RPM] = limits[i]}};
        const int first = pass(&use, CLOCK_NS_PER_MS / 100, 20 * CLOCK_NS_PER_MS);
        ck_assert_int_ge(first, (int)limits[i]);
        ck_assert_int_le(first, (int)limits[i] + 1);
        const int then = pass(&use, 50 * CLOCK_NS_PER_MS, 20 * MINUTE_NS);
        ck_assert_int_ge(then, (int)(20 * limits[i]) - 2 - (int)limits[i] / 50);
        ck_assert_int_le(then, (int)(20 * limits[i]) + 2);
        ck_assert_int_eq(use_check(&use, now + 20 * MINUTE_NS, &refusal), 0);
    }
}
END_TEST

START_TEST(the_time_to_retry_is_when_the_next_passes)
{
    struct use use = {.limits = {[QUERN_RPM] = 4, [QUERN_RPD] = 100}};
    use_count(&use, 4, 0, now);
    ck_assert_int_eq(use_check(&use, now, &refusal), REFUSED);
    ck_assert_uint_eq(refusal.status, 429);
    ck_assert_str_eq(refusal.code, "rate_limit_exceeded");
    ck_assert_ptr_nonnull(strstr(refusal.text, "the limit of 4 requests a minute is reached (rpm)"));
    ck_assert_uint_ge(refusal.retry_after_s, 4);
    ck_assert_uint_le(refusal.retry_after_s, 16);
    const uint64_t retry = refusal.retry_after_s;
    ck_assert_int_eq(use_check(&use, now + (retry - 1) * CLOCK_NS_PER_S - CLOCK_NS_PER_MS, &refusal),
                     REFUSED);
    ck_assert_int_eq(use_check(&use, now + retry * CLOCK_NS_PER_S, &refusal), 0);
    use_count(&use, 0, 1e15, now); /* which have no limit */
    ck_assert_int_eq(use_check(&use, now + retry * CLOCK_NS_PER_S, &refusal), 0);
}
END_TEST

START_TEST(tokens_of_a_day_are_counted_as_they_come)
{
    struct use use = {.limits = {[QUERN_TPD] = 1000}};
    use_count(&use, 1, 900, now);
    ck_assert_int_eq(use_check(&use, now, &refusal), 0);
    use_count(&use, 0, 1100, now); /* of an answer that had begun */
    ck_assert_int_eq(use_check(&use, now, &refusal), REFUSED);
    ck_assert_ptr_nonnull(strstr(refusal.text, "1000 tokens a day"));
    ck_assert_uint_gt(refusal.retry_after_s, 50000); /* ln 2 of a day, about */
    ck_assert_uint_lt(refusal.retry_after_s, 70000);
}
END_TEST

/* Two gateways that tell each other now and then let pass together what one would alone. */
START_TEST(what_was_used_elsewhere_counts)
{
    struct use one = {.limits = {[QUERN_RPM] = 30}}, other = one;
    double told[QUERN_RATES];
    int n = 0;
    for (int i = 0; i < 40 * 60 * 4; i++) {
        use_own(&one, now, told);
        use_hear(&other, told, now);
        use_own(&other, now, told);
        use_hear(&one, told, now);
        const uint64_t before = now;
        n += pass(&one, 125 * CLOCK_NS_PER_MS, 250 * CLOCK_NS_PER_MS);
        now = before;
        n += pass(&other, 125 * CLOCK_NS_PER_MS, 250 * CLOCK_NS_PER_MS);
        now = before + 250 * CLOCK_NS_PER_MS;
    }
    ck_assert_int_ge(n, 30 * 40); /* of 40 minutes, and the burst of each in the beginning */
    ck_assert_int_le(n, 30 * 40 + 60 + 120);
}
END_TEST

START_TEST(a_request_that_no_pool_took_is_given_back)
{
    struct use use = {.limits = {[QUERN_RPM] = 1}};
    use_count(&use, 1, 0, now);
    ck_assert_int_eq(use_check(&use, now, &refusal), REFUSED);
    use_count(&use, -1, 0, now + CLOCK_NS_PER_S); /* a little of it has been forgotten meanwhile */
    ck_assert_int_eq(use_check(&use, now + CLOCK_NS_PER_S, &refusal), 0);
    double own[QUERN_RATES];
    use_own(&use, now + CLOCK_NS_PER_S, own);
    ck_assert_double_eq(own[QUERN_RPM], 0);
}
END_TEST

START_TEST(of_what_pools_tell_and_what_is_counted_the_less_is_told)
{
    struct use use = {.limits = {[QUERN_RPM] = 10, [QUERN_TPD] = 1000}};
    struct quern_quota requests = {10, 9, 6000}, tokens = {0, 0, 0};
    use_count(&use, 4, 250, now);
    use_lower(&use, now, &requests, &tokens);
    ck_assert_uint_eq(requests.limit, 10);
    ck_assert_uint_eq(requests.remaining, 6);
    ck_assert_uint_eq(requests.reset_ms, 24000);
    ck_assert_uint_eq(tokens.limit, 1000);
    ck_assert_uint_eq(tokens.remaining, 750);
    requests = (struct quern_quota){10, 2, 5};
    use_lower(&use, now, &requests, &tokens);
    ck_assert_uint_eq(requests.remaining, 2);
    ck_assert_uint_eq(requests.reset_ms, 5);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_full_limit_passes_at_once_and_then_its_rate);
    tcase_add_test(tests, the_time_to_retry_is_when_the_next_passes);
    tcase_add_test(tests, tokens_of_a_day_are_counted_as_they_come);
    tcase_add_test(tests, what_was_used_elsewhere_counts);
    tcase_add_test(tests, a_request_that_no_pool_took_is_given_back);
    tcase_add_test(tests, of_what_pools_tell_and_what_is_counted_the_less_is_told);
}

int main(void)
{
    return run_tests("gateway/use", add);
}
