/* SPDX-License-Identifier: MIT */
/* Questions without an answer: answered once, by the worker that was asked, or not at all; bounded for all
 * and for each session. */

#include "broker/core/tokenize_table.h"
#include "common/clock.h"
#include "tests/unit/run.h"

#include <stdlib.h>

static struct tokenize_table table;

static void set_up(void)
{
    table = (struct tokenize_table){0};
}

static void tear_down(void)
{
    tokenize_table_deinit(&table);
}

static struct id128 session(uint32_t number)
{
    struct id128 id = {{(uint8_t)number, (uint8_t)(number >> 8)}};
    return id;
}

/* A question of a session that is a client of its own. */
static struct tokenize_question asked_by(uint32_t number, enum message_kind kind)
{
    return (struct tokenize_question){
        .session = session(number), .client = session(number), .kind = kind, .client_ref = 100 + number};
}

static int try_to_add(uint32_t number)
{
    uint64_t ref;
    const struct tokenize_question asked = asked_by(number, MESSAGE_TOKENIZE);
    return tokenize_table_add(&table, &asked, 0, 1, &ref);
}

static uint64_t add_of(uint32_t number, uint32_t worker)
{
    uint64_t ref = 0;
    const struct tokenize_question asked = asked_by(number, MESSAGE_TOKENIZE);
    ck_assert_int_eq(tokenize_table_add(&table, &asked, worker, 1, &ref), 0);
    return ref;
}

/* A large one, whose model is its first byte. */
static int keep(uint32_t number, size_t len)
{
    uint8_t *text = calloc(1, len);
    ck_assert_ptr_nonnull(text);
    text[0] = (uint8_t)('a' + number);
    const struct tokenize_question asked = asked_by(number, MESSAGE_DETOKENIZE);
    int r = tokenize_table_keep(&table, &asked, (struct bytes){text, len}, (struct bytes){text, 1}, 1);
    free(text);
    return r;
}

START_TEST(an_answer_finds_its_question_once_and_only_from_the_worker_asked)
{
    struct tokenize_question question;
    uint64_t a = add_of(7, 0), b = add_of(7, 1);
    ck_assert_uint_ne(a, b);
    ck_assert(!tokenize_table_take(&table, a, 1, &question));
    ck_assert(tokenize_table_take(&table, a, 0, &question));
    ck_assert_uint_eq(question.client_ref, 107);
    ck_assert_int_eq(question.kind, MESSAGE_TOKENIZE);
    ck_assert(!tokenize_table_take(&table, a, 0, &question));
    ck_assert(tokenize_table_take(&table, b, 1, &question));
    ck_assert_uint_eq(table.n, 0);
}
END_TEST

START_TEST(questions_are_bounded_and_end_by_time_or_with_their_worker)
{
    struct tokenize_question question;
    uint64_t until = 1 + TOKENIZE_TIMEOUT_MS * CLOCK_NS_PER_MS;
    uint32_t n = TOKENIZE_TABLE_MAX / 2; /* of each worker, from a session each; beyond, none leaves room */
    for (uint32_t i = 0; i < n; i++)
        add_of(i, 0);
    for (uint32_t i = n; i < 2 * n - 1; i++)
        add_of(i, 1);
    ck_assert_int_eq(try_to_add(999), TOKENIZE_E_FULL);
    ck_assert(!tokenize_table_expire(&table, until - 1, -1, &question));
    for (uint32_t i = n; i < 2 * n - 1; i++) {
        ck_assert(tokenize_table_expire(&table, until - 1, 1, &question));
        ck_assert_uint_eq(question.worker, 1);
    }
    ck_assert(!tokenize_table_expire(&table, until - 1, 1, &question));
    for (uint32_t i = 0; i < n; i++)
        ck_assert(tokenize_table_expire(&table, until, -1, &question));
    ck_assert_uint_eq(table.n, 0);
}
END_TEST

START_TEST(a_session_may_ask_as_much_as_it_leaves_free)
{
    for (uint32_t i = 0; i < TOKENIZE_TABLE_MAX / 2; i++)
        add_of(1, 0);
    ck_assert_int_eq(try_to_add(1), TOKENIZE_E_FULL);
    add_of(2, 0);
    ck_assert_int_eq(keep(3, TOKENIZE_TABLE_MAX_BYTES / 2), 0);
    ck_assert_int_eq(keep(3, 1), TOKENIZE_E_FULL);
    ck_assert_int_eq(keep(4, TOKENIZE_TABLE_MAX_BYTES / 4), 0);
    ck_assert_int_eq(keep(4, 1), TOKENIZE_E_FULL);
    ck_assert_uint_eq(table.waiting_bytes, TOKENIZE_TABLE_MAX_BYTES / 4 * 3);
}
END_TEST

