/* SPDX-License-Identifier: MIT */
/* Shares: the rule, and a table that has nobody in it who has nothing. */

#include "broker/choose/share.h"
#include "tests/unit/run.h"

START_TEST(each_of_n_sessions_gets_a_part_in_n_plus_one)
{
    enum { ALL = 1000 };
    uint64_t had[3] = {0}, free = ALL;
    for (int round = 0; round < ALL; round++)
        for (int i = 0; i < 3; i++)
            if (share_allows(had[i], 1, free)) {
                had[i]++;
                free--;
            }
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_ge(had[i], ALL / 4 - 1);
        ck_assert_uint_le(had[i], ALL / 4 + 1);
    }
}
END_TEST

START_TEST(the_rule_holds_at_the_ends_of_its_numbers)
{
    ck_assert(!share_allows(0, 1, 0));
    ck_assert(!share_allows(0, 1, 1));
    ck_assert(share_allows(0, 1, 2));
    ck_assert(!share_allows(1, 1, 2));
    ck_assert(!share_allows(UINT64_MAX, 1, UINT64_MAX));
    ck_assert(!share_allows(1, UINT64_MAX, UINT64_MAX));
    ck_assert(share_allows(0, UINT64_MAX / 2, UINT64_MAX));
}
END_TEST

START_TEST(a_share_is_there_while_its_session_has_requests)
{
    struct shares shares = {.seed = 3};
    struct id128 a = {{1}}, b = {{2}};
    ck_assert_ptr_null(share_find(&shares, &a));
    struct share *share = share_take(&shares, &a);
    ck_assert_ptr_eq(share_take(&shares, &a), share);
    ck_assert_ptr_ne(share_take(&shares, &b), share);
    share_release(&shares, share);
    ck_assert_ptr_eq(share_find(&shares, &a), share);
    share_release(&shares, share);
    ck_assert_ptr_null(share_find(&shares, &a));
    share_release(&shares, share_find(&shares, &b));
    ck_assert_ptr_null(shares.by_id);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, each_of_n_sessions_gets_a_part_in_n_plus_one);
    tcase_add_test(tests, the_rule_holds_at_the_ends_of_its_numbers);
    tcase_add_test(tests, a_share_is_there_while_its_session_has_requests);
}

int main(void)
{
    return run_tests("broker/share", add);
}
