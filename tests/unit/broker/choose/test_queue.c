/* SPDX-License-Identifier: MIT */
/* The queue: sessions in turn, classes and deadlines by what they are worth; nobody waits for ever, and
 * nothing is lost on the way out of the middle. */

#include "tests/unit/broker/choose/queued.h"

#include <stdio.h>
#include <stdlib.h>

START_TEST(a_class_is_worth_thirty_seconds_and_no_more)
{
    struct request low = make(1, -1, 0), early = make(2, 0, 29 * S), late = make(2, 0, 31 * S);
    push(&low);
    push(&early);
    push(&late);
    ck_assert_ptr_eq(take(), &early);
    ck_assert_ptr_eq(take(), &low);
    ck_assert_ptr_eq(take(), &late);
    ck_assert_ptr_null(take());
    empty();
}
END_TEST

START_TEST(a_low_priority_is_served_while_higher_ones_keep_coming)
{
    struct request low = make(1, -1, 0), others[100];
    push(&low);
    for (unsigned i = 0; i < 100; i++) { /* one a second, and no slot for more */
        others[i] = make(2, 0, i * S);
        push(&others[i]);
        if (take() == &low)
            break;
        ck_assert_uint_lt(i, 99);
    }
    empty();
}
END_TEST

START_TEST(a_deadline_counts_as_far_as_it_presses)
{
    struct request first = make(1, 0, 0), pressing = make(1, 0, 1 * S), far = make(1, 0, 2 * S);
    pressing.deadline_ns = 20 * S;
    far.deadline_ns = 3600 * S;
    push(&far);
    push(&first);
    push(&pressing);
    ck_assert_uint_eq(queue_next_deadline(&queue), 20 * S);
    ck_assert_ptr_eq(take(), &pressing);
    ck_assert_uint_eq(queue_next_deadline(&queue), 3600 * S);
    ck_assert_ptr_eq(take(), &first);
    ck_assert_ptr_eq(take(), &far);
    empty();
}
END_TEST

START_TEST(a_request_without_a_deadline_is_served_while_others_with_one_keep_coming)
{
    struct request patient = make(1, 0, 0), others[100];
    push(&patient);
    for (unsigned i = 0; i < 100; i++) {
        others[i] = make(1, 0, i * S);
        others[i].deadline_ns = (i + 2) * S;
        push(&others[i]);
        if (take() == &patient)
            break;
        ck_assert_uint_lt(i, 99);
    }
    empty();
}
END_TEST

START_TEST(sessions_share_in_turn_however_much_one_of_them_asks_for)
{
    enum { MANY = 1000 };
    static struct request flood[MANY];
    struct request a = make(2, 0, 5 * S), b = make(2, 0, 5 * S), c = make(3, 0, 6 * S);
    for (int i = 0; i < MANY; i++) {
        flood[i] = make(1, 0, 0);
        flood[i].deadline_ns = 1 * S; /* as pressing as can be */
        push(&flood[i]);
    }
    ck_assert_ptr_eq(take(), &flood[0]);
    push(&a);
    push(&b);
    push(&c);
    ck_assert_ptr_eq(take(), &flood[1]);
    ck_assert_ptr_eq(take(), &a);
    ck_assert_ptr_eq(take(), &c);
    ck_assert_ptr_eq(take(), &flood[2]);
    ck_assert_ptr_eq(take(), &b);
    ck_assert_ptr_eq(take(), &flood[3]);
    ck_assert_ptr_eq(take(), &flood[4]);
    empty();
}
END_TEST

START_TEST(who_comes_back_at_once_finds_those_who_wait_before_him)
{
    struct request again[10], waiting = make(2, 0, 0);
    again[0] = make(1, 0, 0);
    again[0].deadline_ns = 1;
    push(&again[0]);
    push(&waiting);
    for (unsigned i = 1; take() != &waiting; i++) {
        ck_assert_uint_lt(i, 3);
        again[i] = make((uint8_t)(10 + i), 0, 0); /* as a new session, too */
        again[i].deadline_ns = 1;
        push(&again[i]);
    }
    empty();
}
END_TEST

START_TEST(what_was_begun_goes_before_all_that_was_not)
{
    struct request urgent = make(1, 8, 0), other = make(2, 0, 0), begun = make(3, -8, 9 * S),
                   later = make(2, 0, 8 * S);
    urgent.deadline_ns = 1;
    begun.log.count = later.log.count = 1;
    push(&urgent);
    push(&other);
    push(&begun);
    push(&later);
    ck_assert_ptr_eq(take(), &later); /* among themselves priorities count */
    ck_assert_ptr_eq(take(), &begun);
    ck_assert_ptr_eq(take(), &urgent);
    ck_assert_ptr_eq(take(), &other);
    begun.has_digest = true; /* and what it needs is not there */
    push(&begun);
    push(&other);
    ck_assert_ptr_eq(take_of(~QUEUE_TARGET(begun.queued_target)), &other);
    empty();
}
END_TEST

