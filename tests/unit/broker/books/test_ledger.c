/* SPDX-License-Identifier: MIT */
/* The ledger: one request a key, under two names after an attach, in order of their ends. */

#include "broker/books/ledger.h"
#include "tests/unit/run.h"

#include <errno.h>

static struct request_key key(uint8_t session, uint8_t id)
{
    return (struct request_key){.session = {{session}}, .id = {{id}}};
}

START_TEST(a_request_is_found_by_session_and_id_only)
{
    struct ledger ledger = {.seed = 1};
    struct journal journal = {.limit = 1000};
    struct request *request = ledger_add(&ledger, key(1, 2));
    struct request_key mine = key(1, 2), others = key(2, 2), another = key(1, 3);
    ck_assert_ptr_eq(ledger_find(&ledger, &mine), request);
    ck_assert_ptr_null(ledger_find(&ledger, &others));
    ck_assert_ptr_null(ledger_find(&ledger, &another));
    ledger_remove(&ledger, &journal, request);
    ck_assert_ptr_null(ledger_find(&ledger, &mine));
    ck_assert_uint_eq(ledger.n, 0);
}
END_TEST

START_TEST(an_attached_request_answers_to_its_home_and_its_newest_session)
{
    struct ledger ledger = {.seed = 1};
    struct journal journal = {.limit = 1000};
    struct request *request = ledger_add(&ledger, key(1, 9));
    struct request_key home = key(1, 9), second = key(2, 9), third = key(3, 9);
    ck_assert_int_eq(ledger_attach(&ledger, request, second.session), 0);
    ck_assert_ptr_eq(ledger_find(&ledger, &second), request);
    ck_assert_ptr_eq(ledger_find(&ledger, &home), request);
    ck_assert_ptr_null(ledger_find_home(&ledger, &second));
    ck_assert_int_eq(ledger_attach(&ledger, request, third.session), 0);
    ck_assert_ptr_null(ledger_find(&ledger, &second));
    ck_assert_ptr_eq(ledger_find(&ledger, &third), request);
    ck_assert_int_eq(ledger_attach(&ledger, request, home.session), 0);
    ck_assert_ptr_null(ledger_find(&ledger, &third));
    ck_assert_ptr_eq(ledger_find(&ledger, &home), request);
    ledger_remove(&ledger, &journal, request);
}
END_TEST

START_TEST(an_attach_never_hides_a_request_of_the_new_session)
{
    struct ledger ledger = {.seed = 1};
    struct journal journal = {.limit = 1000};
    struct request *a = ledger_add(&ledger, key(1, 9)), *b = ledger_add(&ledger, key(2, 9));
    ck_assert_int_eq(ledger_attach(&ledger, a, key(2, 9).session), -EEXIST);
    struct request_key second = key(2, 9);
    ck_assert_ptr_eq(ledger_find(&ledger, &second), b);
    ledger_remove(&ledger, &journal, a);
    ledger_remove(&ledger, &journal, b);
}
END_TEST

START_TEST(the_same_body_is_known_before_and_after_the_end)
{
    struct ledger ledger = {.seed = 1};
    struct journal journal = {.limit = 1000};
    struct request *request = ledger_add(&ledger, key(1, 1));
    request->body = BYTES_LITERAL("abc");
    request->body_hash = hash128("abc", 3, 0);
    ck_assert(request_same_body(request, "abc", 3));
    ck_assert(!request_same_body(request, "abd", 3));
    ck_assert(!request_same_body(request, "ab", 2));
    ledger_ended(&ledger, &journal, request, 5);
    ck_assert_uint_eq(request->body.len, 0);
    ck_assert(request_same_body(request, "abc", 3));
    ck_assert(!request_same_body(request, "abd", 3));
    ledger_remove(&ledger, &journal, request);
}
END_TEST

START_TEST(ended_requests_stand_in_the_order_of_their_ends)
{
    struct ledger ledger = {.seed = 1};
    struct journal journal = {.limit = 1000};
    struct request *a = ledger_add(&ledger, key(1, 1)), *b = ledger_add(&ledger, key(1, 2));
    ledger_ended(&ledger, &journal, b, 10);
    ledger_ended(&ledger, &journal, a, 11);
    ck_assert_ptr_eq(ledger.ended, b);
    ledger_remove(&ledger, &journal, b);
    ck_assert_ptr_eq(ledger.ended, a);
    ledger_remove(&ledger, &journal, a);
    ck_assert_ptr_null(ledger.ended);
}
END_TEST

START_TEST(room_is_made_of_the_oldest_ended_requests_and_of_no_more_than_it_takes)
{
    struct ledger ledger = {.seed = 1};
    const uint64_t each = request_overhead();
    struct journal journal = {.limit = 3 * each};
    struct request *requests[3];
    for (uint8_t i = 0; i < 3; i++) {
        requests[i] = ledger_add(&ledger, key(1, i));
        ck_assert_int_eq(journal_reserve(&journal, &requests[i]->log, each), 0);
    }
    for (int i = 0; i < 2; i++)
        ledger_ended(&ledger, &journal, requests[i], (uint64_t)i);
    ledger_make_room(&ledger, &journal, each - 100, true);
    ck_assert_ptr_eq(ledger.ended, requests[1]);
    ck_assert_uint_eq(journal.used, 2 * each);
    ledger_make_room(&ledger, &journal, each, true);
    ck_assert_uint_eq(ledger.n, 2);
    /* More than there can be: one that runs is never forgotten. */
    ledger_make_room(&ledger, &journal, 3 * each, true);
    ck_assert_uint_eq(ledger.n, 1);
    ledger_remove(&ledger, &journal, requests[2]);
    ck_assert_uint_eq(journal.used, 0);
}
END_TEST

