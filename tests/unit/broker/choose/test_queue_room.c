/* SPDX-License-Identifier: MIT */
/* The queue, where some of what waits finds no room: a request of another target passes it, at nobody's cost
 * but its session's, and nothing is passed for ever. */

#include "tests/unit/broker/choose/queued.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One whose assignment is in the way of others. */
static struct request make_bulky(uint8_t session, int32_t priority, uint64_t arrived_ns)
{
    struct request request = make(session, priority, arrived_ns);
    request.body.len = REQUEST_BRIEF_BYTES + 1; /* of which the queue reads nothing */
    return request;
}

#define BRIEF (~QUEUE_TARGET(REQUEST_BULKY)) /* of those that name no model */

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

START_TEST(who_has_something_without_room_comes_back_behind_those_who_wait_as_all_do)
{
    enum { MANY = 10 };
    struct request bulky = make_bulky(1, 0, 0), first = make(1, 0, 0), again = make(1, 0, 20 * S),
                   others[2][MANY];
    again.deadline_ns = 21 * S; /* it presses more than all others */
    push(&bulky);
    push(&first);
    for (int i = 0; i < MANY; i++)
        for (uint8_t s = 0; s < 2; s++) {
            others[s][i] = make((uint8_t)(2 + s), 0, (1 + s) * S);
            push(&others[s][i]);
        }
    ck_assert_ptr_eq(take_brief(), &first);
    for (int i = 0; i < MANY / 2; i++) {
        ck_assert_ptr_eq(take_brief(), &others[0][i]);
        if (i == MANY / 2 - 1) /* in the middle of a turn */
            push(&again);
        ck_assert_ptr_eq(take_brief(), &others[1][i]);
    }
    ck_assert_ptr_eq(take_brief(), &again);
    ck_assert_ptr_eq(take_brief(), &others[0][MANY / 2]);
    while (take())
        ;
    empty();
}
END_TEST

START_TEST(a_turn_that_was_kept_takes_nobody_back)
{
    enum { MANY = 10 };
    struct request bulky = make_bulky(1, 0, 0), late = make(4, 0, 20 * S), others[2][MANY];
    late.deadline_ns = 21 * S; /* a new session that presses more than all others */
    push(&bulky);
    for (int i = 0; i < MANY; i++)
        for (uint8_t s = 0; s < 2; s++) {
            others[s][i] = make((uint8_t)(2 + s), 0, (1 + s) * S);
            push(&others[s][i]);
        }
    for (int i = 0; i < MANY / 2; i++) {
        ck_assert_ptr_eq(take_brief(), &others[0][i]);
        if (i == MANY / 2 - 1) {
            ck_assert_ptr_eq(take(), &bulky);
            push(&late);
        }
        ck_assert_ptr_eq(take_brief(), &others[1][i]);
    }
    ck_assert_ptr_eq(take_brief(), &late);
    while (take())
        ;
    empty();
}
END_TEST

START_TEST(requests_pass_those_that_only_a_full_worker_could_take)
{
    const uint64_t plain = QUEUE_TARGET(0), other_workers = ~QUEUE_TARGET(REQUEST_EMBEDS);
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
    ck_assert_ptr_eq(take_of(plain), &others[0]); /* the first session has used its turn */
    ck_assert_ptr_eq(take_of(plain), &after);
    ck_assert_ptr_eq(take_of(plain), &others[1]);
    ck_assert_ptr_null(queue_first(&queue, QUEUE_TARGET(bound.queued_target)));
    ck_assert_ptr_eq(take(), &embed); /* and whoever had to wait is the first once there is room */
    ck_assert_ptr_eq(take(), &others[2]);
    empty();
}
END_TEST

/* What the dispatch does when a worker has room for one request of some targets: asks for the first, and
 * passes over its target if it is none of those. */