START_TEST(a_request_that_leaves_without_its_turn_costs_its_session_none)
{
    struct request a = make(1, 0, 0), b = make(1, 0, 1), other = make(2, 0, 2);
    push(&a);
    push(&b);
    push(&other);
    queue_remove(&queue, &a); /* cancelled */
    ck_assert_ptr_eq(take(), &b);
    ck_assert_ptr_eq(take(), &other);
    empty();
}
END_TEST

START_TEST(an_expired_request_is_found_wherever_it_stands)
{
    struct request high = make(1, 8, 0), low = make(1, -8, 0);
    high.deadline_ns = 100 * S;
    low.deadline_ns = 50 * S;
    push(&high);
    push(&low);
    ck_assert_ptr_null(queue_expired(&queue, 50 * S - 1));
    ck_assert_ptr_eq(queue_expired(&queue, 50 * S), &low);
    queue_remove(&queue, &low);
    ck_assert_ptr_null(queue_expired(&queue, 100 * S - 1));
    ck_assert_ptr_eq(queue_expired(&queue, 100 * S), &high);
    empty();
}
END_TEST

/* Against the rule said the slow way, with requests that come, go and are cancelled. */
START_TEST(each_turn_gives_every_session_that_waits_one_request)
{
    enum { N = 2000, SESSIONS = 7 };
    static struct request requests[N];
    unsigned waiting[SESSIONS] = {0}, taken[SESSIONS] = {0};
    srand(11);
    for (int i = 0; i < N; i++) {
        unsigned session = (unsigned)(rand() % SESSIONS);
        requests[i] = make((uint8_t)session, 0, (uint64_t)(rand() % 100) * S);
        if (rand() % 2)
            requests[i].deadline_ns = requests[i].arrived_ns + (uint64_t)(rand() % 60) * S;
        push(&requests[i]);
        waiting[session]++;
    }
    for (int i = 0; i < N; i += 5) {
        queue_remove(&queue, &requests[i]);
        waiting[requests[i].home.session.bytes[0]]--;
    }
    for (struct request *request; (request = take());) {
        unsigned session = request->home.session.bytes[0];
        waiting[session]--;
        taken[session]++;
        for (unsigned other = 0; other < SESSIONS; other++)
            if (waiting[other] > 0)
                ck_assert_uint_le(taken[session], taken[other] + 1);
    }
    for (unsigned session = 0; session < SESSIONS; session++)
        ck_assert_uint_eq(waiting[session], 0);
    empty();
}
END_TEST

START_TEST(a_priority_beyond_the_classes_is_that_of_the_last_one)
{
    struct request high = make(1, 100, 0), highest = make(2, QUEUE_PRIORITY_MAX, 1),
                   low = make(3, INT32_MIN, 0), lowest = make(4, QUEUE_PRIORITY_MIN, 1);
    push(&low);
    push(&lowest);
    push(&high);
    push(&highest);
    ck_assert_int_eq(high.priority, QUEUE_PRIORITY_MAX);
    ck_assert_int_eq(highest.priority, QUEUE_PRIORITY_MAX);
    ck_assert_int_eq(low.priority, QUEUE_PRIORITY_MIN);
    ck_assert_int_eq(lowest.priority, QUEUE_PRIORITY_MIN);
    ck_assert_ptr_eq(take(), &high);
    ck_assert_ptr_eq(take(), &highest);
    ck_assert_ptr_eq(take(), &low);
    ck_assert_ptr_eq(take(), &lowest);
    empty();
}
END_TEST

/* A request for a tenant of the session; one that stands `alone` is that of all sessions. */
static struct request make_for(uint8_t session, uint8_t tenant, bool alone)
{
    struct request request = make(session, 0, 0);
    request.tenancy = (struct tenancy){{{100, tenant, alone ? 0 : session}}, true, alone};
    return request;
}

START_TEST(a_tenant_that_stands_alone_has_turns_as_a_session_has)
{
    enum { MANY = 500 };
    static struct request flood[MANY];
    struct request small = make_for(1, 2, true), elsewhere = make_for(3, 1, true), plain = make(4, 0, 9 * S);
    for (int i = 0; i < MANY; i++) {
        flood[i] = make_for(1, 1, true);
        push(&flood[i]);
    }
    ck_assert_ptr_eq(take(), &flood[0]);
    push(&small);
    push(&plain);
    push(&elsewhere); /* of the flood's tenant by another session: it waits behind the flood */
    ck_assert_ptr_eq(take(), &flood[1]);
    ck_assert_ptr_eq(take(), &small);
    ck_assert_ptr_eq(take(), &plain);
    for (int i = 2; i < MANY; i++)
        ck_assert_ptr_eq(take(), &flood[i]);
    ck_assert_ptr_eq(take(), &elsewhere);
    empty();
}
END_TEST

