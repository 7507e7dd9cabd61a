/* SPDX-License-Identifier: MIT */
/* The queue: sessions in turn, classes and deadlines by what they are worth; nobody waits for ever, and
 * nothing is lost on the way out of the middle. */

#include "broker/queue.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

#define S CLOCK_NS_PER_S

static struct queue queue;

static void set_up(void)
{
    queue_init(&queue, 5);
}

static void tear_down(void)
{
    queue_deinit(&queue);
}

/* What is left is taken before its test forgets it. */
static void empty(void)
{
    while (queue_first(&queue, QUEUE_ALL))
        queue_remove(&queue, queue_first(&queue, QUEUE_ALL));
    ck_assert_uint_eq(queue.n, 0);
    ck_assert_ptr_null(queue.by_key);
    ck_assert_uint_eq(queue_next_deadline(&queue), UINT64_MAX);
}

static struct request make(uint8_t session, int32_t priority, uint64_t arrived_ns)
{
    return (struct request){.home.session = {{session}},
                            .priority = priority,
                            .arrived_ns = arrived_ns,
                            .deadline_ns = UINT64_MAX};
}

static void push(struct request *request)
{
    ck_assert_int_eq(queue_push(&queue, request), 0);
}

static struct request *take_of(uint64_t wants)
{
    struct request *request = queue_first(&queue, wants);
    if (request)
        queue_take(&queue, request, wants);
    return request;
}

static struct request *take(void)
{
    return take_of(QUEUE_ALL);
}

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
    ck_assert_ptr_eq(take_of(~QUEUE_WANT(begun.queued_want)), &other);
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

/* One whose assignment is in the way of others. */
static struct request make_bulky(uint8_t session, int32_t priority, uint64_t arrived_ns)
{
    struct request request = make(session, priority, arrived_ns);
    request.body.len = REQUEST_BRIEF_BYTES + 1; /* of which the queue reads nothing */
    return request;
}

#define BRIEF (~QUEUE_WANT(REQUEST_BULKY)) /* of those that name no model */

static struct request *take_brief(void)
{
    return take_of(BRIEF);
}

START_TEST(brief_requests_pass_those_that_have_no_room)
{
    struct request bulky = make_bulky(1, 0, 0), other = make_bulky(2, 1, 0);
    struct request brief[] = {make(1, 0, 1 * S), make(3, 0, 2 * S), make(3, 0, 3 * S)};
    push(&bulky);
    push(&other);
    ck_assert_ptr_null(queue_first(&queue, BRIEF));
    for (int i = 0; i < 3; i++)
        push(&brief[i]);
    ck_assert_ptr_eq(take_brief(), &brief[0]);
    ck_assert_ptr_eq(take_brief(), &brief[1]);
    ck_assert_ptr_eq(queue_first(&queue, QUEUE_ALL), &other);
    ck_assert_ptr_eq(take_brief(), &brief[2]);
    ck_assert_ptr_null(queue_first(&queue, BRIEF));
    ck_assert_ptr_eq(take(), &other);
    ck_assert_ptr_eq(take(), &bulky);
    empty();
}
END_TEST

START_TEST(who_had_no_room_keeps_the_turn_and_gains_none)
{
    enum { MANY = 10 };
    struct request bulky = make_bulky(1, 0, 0), after = make(1, 0, 0), brief[MANY];
    push(&bulky);
    for (int i = 0; i < MANY; i++) {
        brief[i] = make(2, 0, (uint64_t)i * S);
        push(&brief[i]);
    }
    for (int i = 0; i < MANY - 2; i++)
        ck_assert_ptr_eq(take_brief(), &brief[i]);
    ck_assert_ptr_eq(take(), &bulky); /* its turn was the first */
    push(&after);
    ck_assert_ptr_eq(take(), &after);
    ck_assert_ptr_eq(take(), &brief[MANY - 2]);
    empty();
}
END_TEST

