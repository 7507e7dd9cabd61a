/* SPDX-License-Identifier: MIT */
/* Sessions: who says hello with the 16 bytes owns the session, one peer at a time. */

#include "broker/books/session.h"
#include "broker/books/request.h"
#include "common/clock.h"
#include "tests/unit/run.h"

static struct peer peer_named(uint8_t name)
{
    return (struct peer){.len = 5, .bytes = {0, 1, 2, 3, name}};
}

static void close_all(struct sessions *sessions)
{
    struct session *session, *next;
    HASH_ITER(by_id, sessions->by_id, session, next)
    {
        session_close(sessions, session);
    }
    ck_assert_uint_eq(sessions->n, 0);
    ck_assert_ptr_null(sessions->by_peer);
}

START_TEST(a_session_is_found_by_its_id_and_by_its_peer)
{
    struct sessions sessions = {.seed = 3};
    struct id128 id = {{7}}, other = {{8}};
    struct peer peer = peer_named(1), stranger = peer_named(2);
    struct session *session = session_open(&sessions, id, &peer, 100);
    ck_assert_ptr_eq(session_find(&sessions, &id), session);
    ck_assert_ptr_eq(session_of_peer(&sessions, &peer), session);
    ck_assert_ptr_null(session_find(&sessions, &other));
    ck_assert_ptr_null(session_of_peer(&sessions, &stranger));
    close_all(&sessions);
}
END_TEST

START_TEST(a_client_that_reconnects_takes_its_session_along)
{
    struct sessions sessions = {.seed = 3};
    struct id128 id = {{7}};
    struct peer before = peer_named(1), after = peer_named(2);
    struct session *session = session_open(&sessions, id, &before, 100);
    session_doom(&sessions, session);
    ck_assert_ptr_eq(session_open(&sessions, id, &after, 200), session);
    ck_assert(!session->doomed);
    ck_assert_ptr_eq(session_of_peer(&sessions, &after), session);
    ck_assert_ptr_null(session_of_peer(&sessions, &before));
    ck_assert_uint_eq(sessions.n, 1);
    close_all(&sessions);
}
END_TEST

START_TEST(a_peer_that_opens_another_session_leaves_the_first)
{
    struct sessions sessions = {.seed = 3};
    struct id128 first = {{1}}, second = {{2}};
    struct peer peer = peer_named(1);
    struct session *a = session_open(&sessions, first, &peer, 100);
    struct session *b = session_open(&sessions, second, &peer, 100);
    ck_assert_ptr_eq(session_of_peer(&sessions, &peer), b);
    ck_assert(a->doomed);
    ck_assert(sessions.any_doomed);
    close_all(&sessions);
}
END_TEST

START_TEST(a_lease_runs_from_the_last_sign_of_life)
{
    struct sessions sessions = {.seed = 3};
    struct peer peer = peer_named(1);
    struct session *session = session_open(&sessions, (struct id128){{1}}, &peer, 100);
    ck_assert_uint_eq(session->lease_until, 100 + SESSION_LEASE_MS * CLOCK_NS_PER_MS);
    session_renew(session, 500);
    ck_assert_uint_eq(session->lease_until, 500 + SESSION_LEASE_MS * CLOCK_NS_PER_MS);
    close_all(&sessions);
}
END_TEST

START_TEST(sessions_are_bounded)
{
    struct sessions sessions = {.seed = 3};
    for (unsigned i = 0; i < SESSION_MAX; i++) {
        struct id128 id = {{(uint8_t)i, (uint8_t)(i >> 8)}};
        struct peer peer = {.len = 2, .bytes = {(uint8_t)i, (uint8_t)(i >> 8)}};
        ck_assert_ptr_nonnull(session_open(&sessions, id, &peer, 1));
    }
    struct peer peer = peer_named(1);
    ck_assert_ptr_null(session_open(&sessions, (struct id128){{0, 0, 1}}, &peer, 1));
    ck_assert_ptr_nonnull(session_open(&sessions, (struct id128){{5, 0}}, &peer, 1));
    close_all(&sessions);
}
END_TEST