START_TEST(other_tenants_share_their_clients_turn)
{
    enum { EACH = 40 };
    static struct request of[3][EACH]; /* two tenants of session 1, one of them with much; session 2 */
    unsigned taken[3] = {0};
    for (int i = 0; i < EACH; i++) {
        of[0][i] = make_for(1, 1, false);
        push(&of[0][i]);
    }
    for (int i = 0; i < EACH; i++) {
        of[1][i] = make_for(1, 2, false);
        of[2][i] = make(2, 0, 0);
        push(&of[1][i]);
        push(&of[2][i]);
    }
    for (int i = 0; i < EACH; i++) {
        const struct request *request = take();
        for (int who = 0; who < 3; who++)
            taken[who] += request >= of[who] && request < of[who] + EACH;
        ck_assert_int_le(abs((int)taken[0] - (int)taken[1]), 1);
        ck_assert_int_le(abs((int)(taken[0] + taken[1]) - (int)taken[2]), 1);
    }
    empty();
}
END_TEST

START_TEST(names_that_are_made_up_get_a_client_no_more_turns)
{
    enum { MANY = 200 };
    static struct request made_up[MANY], others[MANY];
    unsigned n_made_up = 0, n_others = 0;
    for (int i = 0; i < MANY; i++) {
        made_up[i] = make_for(1, (uint8_t)i, false);
        others[i] = make(2, 0, 0);
        push(&made_up[i]);
        push(&others[i]);
    }
    for (int i = 0; i < MANY; i++) {
        if (take()->home.session.bytes[0] == 1)
            n_made_up++;
        else
            n_others++;
        ck_assert_int_le(abs((int)n_made_up - (int)n_others), 1);
    }
    empty();
}
END_TEST

START_TEST(a_model_that_becomes_known_is_known_for_every_tenant)
{
    enum { N = 60 };
    static struct request requests[N];
    for (int i = 0; i < N; i++) { /* more names than have numbers, some of them of the model to come */
        static char names[N][16];
        snprintf(names[i], sizeof names[i], i < 12 || i % 3 ? "no-%d" : "real", i);
        requests[i] = make_for(1, (uint8_t)(i % 7), false);
        requests[i].model = bytes_of_string(names[i]);
        requests[i].model_known = false;
        push(&requests[i]);
    }
    queue_know(&queue, BYTES_LITERAL("real"));
    for (int i = 0; i < N; i++) {
        bool real = i >= 12 && i % 3 == 0;
        ck_assert_int_eq(requests[i].model_known, real);
        if (real)
            ck_assert_uint_lt(requests[i].queued_target, TARGETS_SHARED_UNKNOWN);
    }
    for (int i = 0; i < N; i++)
        ck_assert_ptr_nonnull(take());
    empty();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_class_is_worth_thirty_seconds_and_no_more);
    tcase_add_test(tests, a_low_priority_is_served_while_higher_ones_keep_coming);
    tcase_add_test(tests, a_deadline_counts_as_far_as_it_presses);
    tcase_add_test(tests, a_request_without_a_deadline_is_served_while_others_with_one_keep_coming);
    tcase_add_test(tests, sessions_share_in_turn_however_much_one_of_them_asks_for);
    tcase_add_test(tests, who_comes_back_at_once_finds_those_who_wait_before_him);
    tcase_add_test(tests, what_was_begun_goes_before_all_that_was_not);
    tcase_add_test(tests, a_request_that_leaves_without_its_turn_costs_its_session_none);
    tcase_add_test(tests, an_expired_request_is_found_wherever_it_stands);
    tcase_add_test(tests, each_turn_gives_every_session_that_waits_one_request);
    tcase_add_test(tests, a_priority_beyond_the_classes_is_that_of_the_last_one);
    tcase_add_test(tests, a_tenant_that_stands_alone_has_turns_as_a_session_has);
    tcase_add_test(tests, other_tenants_share_their_clients_turn);
    tcase_add_test(tests, names_that_are_made_up_get_a_client_no_more_turns);
    tcase_add_test(tests, a_model_that_becomes_known_is_known_for_every_tenant);
}

int main(void)
{
    return run_tests("broker/queue", add);
}
