/* SPDX-License-Identifier: MIT */
/* Growth: who gets credit, who waits for it, and that everybody finishes, however small the journal is. */

#include "broker/choose/growth.h"
#include "common/clock.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

#define FRAME_BYTES 100 /* of one id */
#define TOKEN_BYTES 192 /* that are reckoned for it */

static struct journal journal;
static struct ledger ledger;
static struct admission admission;
static struct growth growth;
static uint64_t now;

static void set_up(void)
{
    journal = (struct journal){.limit = 1 << 20};
    ledger = (struct ledger){.seed = 1};
    admission = (struct admission){.max_queued = 1000, .max_queued_bytes = 1 << 20, .shares.seed = 1};
    now = CLOCK_NS_PER_S;
    growth_init(&growth, &journal, &ledger, &admission);
}

static void tear_down(void)
{
    struct request *request, *next;
    ck_assert_uint_eq(growth.started.n, 0);
    ck_assert_ptr_null(growth.waiting);
    ck_assert_uint_eq(growth.n_full, 0);
    ck_assert_uint_eq(growth.n_waiting, 0);
    HASH_ITER(by_home, ledger.by_home, request, next)
    {
        ledger_remove(&ledger, &journal, request);
    }
    ck_assert_uint_eq(journal.used, 0);
    ck_assert_ptr_null(admission.shares.by_id);
    growth_deinit(&growth);
}

/* Admitted, and in the queue. */
static struct request *admit(uint8_t session, uint8_t id, uint64_t most)
{
    struct request *request = ledger_add(&ledger, (struct request_key){{{session}}, {{id}}});
    uint64_t bytes = journal_start_bytes(request_overhead());
    ledger_make_room(&ledger, &journal, bytes, false);
    ck_assert_int_eq(journal_reserve(&journal, &request->log, bytes), 0);
    growth_plan(request, most, TOKEN_BYTES);
    ck_assert_int_eq(admission_entered(&admission, request), 0);
    admission_queued(&admission, request);
    return request;
}

/* 0, or why it stays in the queue. */
static int start(struct request *request)
{
    int r = growth_start(&growth, request);
    if (r == 0)
        admission_dequeued(&admission, request);
    return r;
}

static struct request *started(uint8_t session, uint8_t id, uint64_t most)
{
    struct request *request = admit(session, id, most);
    ck_assert_int_eq(start(request), 0);
    return request;
}

static void make_one(struct request *request, size_t bytes)
{
    char frame[4096] = {0};
    ck_assert_int_eq(journal_append(&journal, &request->log, 1, 1, frame, bytes), 0);
}

/* Makes ids as far as its credit goes, and asks when it is due. True: it has them all. */
static bool run(struct request *request)
{
    while (request->log.count < request->growth.credit) {
        make_one(request, FRAME_BYTES);
        if (growth_is_due(request))
            growth_ask(&growth, request);
    }
    return request->log.count == request->growth.most;
}

static void end(struct request *request)
{
    growth_left(&growth, request);
    admission_ended(&admission, request, now);
    ledger_ended(&ledger, &journal, request, now);
}

static void count(void *arg, struct request *request)
{
    ck_assert_uint_gt(request->growth.credit, request->log.count);
    ++*(unsigned *)arg;
}

static unsigned retry(void)
{
    unsigned n = 0;
    growth_retry(&growth, count, &n);
    return n;
}

START_TEST(a_request_begins_with_little_and_grows_as_it_makes)
{
    struct request *request = admit('a', 1, 100000);
    journal.limit = 64 << 20;
    ck_assert_uint_eq(request->growth.credit, 0);
    ck_assert_uint_lt(journal.used, 4096);
    ck_assert_int_eq(start(request), 0);
    ck_assert_uint_eq(request->growth.credit, GROWTH_MOST_IDS);
    ck_assert_uint_eq(request->growth.ask_at, GROWTH_MOST_IDS / 2);
    ck_assert_uint_eq(journal.used, request->log.reserved);
    ck_assert_uint_eq(request->share->journal_bytes, request->log.reserved);
    for (unsigned i = 0; i < GROWTH_MOST_IDS / 2; i++) {
        ck_assert(!growth_is_due(request));
        make_one(request, FRAME_BYTES);
    }
    ck_assert(growth_is_due(request));
    ck_assert(growth_ask(&growth, request));
    ck_assert_uint_eq(request->growth.credit, GROWTH_MOST_IDS * 3 / 2);
    /* What the frames took is paid as it is, and only what is ahead as it was reckoned. */
    ck_assert_uint_lt(request->log.reserved,
                      GROWTH_MOST_IDS / 2 * (FRAME_BYTES + 32) + GROWTH_MOST_IDS * TOKEN_BYTES);
    end(request);
    ck_assert_uint_eq(journal.used, journal.settled);
}
END_TEST

START_TEST(a_short_request_has_all_of_it_at_once_and_never_asks)
{
    struct request *request = started('a', 1, 50);
    ck_assert_uint_eq(request->growth.credit, 50);
    ck_assert_uint_eq(request->growth.ask_at, UINT64_MAX);
    ck_assert(run(request));
    ck_assert(!growth_is_due(request));
    end(request);
}
END_TEST