START_TEST(room_is_made_of_what_the_session_has_that_has_most)
{
    enum { FLOOD = 50 };
    struct ledger ledger = {.seed = 1};
    const uint64_t each = request_overhead();
    struct journal journal = {.limit = (FLOOD + 2) * each};
    struct request_key quiet[] = {key(2, 1), key(3, 1)};
    for (uint8_t i = 0; i < FLOOD + 2; i++) { /* those of the others ended first */
        struct request *request = ledger_add(&ledger, i < 2 ? quiet[i] : key(1, i));
        ck_assert_int_eq(journal_reserve(&journal, &request->log, each), 0);
        ledger_ended(&ledger, &journal, request, i);
    }
    ledger_make_room(&ledger, &journal, (FLOOD - 1) * each, true);
    ck_assert_uint_eq(ledger.n, 3);
    ck_assert_ptr_nonnull(ledger_find(&ledger, &quiet[0]));
    ck_assert_ptr_nonnull(ledger_find(&ledger, &quiet[1]));
    struct request_key newest = key(1, FLOOD + 1);
    ck_assert_ptr_nonnull(ledger_find(&ledger, &newest));
    ledger_make_room(&ledger, &journal, (FLOOD + 2) * each, true);
    ck_assert_uint_eq(ledger.n, 0);
    ck_assert_ptr_null(ledger.kept);
}
END_TEST

START_TEST(what_ended_is_kept_a_minute_and_longer_while_it_is_read_or_was_asked_to_be)
{
    const uint64_t minute = LEDGER_RETENTION_NS;
    struct ledger ledger = {.seed = 1};
    struct journal journal = {.limit = 1000};
    struct request *plain = ledger_add(&ledger, key(1, 1)), *kept = ledger_add(&ledger, key(1, 2)),
                   *read = ledger_add(&ledger, key(1, 3));
    const struct request_key of_plain = key(1, 1), of_kept = key(1, 2), of_read = key(1, 3);
    kept->on_disconnect = DISCONNECT_KEEP;
    kept->keep_ns = 3 * minute;
    ledger_ended(&ledger, &journal, plain, 0);
    ledger_ended(&ledger, &journal, kept, 0);
    ledger_ended(&ledger, &journal, read, 0);
    ledger_asked(&ledger, read, minute / 2);
    ledger_forget(&ledger, &journal, minute - 1);
    ck_assert_uint_eq(ledger.n, 3);
    ledger_forget(&ledger, &journal, minute);
    ck_assert_ptr_null(ledger_find(&ledger, &of_plain));
    ck_assert_ptr_nonnull(ledger_find(&ledger, &of_read));
    ledger_forget(&ledger, &journal, 2 * minute);
    ck_assert_ptr_null(ledger_find(&ledger, &of_read));
    ck_assert_ptr_nonnull(ledger_find(&ledger, &of_kept));
    ledger_forget(&ledger, &journal, 3 * minute);
    ck_assert_uint_eq(ledger.n, 0);
    ck_assert_ptr_null(ledger.ended);
}
END_TEST

START_TEST(admissions_make_room_of_what_was_read_and_spare_what_was_not)
{
    enum { N = 12 };
    struct ledger ledger = {.seed = 1};
    const uint64_t each = request_overhead();
    struct journal journal = {.limit = N * each};
    struct request *requests[N];
    for (uint8_t i = 0; i < N; i++) {
        requests[i] = ledger_add(&ledger, key((uint8_t)(i % 2 + 1), i));
        ck_assert_int_eq(journal_reserve(&journal, &requests[i]->log, each), 0);
        ledger_ended(&ledger, &journal, requests[i], i);
    }
    ledger_taken(&ledger, &journal, requests[7]);
    ledger_taken(&ledger, &journal, requests[4]);
    ledger_taken(&ledger, &journal, requests[4]);
    ledger_make_room(&ledger, &journal, each, false);
    ck_assert_uint_eq(ledger.n, N - 1);
    ck_assert_ptr_eq(ledger.read, requests[4]); /* 7 was read before it */
    ledger_make_room(&ledger, &journal, N * each, false);
    ck_assert_uint_eq(ledger.n, N / JOURNAL_UNREAD_PART);
    ck_assert_ptr_null(ledger.read);
    ledger_taken_by(&ledger, &journal, &(struct id128){{1}});
    ledger_make_room(&ledger, &journal, N * each, false);
    for (struct request *request = ledger.ended; request; request = request->ended_next)
        ck_assert_uint_eq(request->home.session.bytes[0], 2);
    ck_assert_uint_gt(ledger.n, 0);
    ledger_make_room(&ledger, &journal, N * each, true); /* for one that runs already */
    ck_assert_uint_eq(ledger.n, 0);
    ck_assert_uint_eq(journal.used, 0);
    ck_assert_ptr_null(ledger.kept);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_ended_is_kept_a_minute_and_longer_while_it_is_read_or_was_asked_to_be);
    tcase_add_test(tests, admissions_make_room_of_what_was_read_and_spare_what_was_not);
    tcase_add_test(tests, a_request_is_found_by_session_and_id_only);
    tcase_add_test(tests, an_attached_request_answers_to_its_home_and_its_newest_session);
    tcase_add_test(tests, an_attach_never_hides_a_request_of_the_new_session);
    tcase_add_test(tests, the_same_body_is_known_before_and_after_the_end);
    tcase_add_test(tests, ended_requests_stand_in_the_order_of_their_ends);
    tcase_add_test(tests, room_is_made_of_the_oldest_ended_requests_and_of_no_more_than_it_takes);
    tcase_add_test(tests, room_is_made_of_what_the_session_has_that_has_most);
}

int main(void)
{
    return run_tests("broker/ledger", add);
}