START_TEST(requests_pass_those_that_only_a_full_worker_could_take)
{
    const uint64_t plain = QUEUE_WANT(0), other_workers = ~QUEUE_WANT(REQUEST_EMBEDS);
    struct request embed = make(1, 8, 0), bound = make(1, 0, 1 * S), both = make(2, 0, 2 * S),
                   after = make(1, 0, 3 * S), others[4];
    embed.embed = both.embed = true;
    bound.has_digest = both.has_digest = true;
    push(&embed);
    push(&bound);
    push(&both);
    push(&after);
    for (unsigned i = 0; i < 4; i++) {
        others[i] = make(3, 0, (4 + i) * S);
        push(&others[i]);
    }
    ck_assert_ptr_eq(queue_first(&queue, QUEUE_ALL), &embed);
    ck_assert_ptr_eq(take_of(other_workers), &bound);
    ck_assert_ptr_eq(take_of(other_workers), &both);
    ck_assert_ptr_eq(take_of(plain), &others[0]); /* the first session has had its turn */
    ck_assert_ptr_eq(take_of(plain), &after);
    ck_assert_ptr_eq(take_of(plain), &others[1]);
    ck_assert_ptr_null(queue_first(&queue, QUEUE_WANT(bound.queued_want)));
    ck_assert_ptr_eq(take(), &embed); /* and whoever had to wait is the first once there is room */
    ck_assert_ptr_eq(take(), &others[2]);
    empty();
}
END_TEST

/* What the dispatch does when a worker has room for one request of some wants: asks for the first, and passes
 * over its want if it is none of those. */
static struct request *dispatch(uint64_t room)
{
    struct request *request;
    uint64_t wants = QUEUE_ALL;
    while ((request = queue_first(&queue, wants)) && !(room & QUEUE_WANT(request->queued_want)))
        wants &= ~QUEUE_WANT(request->queued_want);
    if (request)
        queue_take(&queue, request, wants);
    return request;
}

/* How often there is room for a large request until the first session's is taken, while that session gives
 * `n_brief` brief ones between, and another has large ones alone. */
static unsigned openings_until_served(unsigned n_brief)
{
    enum { MOST = 50 };
    static struct request brief[MOST][4], others[MOST];
    struct request patient = make_bulky(1, 0, 0), *taken = NULL;
    unsigned opening = 0;
    push(&patient);
    for (; opening < MOST && taken != &patient; opening++) {
        others[opening] = make_bulky(2, 0, opening * S);
        push(&others[opening]);
        for (unsigned i = 0; i < n_brief; i++) {
            brief[opening][i] = make(1, 0, opening * S);
            push(&brief[opening][i]);
            ck_assert_ptr_eq(dispatch(BRIEF), &brief[opening][i]);
        }
        taken = dispatch(QUEUE_ALL);
    }
    empty();
    return opening;
}

START_TEST(a_large_request_has_its_turn_though_its_session_gives_brief_ones_meanwhile)
{
    for (unsigned n_brief = 0; n_brief <= 4; n_brief++)
        ck_assert_uint_le(openings_until_served(n_brief), 2);
}
END_TEST

/* Places, for many or for few kinds, among sessions that want all kinds, and one that wants one. */
START_TEST(no_kind_waits_for_ever_and_many_kinds_get_a_session_no_more)
{
    enum { SESSIONS = 4, PLAIN = 0, KINDS = 4, ROUNDS = 20000, PATIENCE = 60 };
    static struct request requests[SESSIONS][KINDS];
    static const unsigned rooms[] = {1, 3, 5, 9, 15, 3, 5, 1};
    unsigned chances[SESSIONS][KINDS] = {{0}}, taken[SESSIONS] = {0}, random = 5;
    for (uint8_t s = 0; s < SESSIONS; s++)
        for (int kind = 0; kind < (s == PLAIN ? 1 : KINDS); kind++) {
            requests[s][kind] = kind & REQUEST_BULKY ? make_bulky(s, 0, 0) : make(s, 0, 0);
            requests[s][kind].embed = kind & REQUEST_EMBEDS;
            push(&requests[s][kind]);
        }
    for (unsigned round = 1; round <= ROUNDS; round++) {
        random = random * 1664525 + 1013904223;
        unsigned room = rooms[round < ROUNDS / 2 ? round % 8 : random >> 29];
        struct request *request = dispatch(room);
        unsigned s = request->home.session.bytes[0];
        taken[s]++;
        chances[s][request->queued_kind] = 0;
        for (unsigned i = 0; i < SESSIONS * KINDS; i++)
            if (room & QUEUE_WANT(i % KINDS) && &requests[i / KINDS][i % KINDS] != request)
                ck_assert_uint_le(++chances[i / KINDS][i % KINDS], i / KINDS == PLAIN ? ROUNDS : PATIENCE);
        request->arrived_ns = round * S;
        request->deadline_ns = round % 3 ? UINT64_MAX : (round + 1) * S; /* it presses more than most */
        push(request);
        for (unsigned other = 0; other < SESSIONS; other++)
            ck_assert_uint_le(taken[other], taken[PLAIN] + 2 * KINDS);
    }
    empty();
}
END_TEST