START_TEST(when_the_journal_is_full_the_youngest_wait_and_the_oldest_finishes)
{
    struct request *requests[3];
    for (uint8_t i = 0; i < 3; i++)
        requests[i] = started((uint8_t)('a' + i), i, 4000); /* three quarters each */
    for (int round = 0; !requests[1]->growth.waits || !requests[2]->growth.waits; round++) {
        ck_assert_int_lt(round, 1000);
        run(requests[2]);
        run(requests[1]);
    }
    ck_assert_uint_eq(growth.n_full, 2);
    ck_assert_uint_eq(growth.n_waiting, 2);
    ck_assert_uint_eq(retry(), 0);
    /* Nothing new begins before those that wait have what they need. */
    struct request *late = admit('z', 9, 10);
    ck_assert_int_eq(start(late), GROWTH_E_FULL);
    ck_assert_uint_eq(late->growth.credit, 0);
    while (!run(requests[0]))
        ck_assert_uint_gt(requests[0]->growth.credit, requests[0]->log.count);
    ck_assert_uint_le(journal.used, journal.limit);
    end(requests[0]);
    retry();
    ck_assert(!requests[1]->growth.waits);
    while (!run(requests[1]))
        ck_assert_uint_gt(requests[1]->growth.credit, requests[1]->log.count);
    end(requests[1]);
    retry();
    while (!run(requests[2]))
        ck_assert_uint_gt(requests[2]->growth.credit, requests[2]->log.count);
    end(requests[2]);
    ck_assert_int_eq(start(late), 0);
    end(late);
}
END_TEST

/* Starts requests of one session, and lets all but the first run until its share is used up. */
static void use_up_share(struct request *ret_mine[4])
{
    for (uint8_t i = 0; i < 4; i++)
        ret_mine[i] = started('a', i, 1000);
    for (int round = 0; round < 100; round++)
        for (int i = 3; i >= 1; i--)
            run(ret_mine[i]);
}

START_TEST(who_has_his_share_waits_and_keeps_nobody_else_out)
{
    struct request *mine[4];
    use_up_share(mine);
    unsigned n_waiting = 0;
    for (int i = 1; i < 4; i++)
        n_waiting += mine[i]->growth.waits == GROWTH_E_SHARE;
    ck_assert_uint_ge(n_waiting, 1);
    ck_assert_uint_eq(growth.n_full, 0);
    struct request *other = started('b', 1, 100);
    ck_assert(run(other));
    end(other);
    for (int i = 0; i < 4; i++) { /* they go on as their own end */
        while (!run(mine[i]))
            ck_assert_uint_gt(mine[i]->growth.credit, mine[i]->log.count);
        end(mine[i]);
        retry();
    }
}
END_TEST

/* One that waited for room and then for its share keeps nobody else out any more, and the other way round. */
START_TEST(why_a_request_waits_may_change_while_it_does)
{
    struct request *mine[4];
    use_up_share(mine);
    struct request *waits = NULL;
    for (int i = 1; i < 4 && !waits; i++)
        waits = mine[i]->growth.waits == GROWTH_E_SHARE ? mine[i] : NULL;
    ck_assert_ptr_nonnull(waits);
    struct request *other = admit('b', 1, 100);
    const uint64_t limit = journal.limit;
    journal.limit = journal.used; /* nothing is left */
    retry();
    ck_assert_int_eq(waits->growth.waits, GROWTH_E_FULL);
    ck_assert_uint_ge(growth.n_full, 1);
    ck_assert_int_eq(start(other), GROWTH_E_FULL);
    journal.limit = limit;
    ck_assert_uint_eq(retry(), 0);
    ck_assert_int_eq(waits->growth.waits, GROWTH_E_SHARE);
    ck_assert_uint_eq(growth.n_full, 0);
    ck_assert_int_eq(start(other), 0);
    end(other);
    for (int i = 0; i < 4; i++)
        end(mine[i]);
}
END_TEST

/* Ids that take more than was reckoned are reckoned anew; what is there already is never refused. */
START_TEST(ids_that_take_more_are_reckoned_anew)
{
    struct request *requests[8];
    for (uint8_t i = 0; i < 8; i++)
        requests[i] = started('b', i, 600);
    struct request *large = requests[7];
    ck_assert_uint_lt(large->growth.credit, 200);
    while (large->log.count < large->growth.credit) {
        make_one(large, 1000);
        if (growth_is_due(large))
            growth_ask(&growth, large);
    }
    ck_assert_uint_ge(large->growth.token_bytes, 1000);
    ck_assert(large->log.count == 600 || large->growth.waits);
    ck_assert_uint_le(journal.used, journal.limit);
    for (uint8_t i = 0; i < 8; i++)
        end(requests[i]);
}
END_TEST

