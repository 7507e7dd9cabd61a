/* SPDX-License-Identifier: MIT */
/* Questions under way: answered once, by the worker that was asked, or not at all. */

#include "broker/tokenize.h"
#include "common/clock.h"
#include "tests/unit/run.h"

static const struct id128 session = {{7}};

START_TEST(an_answer_finds_its_question_once_and_only_from_the_worker_asked)
{
    struct tokenize tokenize = {0};
    struct tokenize_entry entry;
    uint64_t a, b;
    ck_assert(tokenize_add(&tokenize, session, 100, 0, 1, &a));
    ck_assert(tokenize_add(&tokenize, session, 100, 1, 1, &b));
    ck_assert_uint_ne(a, b);
    ck_assert(!tokenize_take(&tokenize, a, 1, &entry));
    ck_assert(tokenize_take(&tokenize, a, 0, &entry));
    ck_assert_uint_eq(entry.client_ref, 100);
    ck_assert(!tokenize_take(&tokenize, a, 0, &entry));
    ck_assert(tokenize_take(&tokenize, b, 1, &entry));
    ck_assert_uint_eq(tokenize.n, 0);
}
END_TEST

START_TEST(questions_are_bounded_and_end_by_time_or_with_their_worker)
{
    struct tokenize tokenize = {0};
    struct tokenize_entry entry;
    uint64_t ref, until = 1 + TOKENIZE_TIMEOUT_MS * CLOCK_NS_PER_MS;
    for (uint32_t i = 0; i < TOKENIZE_MAX; i++)
        ck_assert(tokenize_add(&tokenize, session, i, i % 2, 1, &ref));
    ck_assert(!tokenize_add(&tokenize, session, 0, 0, 1, &ref));
    ck_assert(!tokenize_expire(&tokenize, until - 1, -1, &entry));
    for (int i = 0; i < TOKENIZE_MAX / 2; i++) {
        ck_assert(tokenize_expire(&tokenize, until - 1, 1, &entry));
        ck_assert_uint_eq(entry.worker, 1);
    }
    ck_assert(!tokenize_expire(&tokenize, until - 1, 1, &entry));
    for (int i = 0; i < TOKENIZE_MAX / 2; i++)
        ck_assert(tokenize_expire(&tokenize, until, -1, &entry));
    ck_assert_uint_eq(tokenize.n, 0);
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