static struct request *dispatch(uint64_t room)
{
    struct request *request;
    uint64_t targets = QUEUE_ALL;
    while ((request = queue_first(&queue, targets)) && !(room & QUEUE_TARGET(request->queued_target)))
        targets &= ~QUEUE_TARGET(request->queued_target);
    if (request)
        queue_take(&queue, request, targets);
    return request;
}

/* How often there is room for a large request until the first session's is taken, while that session gives
 * `n_brief` brief ones between, and `n_embed` embeddings after these, and another has large ones alone. */
static unsigned openings_until_served(unsigned n_brief, unsigned n_embed)
{
    enum { MOST = 50 };
    static struct request others[MOST], meanwhile[MOST][8];
    struct request patient = make_bulky(1, 0, 0), *taken = NULL;
    unsigned opening = 0;
    push(&patient);
    for (; opening < MOST && taken != &patient; opening++) {
        others[opening] = make_bulky(2, 0, opening * S);
        push(&others[opening]);
        for (unsigned i = 0; i < n_brief + n_embed; i++) {
            struct request *request = &meanwhile[opening][i];
            *request = make(1, 0, opening * S);
            request->embed = i >= n_brief;
            push(request);
        }
        for (unsigned i = 0; i < n_brief + n_embed; i++)
            ck_assert_ptr_eq(dispatch(QUEUE_TARGET(i < n_brief ? 0 : REQUEST_EMBEDS)),
                             &meanwhile[opening][i]);
        taken = dispatch(QUEUE_ALL);
    }
    empty();
    return opening;
}

START_TEST(a_large_request_has_its_turn_though_its_session_gives_others_meanwhile)
{
    for (unsigned n_brief = 0; n_brief <= 4; n_brief++)
        for (unsigned n_embed = 0; n_embed <= 4; n_embed++)
            ck_assert_uint_le(openings_until_served(n_brief, n_embed), 2);
}
END_TEST

static uint32_t draw(uint32_t *random, uint32_t n)
{
    *random = *random * 1664525 + 1013904223;
    return (*random >> 8) % n;
}

/* A few sessions with requests of several targets, three times each, always; and a pattern of what there is
 * room for. How often there was room for one request, the oldest of all, until it was taken, at most. */
static unsigned most_chances_missed(uint32_t random, unsigned n_rounds)
{
    enum { SESSIONS = 4, KINDS = 4, DEPTH = 3, PATTERN = 7 };
    static struct request requests[SESSIONS * KINDS * DEPTH];
    struct request oldest, *taken;
    bool waits = false;
    unsigned rooms[PATTERN], n_rooms = 2 + draw(&random, PATTERN - 1), n = 0, chances = 0, most = 0;
    for (unsigned i = 0; i < n_rooms; i++)
        rooms[i] = 1 + draw(&random, (1 << KINDS) - 1);
    for (unsigned group = 0; group < SESSIONS * KINDS; group++)
        for (unsigned i = draw(&random, 2) ? 0 : DEPTH; i < DEPTH; i++) {
            uint8_t session = (uint8_t)(group / KINDS);
            requests[n] = group & REQUEST_BULKY ? make_bulky(session, 0, n * S) : make(session, 0, n * S);
            requests[n].embed = group & REQUEST_EMBEDS;
            push(&requests[n++]);
        }
    for (unsigned round = 0; n > 0 && round < n_rounds; round++) {
        if (!waits && round >= n_rounds / 8) {
            oldest = requests[draw(&random, n)]; /* of whom and for what: some of these */
            oldest.arrived_ns = 0;
            chances = 0;
            waits = true;
            push(&oldest);
        }
        unsigned room = rooms[round % n_rooms];
        if (waits && room & QUEUE_TARGET(oldest.queued_target) && ++chances > most)
            most = chances;
        taken = dispatch(room);
        waits = waits && taken != &oldest;
        if (taken && taken != &oldest) {
            taken->arrived_ns = (n + round) * S;
            push(taken);
        }
    }
    empty();
    return most;
}