START_TEST(all_sessions_of_a_client_have_one_share)
{
    struct tokenize_question asked = asked_by(1, MESSAGE_TOKENIZE), gone;
    uint64_t ref;
    for (uint32_t i = 0; i < TOKENIZE_TABLE_MAX / 2; i++) {
        asked.session = session(10 + i);
        ck_assert_int_eq(tokenize_table_add(&table, &asked, 0, 1, &ref), 0);
    }
    asked.session = session(5);
    ck_assert_int_eq(tokenize_table_add(&table, &asked, 0, 1, &ref), TOKENIZE_E_FULL);
    ck_assert_int_eq(keep(2, 1000), 0);
    struct tokenize_had had = tokenize_table_had(&table, &asked.client);
    ck_assert_uint_eq(had.questions, TOKENIZE_TABLE_MAX / 2);
    ck_assert_uint_eq(had.bytes, 0);
    struct id128 other = session(2);
    ck_assert_uint_eq(tokenize_table_had(&table, &other).bytes, 1000);
    for (int i = 0; i < 2; i++)
        ck_assert(tokenize_table_expire(&table, 0, 0, &gone));
    ck_assert_int_eq(tokenize_table_add(&table, &asked, 0, 1, &ref), 0);
}
END_TEST

START_TEST(what_waits_is_asked_in_its_order_and_gives_its_room_back)
{
    struct tokenize_question gone, *first, *second;
    add_of(1, 0);
    ck_assert_int_eq(keep(2, 1000), 0);
    add_of(3, 0);
    ck_assert_int_eq(keep(4, 500), 0);
    first = table.waiting;
    ck_assert_uint_eq(first->client_ref, 102);
    ck_assert(bytes_equal(first->model, BYTES_LITERAL("c")));
    second = first->next;
    ck_assert_uint_eq(second->client_ref, 104);
    ck_assert_ptr_null(second->next);

    struct buffer message = tokenize_table_asked(&table, first, 5);
    ck_assert_uint_eq(message.len, 1000);
    buffer_deinit(&message);
    ck_assert_uint_eq(table.waiting_bytes, 500);
    ck_assert_ptr_eq(table.waiting, second);
    ck_assert(tokenize_table_take(&table, first->ref, 5, &gone));
    /* One that still waits ends by time too. */
    ck_assert(!tokenize_table_expire(&table, 0, 5, &gone));
    ck_assert(tokenize_table_take(&table, second->ref, TOKENIZE_NO_WORKER, &gone));
    ck_assert_uint_eq(table.waiting_bytes, 0);
    ck_assert_ptr_null(table.waiting);
    ck_assert_uint_eq(table.n, 2);
}
END_TEST

START_TEST(a_place_that_is_used_again_stands_at_the_end_of_the_line)
{
    struct tokenize_question gone;
    for (uint32_t i = 1; i <= 3; i++)
        ck_assert_int_eq(keep(i, 100), 0);
    ck_assert(tokenize_table_take(&table, table.waiting->ref, TOKENIZE_NO_WORKER, &gone));
    ck_assert_ptr_null(gone.next);
    ck_assert_int_eq(keep(4, 100), 0);
    ck_assert_ptr_eq(table.waiting->next->next, &table.questions[0]);
    for (uint64_t wanted = 102; wanted <= 104; wanted++) {
        ck_assert_uint_eq(table.waiting->client_ref, wanted);
        ck_assert(tokenize_table_take(&table, table.waiting->ref, TOKENIZE_NO_WORKER, &gone));
    }
    ck_assert_ptr_null(table.waiting);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, an_answer_finds_its_question_once_and_only_from_the_worker_asked);
    tcase_add_test(tests, questions_are_bounded_and_end_by_time_or_with_their_worker);
    tcase_add_test(tests, a_session_may_ask_as_much_as_it_leaves_free);
    tcase_add_test(tests, all_sessions_of_a_client_have_one_share);
    tcase_add_test(tests, what_waits_is_asked_in_its_order_and_gives_its_room_back);
    tcase_add_test(tests, a_place_that_is_used_again_stands_at_the_end_of_the_line);
}

int main(void)
{
    return run_tests("broker/tokenize", add);
}