START_TEST(what_waits_for_one_model_holds_up_no_other)
{
    const uint8_t old[16] = {1}, new[16] = {2};
    struct request named[] = {make(1, 0, 0), make(1, 0, 1 * S), make(1, 0, 2 * S), make(2, 0, 3 * S)};
    struct request begun[] = {make(1, 0, 0), make(1, 0, 1 * S)};
    named[0].model = BYTES_LITERAL("old");
    named[1].model = named[3].model = BYTES_LITERAL("new");
    for (int i = 0; i < 2; i++) {
        begun[i].has_digest = true;
        memcpy(begun[i].digest, i == 0 ? old : new, sizeof old);
    }
    for (int i = 0; i < 4; i++)
        push(&named[i]);
    ck_assert_ptr_eq(queue_first(&queue, QUEUE_ALL), &named[0]);
    const uint64_t wants = ~QUEUE_WANT(named[0].queued_want);
    ck_assert_ptr_eq(take_of(wants), &named[1]);
    ck_assert_ptr_eq(take_of(wants), &named[3]);
    ck_assert_ptr_eq(take_of(wants), &named[2]);
    ck_assert_ptr_null(queue_first(&queue, wants));
    for (int i = 0; i < 2; i++)
        push(&begun[i]);
    ck_assert_ptr_eq(queue_first(&queue, wants), &begun[0]);
    ck_assert_ptr_eq(take_of(wants & ~QUEUE_WANT(begun[0].queued_want)), &begun[1]);
    empty();
}
END_TEST

START_TEST(any_mixture_comes_out_once_each)
{
    enum { MANY = 200 };
    static struct request requests[MANY];
    uint32_t random = 7, left = MANY, brief = 0;
    for (int i = 0; i < MANY; i++) {
        random = random * 1664525 + 1013904223;
        requests[i] = random >> 31
                          ? make_bulky((uint8_t)(random >> 28 & 3), (int)(random >> 20 & 3), random >> 8)
                          : make((uint8_t)(random >> 28 & 3), (int)(random >> 20 & 3), random >> 8);
        brief += requests[i].body.len == 0;
        push(&requests[i]);
    }
    while (left > 0) {
        random = random * 1664525 + 1013904223;
        struct request *request = random >> 31 ? queue_first(&queue, QUEUE_ALL) : queue_first(&queue, BRIEF);
        ck_assert_int_eq(queue_first(&queue, BRIEF) != NULL, brief > 0);
        if (!request)
            request = queue_first(&queue, QUEUE_ALL);
        ck_assert_ptr_nonnull(request);
        brief -= request->body.len == 0;
        left--;
        if (random >> 30 & 1)
            queue_take(&queue, request, QUEUE_ALL);
        else
            queue_remove(&queue, request);
        ck_assert_uint_eq(queue.n, left);
    }
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

static void add(TCase *tests)
{
    tcase_add_test(tests, brief_requests_pass_those_that_have_no_room);
    tcase_add_test(tests, who_had_no_room_keeps_the_turn_and_gains_none);
    tcase_add_test(tests, requests_pass_those_that_only_a_full_worker_could_take);
    tcase_add_test(tests, a_large_request_has_its_turn_though_its_session_gives_brief_ones_meanwhile);
    tcase_add_test(tests, no_kind_waits_for_ever_and_many_kinds_get_a_session_no_more);
    tcase_add_test(tests, what_waits_for_one_model_holds_up_no_other);
    tcase_add_test(tests, any_mixture_comes_out_once_each);
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
}

int main(void)
{
    return run_tests("broker/queue", add);
}