START_TEST(who_gets_no_session_hears_whether_there_are_too_many)
{
    struct sessions sessions = {.seed = 3};
    struct id128 known = {{1}}, new = {{2}};
    struct peer peer = peer_named(1);
    struct error err;
    ck_assert_ptr_nonnull(session_open(&sessions, known, &peer, 1));
    session_say_why_none(&sessions, &new, &err);
    ck_assert_str_eq(err.text, "out of memory: no session can be opened now");
    sessions.n = SESSION_MAX;
    session_say_why_none(&sessions, &new, &err);
    ck_assert_str_eq(err.text, "too many sessions: 16384 are open, at most 16384 are allowed");
    session_say_why_none(&sessions, &known, &err);
    ck_assert_str_eq(err.text, "out of memory: no session can be opened now");
    sessions.n = 1;
    close_all(&sessions);
}
END_TEST

START_TEST(a_request_is_bound_to_one_session_or_abandoned_never_both)
{
    struct sessions sessions = {.seed = 3};
    struct id128 id = {{1}}, other = {{2}};
    struct peer here = peer_named(1), there = peer_named(2);
    struct session *a = session_open(&sessions, id, &here, 100);
    struct session *b = session_open(&sessions, other, &there, 100);
    struct request request = {0};
    session_unbind(&sessions, &request); /* it is nowhere yet */
    session_bind(&sessions, a, &request);
    ck_assert_ptr_eq(a->requests, &request);
    session_abandon(&sessions, &request, 50);
    ck_assert_ptr_null(a->requests);
    ck_assert_ptr_null(request.session);
    ck_assert_ptr_eq(session_abandoned(&sessions, &request.current.session), &request);
    sessions_stood_still(&sessions, 7, 100);
    ck_assert_uint_eq(request.abandoned_until, 57);
    session_bind(&sessions, b, &request);
    ck_assert_ptr_null(session_abandoned(&sessions, &request.current.session));
    ck_assert_ptr_eq(b->requests, &request);
    session_unbind(&sessions, &request);
    ck_assert_ptr_null(b->requests);
    close_all(&sessions);
}
END_TEST

/* 8,192 sessions left a request each; whoever opens one next looks through few of these. */
START_TEST(who_opens_a_session_does_not_look_at_what_all_others_left)
{
    enum { N = 8192 };
    static struct request requests[N];
    struct sessions sessions = {.seed = 3};
    size_t longest = 0;
    for (uint32_t i = 0; i < N; i++) {
        memcpy(&requests[i].current.session, &i, sizeof i);
        session_abandon(&sessions, &requests[i], 50);
    }
    for (uint32_t i = 0; i < N; i++) {
        size_t n = 0, own = 0;
        for (struct request *r = session_abandoned(&sessions, &requests[i].current.session); r;
             r = r->session_next, n++)
            own += r == &requests[i];
        ck_assert_uint_eq(own, 1);
        longest = n > longest ? n : longest;
    }
    ck_assert_uint_lt(longest, 64);
    /* One that was attached to another session meanwhile is found in its list all the same. */
    requests[5].current.session = (struct id128){{9, 9, 9, 9, 9}};
    for (uint32_t i = 0; i < N; i++)
        session_unbind(&sessions, &requests[i]);
    for (size_t i = 0; i < SESSION_ABANDONED_LISTS; i++)
        ck_assert_ptr_null(sessions.abandoned[i]);
}
END_TEST