START_TEST(what_goes_back_to_the_queue_has_what_it_had_there)
{
    struct request *request = admit('a', 1, 1000);
    uint64_t used = journal.used, had = request->share->journal_bytes;
    ck_assert_int_eq(growth_start(&growth, request), 0);
    ck_assert_uint_gt(journal.used, used);
    growth_withdraw(&growth, request);
    ck_assert_uint_eq(journal.used, used);
    ck_assert_uint_eq(request->share->journal_bytes, had);
    ck_assert_uint_eq(request->growth.credit, 0);
    ck_assert_int_eq(start(request), 0);
    end(request);
}
END_TEST

START_TEST(what_an_earlier_broker_gave_is_kept_and_asked_for_again)
{
    struct request *half = admit('a', 1, 1000), *none = admit('a', 2, 1000);
    admission_dequeued(&admission, half);
    admission_dequeued(&admission, none);
    for (int i = 0; i < 100; i++)
        make_one(none, FRAME_BYTES);
    ck_assert_int_eq(growth_restore(&growth, half, 300), 0);
    ck_assert_int_eq(growth_restore(&growth, none, 100), 0);
    ck_assert_uint_eq(half->growth.credit, 300);
    ck_assert_uint_ge(half->log.reserved, 300 * TOKEN_BYTES);
    ck_assert_int_eq(half->growth.waits, 0);
    ck_assert_int_ne(none->growth.waits, 0); /* it makes nothing by which it would be noticed */
    ck_assert_uint_eq(retry(), 1);
    ck_assert_uint_gt(none->growth.credit, 100);
    end(half);
    end(none);
}
END_TEST

/* Requests of all lengths and sessions come, grow, end and are read in any order, in a journal that holds a
 * few of them: each finishes, and what is reserved never exceeds the limit. */
START_TEST(everybody_finishes)
{
    enum { REQUESTS = 200, AT_ONCE = 24 };
    struct request *running[AT_ONCE] = {0};
    unsigned n_admitted = 0, n_ended = 0, state = (unsigned)_i + 1;
    struct request *queued = NULL;
    for (unsigned idle = 0; n_ended < REQUESTS; idle++) {
        ck_assert_uint_lt(idle, 1000);
        for (int i = 0; i < AT_ONCE; i++) {
            state = state * 1103515245 + 12345;
            struct request *request = running[i];
            if (!queued && n_admitted < REQUESTS) {
                uint64_t most = (state >> 8) % 7 == 0 ? 4000 : 1 + (state >> 12) % 900;
                queued = admit((uint8_t)('a' + (state >> 20) % 5), (uint8_t)n_admitted++, most);
            }
            if (!request && queued && start(queued) == 0) {
                running[i] = queued;
                queued = NULL;
                continue;
            }
            if (!request || (state >> 16) % 3 == 0)
                continue;
            uint64_t before = request->log.count;
            bool over = run(request);
            if (request->log.count > before)
                idle = 0;
            if (!over)
                continue;
            end(request);
            if ((state >> 24) % 2)
                ledger_taken(&ledger, &journal, request);
            running[i] = NULL;
            n_ended++;
        }
        retry();
        ck_assert_uint_le(journal.used, journal.limit);
    }
}
END_TEST

START_TEST(the_limit_follows_the_slots_and_their_contexts)
{
    const uint64_t room = (uint64_t)4 << 30;
    struct worker workers[3] = {{.slots = 32, .context = 8192}};
    growth_follow(&growth, workers, 3, room); /* 48 MiB: the least there is */
    ck_assert_uint_eq(journal.limit, JOURNAL_LIMIT_BYTES);
    workers[1] = (struct worker){.slots = 64, .context = 32768};
    growth_follow(&growth, workers, 3, room);
    ck_assert_uint_eq(journal.limit, (32ull * 8192 + 64ull * 32768) * TOKEN_BYTES);
    const uint64_t two = journal.limit;
    workers[1].slots = 0; /* it never falls: what was promised stays */
    growth_follow(&growth, workers, 3, room);
    ck_assert_uint_eq(journal.limit, two);
    workers[2] = (struct worker){.slots = UINT32_MAX, .context = UINT32_MAX};
    growth_follow(&growth, workers, 3, room);
    ck_assert_uint_eq(journal.limit, room);
    growth_follow(&growth, workers, 3, room / 2);
    ck_assert_uint_eq(journal.limit, room);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_request_begins_with_little_and_grows_as_it_makes);
    tcase_add_test(tests, a_short_request_has_all_of_it_at_once_and_never_asks);
    tcase_add_test(tests, when_the_journal_is_full_the_youngest_wait_and_the_oldest_finishes);
    tcase_add_test(tests, who_has_his_share_waits_and_keeps_nobody_else_out);
    tcase_add_test(tests, why_a_request_waits_may_change_while_it_does);
    tcase_add_test(tests, ids_that_take_more_are_reckoned_anew);
    tcase_add_test(tests, what_goes_back_to_the_queue_has_what_it_had_there);
    tcase_add_test(tests, what_an_earlier_broker_gave_is_kept_and_asked_for_again);
    tcase_add_test(tests, the_limit_follows_the_slots_and_their_contexts);
    tcase_add_loop_test(tests, everybody_finishes, 0, 20);
}

int main(void)
{
    return run_tests("broker/growth", add);
}