START_TEST(whatever_there_is_room_for_and_whoever_wants_what_the_oldest_is_soon_taken)
{
    static const uint32_t hard[] = {1379, 1937, 7188}; /* for rules that are nearly right */
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++)
        ck_assert_uint_le(most_chances_missed(hard[i], 3000), 30);
    for (uint32_t seed = 0; seed < 1000; seed++)
        ck_assert_uint_le(most_chances_missed(seed, 200), 30);
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
            if (room & QUEUE_TARGET(i % KINDS) && &requests[i / KINDS][i % KINDS] != request)
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
    const uint64_t targets = ~QUEUE_TARGET(named[0].queued_target);
    ck_assert_ptr_eq(take_of(targets), &named[1]);
    ck_assert_ptr_eq(take_of(targets), &named[3]);
    ck_assert_ptr_eq(take_of(targets), &named[2]);
    ck_assert_ptr_null(queue_first(&queue, targets));
    for (int i = 0; i < 2; i++)
        push(&begun[i]);
    ck_assert_ptr_eq(queue_first(&queue, targets), &begun[0]);
    ck_assert_ptr_eq(take_of(targets & ~QUEUE_TARGET(begun[0].queued_target)), &begun[1]);
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

/* One of this session for a model by its number. */
static struct request make_for(uint8_t session, unsigned model, uint64_t arrived_ns)
{
    static char names[100][8];
    struct request request = make(session, 0, arrived_ns);
    snprintf(names[model], sizeof names[model], "m%u", model);
    request.model = bytes_of_string(names[model]);
    return request;
}

#define NOT_SHARED (QUEUE_TARGET(TARGETS_SHARED_UNKNOWN) - 1)

START_TEST(what_was_asked_before_a_worker_told_its_model_leaves_those_that_are_made_up)
{
    enum { N = 90 };
    struct request each[N];
    unsigned n_real = 0;
    srand((unsigned)_i);
    for (unsigned i = 0; i < N; i++) { /* mixed, as they arrived and as they press */
        bool is_real = i >= TARGETS_UNKNOWN_EACH && rand() % 2;
        each[i] = make_for(1, is_real ? 99 : i, (uint64_t)(rand() % 1000) * S);
        push(&each[i]);
        n_real += is_real;
    }
    queue_know(&queue, bytes_of_string("m98"));
    ck_assert_uint_eq(queue.targets.n[TARGETS_SHARED_UNKNOWN], N - TARGETS_UNKNOWN_EACH);
    queue_know(&queue, bytes_of_string("m99"));
    uint64_t target = 0, arrived_ns = 0;
    for (unsigned i = 0; i < N; i++) {
        bool is_real = bytes_equal(each[i].model, bytes_of_string("m99"));
        ck_assert_int_eq(each[i].model_known, is_real);
        target |= is_real ? QUEUE_TARGET(each[i].queued_target) : 0;
    }
    ck_assert_uint_eq(target & (target - 1), 0); /* one */
    for (unsigned i = 0; i < n_real; i++) {      /* in the order that they had */
        const struct request *request = take_of(target);
        ck_assert(request && request->model_known);
        ck_assert_uint_le(arrived_ns, request->arrived_ns);
        arrived_ns = request->arrived_ns;
    }
    ck_assert_ptr_null(take_of(target));
    ck_assert_uint_eq(queue.n, N - n_real);
    empty();
}
END_TEST