START_TEST(a_page_is_owed_once_a_request_and_not_to_the_next_peer)
{
    struct sessions sessions = {.seed = 3};
    struct id128 id = {{1}}, a = {{10}}, b = {{11}}, first;
    struct peer before = peer_named(1), after = peer_named(2);
    struct session *session = session_open(&sessions, id, &before, 100);
    uint64_t next;
    session_owe(&sessions, session, a, 5);
    session_owe(&sessions, session, b, 6);
    session_owe(&sessions, session, a, 7);
    ck_assert_uint_eq(session->n_owed, 2);
    ck_assert_ptr_eq(sessions.pending, session);
    ck_assert(session_pay(session, &first, &next));
    ck_assert_mem_eq(&first, &a, sizeof a);
    ck_assert_uint_eq(next, 7);
    for (unsigned i = 0; i < 2 * SESSION_MAX_OWED; i++)
        session_owe(&sessions, session, (struct id128){{(uint8_t)i, (uint8_t)(i >> 8), 1}}, 0);
    ck_assert_uint_eq(session->n_owed, SESSION_MAX_OWED);
    session_open(&sessions, id, &after, 200);
    ck_assert(!session_pay(session, &first, &next));
    ck_assert_ptr_null(sessions.pending);
    close_all(&sessions);
}
END_TEST

/* All of it is one moment to a broker that stood still. */
START_TEST(who_could_not_be_heard_loses_nothing)
{
    struct sessions sessions = {.seed = 3};
    struct peer first = peer_named(1), second = peer_named(2);
    struct request kept = {.abandoned_until = 0}, cancelled = {.abandoned_until = 0};
    struct session *a = session_open(&sessions, (struct id128){{7}}, &first, 100);
    struct session *b = session_open(&sessions, (struct id128){{8}}, &second, 200);
    session_abandon(&sessions, &kept, 5000);
    session_abandon(&sessions, &cancelled, UINT64_MAX);
    sessions_stood_still(&sessions, 3000, 9000);
    ck_assert_uint_eq(a->lease_until, 9000 + SESSION_LEASE_MS * CLOCK_NS_PER_MS);
    ck_assert_uint_eq(b->lease_until, 9000 + SESSION_LEASE_MS * CLOCK_NS_PER_MS);
    ck_assert_uint_eq(kept.abandoned_until, 8000);
    ck_assert_uint_eq(cancelled.abandoned_until, UINT64_MAX);
    session_unbind(&sessions, &kept);
    session_unbind(&sessions, &cancelled);
    ck_assert_uint_eq(kept.abandoned_until, 0);
    close_all(&sessions);
}
END_TEST

START_TEST(who_says_hello_again_is_as_good_as_new)
{
    struct sessions sessions = {.seed = 3};
    struct peer peer = peer_named(1);
    struct id128 id = {{7}};
    struct session *session = session_open(&sessions, id, &peer, 100);
    session_doom(&sessions, session);
    session->unreachable = true;
    session->deaf_since = 50;
    ck_assert_ptr_eq(session_open(&sessions, id, &peer, 200), session);
    ck_assert(!session->doomed);
    ck_assert(!session->unreachable);
    ck_assert_uint_eq(session->deaf_since, 0);
    ck_assert_uint_eq(session->lease_until, 200 + SESSION_LEASE_MS * CLOCK_NS_PER_MS);
    close_all(&sessions);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_session_is_found_by_its_id_and_by_its_peer);
    tcase_add_test(tests, a_client_that_reconnects_takes_its_session_along);
    tcase_add_test(tests, a_peer_that_opens_another_session_leaves_the_first);
    tcase_add_test(tests, a_lease_runs_from_the_last_sign_of_life);
    tcase_add_test(tests, sessions_are_bounded);
    tcase_add_test(tests, who_gets_no_session_hears_whether_there_are_too_many);
    tcase_add_test(tests, a_request_is_bound_to_one_session_or_abandoned_never_both);
    tcase_add_test(tests, who_opens_a_session_does_not_look_at_what_all_others_left);
    tcase_add_test(tests, a_page_is_owed_once_a_request_and_not_to_the_next_peer);
    tcase_add_test(tests, who_could_not_be_heard_loses_nothing);
    tcase_add_test(tests, who_says_hello_again_is_as_good_as_new);
}

int main(void)
{
    return run_tests("broker/session", add);
}
