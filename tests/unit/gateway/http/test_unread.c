/* SPDX-License-Identifier: MIT */
/* Who has to go when answers that are not read fill their budget. */

#include "gateway/http/unread.h"

#include "common/clock.h"
#include "tests/unit/run.h"

#define KB ((size_t)1024)

static struct unread unread;
static struct unread_share shares[4];
static struct unread_share *displaced[4];
static size_t n_displaced;

static void displace(struct unread_share *share)
{
    displaced[n_displaced++] = share;
    unread_give(&unread, share, share->bytes);
    share->state = UNREAD_ENDED;
}

static void set_up(void)
{
    unread = (struct unread){.budget.most = 1000 * KB, .displace = displace};
    n_displaced = 0;
    for (size_t i = 0; i < 4; i++) {
        shares[i] = (struct unread_share){0};
        unread_begin(&unread, &shares[i]);
    }
}

static void tear_down(void)
{
    for (size_t i = 0; i < 4; i++)
        unread_end(&unread, &shares[i]);
    ck_assert_uint_eq(unread.budget.used, 0);
    ck_assert_ptr_null(unread.shares);
}

/* It has been offered for so long. */
static void offered_for(struct unread_share *share, uint64_t seconds, size_t taken)
{
    unread_offer(share);
    share->behind_ns = clock_ns() - seconds * CLOCK_NS_PER_S;
    share->taken = taken;
}

START_TEST(what_fits_displaces_nobody)
{
    ck_assert(unread_take(&unread, &shares[0], 600 * KB, false));
    offered_for(&shares[0], 100, 0);
    ck_assert(unread_take(&unread, &shares[1], 400 * KB, false));
    ck_assert_uint_eq(n_displaced, 0);
    ck_assert_uint_eq(unread.budget.used, 1000 * KB);
}
END_TEST

START_TEST(the_largest_slow_reader_goes_first)
{
    ck_assert(unread_take(&unread, &shares[0], 300 * KB, false));
    ck_assert(unread_take(&unread, &shares[1], 200 * KB, false));
    ck_assert(unread_take(&unread, &shares[2], 500 * KB, false));
    offered_for(&shares[0], 20, 20 * 63 * KB);
    offered_for(&shares[1], 11, 0);
    offered_for(&shares[2], 20, 20 * 64 * KB); /* fast enough */
    ck_assert(unread_take(&unread, &shares[3], 400 * KB, false));
    ck_assert_uint_eq(n_displaced, 2);
    ck_assert_ptr_eq(displaced[0], &shares[0]);
    ck_assert_ptr_eq(displaced[1], &shares[1]);
    ck_assert_uint_eq(shares[3].bytes, 400 * KB);
}
END_TEST

START_TEST(a_new_answer_is_refused_while_nobody_is_slow)
{
    ck_assert(unread_take(&unread, &shares[0], 1000 * KB, false));
    offered_for(&shares[0], 9, 0); /* not for long enough */
    ck_assert(!unread_take(&unread, &shares[1], 100 * KB, false));
    ck_assert_uint_eq(n_displaced, 0);
    ck_assert_uint_eq(shares[1].bytes, 0);
    ck_assert_uint_eq(unread.budget.used, 1000 * KB);
}
END_TEST

START_TEST(a_new_answer_displaces_one_in_the_making_that_is_far_larger)
{
    ck_assert(unread_take(&unread, &shares[0], 600 * KB, false));
    ck_assert(unread_take(&unread, &shares[1], 400 * KB, false));
    ck_assert(!unread_take(&unread, &shares[2], 151 * KB, false));
    ck_assert_uint_eq(n_displaced, 0);
    ck_assert(unread_take(&unread, &shares[2], 150 * KB, false));
    ck_assert_uint_eq(n_displaced, 1);
    ck_assert_ptr_eq(displaced[0], &shares[0]);
}
END_TEST

START_TEST(a_stream_under_way_displaces_the_largest_be_it_itself)
{
    ck_assert(unread_take(&unread, &shares[0], 700 * KB, false));
    ck_assert(unread_take(&unread, &shares[1], 300 * KB, false));
    offered_for(&shares[0], 0, 0);
    offered_for(&shares[1], 0, 0);
    ck_assert(unread_take(&unread, &shares[2], 1, true));
    ck_assert_ptr_eq(displaced[0], &shares[0]);
    ck_assert(!unread_take(&unread, &shares[1], 701 * KB, true));
    ck_assert_ptr_eq(displaced[1], &shares[1]);
    ck_assert_uint_eq(shares[2].bytes, 1);
}
END_TEST

START_TEST(a_few_bytes_are_always_taken_and_count)
{
    ck_assert(unread_take(&unread, &shares[0], 1000 * KB, false));
    unread_force(&unread, &shares[1], 10);
    ck_assert_uint_eq(unread.budget.used, 1000 * KB + 10);
    ck_assert(!unread_take(&unread, &shares[1], SIZE_MAX, false));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_fits_displaces_nobody);
    tcase_add_test(tests, the_largest_slow_reader_goes_first);
    tcase_add_test(tests, a_new_answer_is_refused_while_nobody_is_slow);
    tcase_add_test(tests, a_new_answer_displaces_one_in_the_making_that_is_far_larger);
    tcase_add_test(tests, a_stream_under_way_displaces_the_largest_be_it_itself);
    tcase_add_test(tests, a_few_bytes_are_always_taken_and_count);
}

int main(void)
{
    return run_tests("gateway unread", add);
}