START_TEST(what_becomes_known_keeps_its_turn_and_leaves_nothing_behind)
{
    struct request made_up[TARGETS_UNKNOWN_EACH], real = make_for(1, 99, 50 * S), nameless[2], other[4];
    for (unsigned i = 0; i < TARGETS_UNKNOWN_EACH; i++) {
        made_up[i] = make_for(1, 1 + i, 0);
        push(&made_up[i]);
    }
    push(&real);
    for (unsigned i = 0; i < 2; i++) {
        nameless[i] = make(1, 0, i * S);
        push(&nameless[i]);
    }
    for (unsigned i = 0; i < 4; i++) {
        other[i] = make(2, 0, i * S);
        push(&other[i]);
    }
    for (int i = 0; i < 2; i++) { /* there is room for those that name no model */
        ck_assert_ptr_eq(take_of(QUEUE_TARGET(0)), &nameless[i]);
        ck_assert_ptr_eq(take_of(QUEUE_TARGET(0)), &other[i]);
    }
    ck_assert_uint_eq(queue.targets.n[TARGETS_SHARED_UNKNOWN], 1);
    queue_know(&queue, bytes_of_string("m99"));
    ck_assert_uint_eq(queue.targets.n[TARGETS_SHARED_UNKNOWN], 0);
    /* Its turn was an earlier one. */
    ck_assert_ptr_eq(take_of(QUEUE_TARGET(0) | QUEUE_TARGET(real.queued_target)), &real);
    ck_assert_ptr_eq(take_of(QUEUE_TARGET(0)), &other[2]);
    empty();
}
END_TEST

START_TEST(what_is_bulky_or_embeds_becomes_known_too)
{
    struct request each[8];
    for (unsigned i = 0; i < 8; i++) {
        each[i] = make_for((uint8_t)(1 + i % 2), 99, i * S);
        each[i].embed = i & 2;
        each[i].body.len = i & 4 ? REQUEST_BRIEF_BYTES + 1 : 1;
    }
    struct request made_up[2 * TARGETS_UNKNOWN_EACH];
    for (unsigned i = 0; i < 2 * TARGETS_UNKNOWN_EACH; i++) {
        made_up[i] = make_for((uint8_t)(1 + i % 2), 1 + i, 0);
        push(&made_up[i]);
    }
    for (unsigned i = 0; i < 8; i++) {
        push(&each[i]);
        ck_assert_uint_eq(each[i].queued_target, TARGETS_SHARED_UNKNOWN + each[i].queued_kind);
    }
    queue_know(&queue, bytes_of_string("m99"));
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_uint_lt(each[i].queued_target, TARGETS_SHARED_UNKNOWN);
        ck_assert_uint_eq(each[i].queued_target, each[i & ~1u].queued_target); /* one for each kind */
        ck_assert_ptr_nonnull(queue_first(&queue, QUEUE_TARGET(each[i].queued_target)));
    }
    ck_assert_ptr_null(queue_first(&queue, ~NOT_SHARED));
    empty();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, brief_requests_pass_those_that_have_no_room);
    tcase_add_test(tests, who_had_no_room_keeps_the_turn_and_gains_none);
    tcase_add_test(tests, who_has_something_without_room_comes_back_behind_those_who_wait_as_all_do);
    tcase_add_test(tests, a_turn_that_was_kept_takes_nobody_back);
    tcase_add_test(tests, requests_pass_those_that_only_a_full_worker_could_take);
    tcase_add_test(tests, a_large_request_has_its_turn_though_its_session_gives_others_meanwhile);
    tcase_add_test(tests, whatever_there_is_room_for_and_whoever_wants_what_the_oldest_is_soon_taken);
    tcase_add_test(tests, no_kind_waits_for_ever_and_many_kinds_get_a_session_no_more);
    tcase_add_test(tests, what_waits_for_one_model_holds_up_no_other);
    tcase_add_test(tests, any_mixture_comes_out_once_each);
    tcase_add_loop_test(tests, what_was_asked_before_a_worker_told_its_model_leaves_those_that_are_made_up, 0,
                        40);
    tcase_add_test(tests, what_becomes_known_keeps_its_turn_and_leaves_nothing_behind);
    tcase_add_test(tests, what_is_bulky_or_embeds_becomes_known_too);
}

int main(void)
{
    return run_tests("broker/queue_room", add);
}
