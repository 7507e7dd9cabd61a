/* SPDX-License-Identifier: MIT */
/* Questions under way: answered once, by the worker that was asked, or not at all. */

#include "broker/tokenize_table.h"
#include "common/clock.h"
#include "tests/unit/run.h"

static const struct id128 session = {{7}};

START_TEST(an_answer_finds_its_question_once_and_only_from_the_worker_asked)
{
    struct tokenize_table table = {0};
    struct tokenize_question question;
    uint64_t a, b;
    ck_assert(tokenize_table_add(&table, session, 100, 0, 1, &a));
    ck_assert(tokenize_table_add(&table, session, 100, 1, 1, &b));
    ck_assert_uint_ne(a, b);
    ck_assert(!tokenize_table_take(&table, a, 1, &question));
    ck_assert(tokenize_table_take(&table, a, 0, &question));
    ck_assert_uint_eq(question.client_ref, 100);
    ck_assert(!tokenize_table_take(&table, a, 0, &question));
    ck_assert(tokenize_table_take(&table, b, 1, &question));
    ck_assert_uint_eq(table.n, 0);
}
END_TEST

START_TEST(questions_are_bounded_and_end_by_time_or_with_their_worker)
{
    struct tokenize_table table = {0};
    struct tokenize_question question;
    uint64_t ref, until = 1 + TOKENIZE_TIMEOUT_MS * CLOCK_NS_PER_MS;
    for (uint32_t i = 0; i < TOKENIZE_TABLE_MAX; i++)
        ck_assert(tokenize_table_add(&table, session, i, i % 2, 1, &ref));
    ck_assert(!tokenize_table_add(&table, session, 0, 0, 1, &ref));
    ck_assert(!tokenize_table_expire(&table, until - 1, -1, &question));
    for (int i = 0; i < TOKENIZE_TABLE_MAX / 2; i++) {
        ck_assert(tokenize_table_expire(&table, until - 1, 1, &question));
        ck_assert_uint_eq(question.worker, 1);
    }
    ck_assert(!tokenize_table_expire(&table, until - 1, 1, &question));
    for (int i = 0; i < TOKENIZE_TABLE_MAX / 2; i++)
        ck_assert(tokenize_table_expire(&table, until, -1, &question));
    ck_assert_uint_eq(table.n, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, an_answer_finds_its_question_once_and_only_from_the_worker_asked);
    tcase_add_test(tests, questions_are_bounded_and_end_by_time_or_with_their_worker);
}

int main(void)
{
    return run_tests("broker/tokenize", add);
}
