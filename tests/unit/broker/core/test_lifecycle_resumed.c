/* SPDX-License-Identifier: MIT */
/* Requests that were begun in another pool: what is here continues behind what they brought, whatever becomes
 * of workers and clients. */

#include "tests/unit/broker/running.h"
#include "tests/unit/run.h"

#include <string.h>

#define GIVEN      3 /* ids, and a byte of text less */
#define GIVEN_TEXT 2

static const int32_t given[GIVEN] = {11, 12, 13};
static uint32_t lost; /* that clients state */

static void resume(struct generation *generation)
{
    static const struct bytes feature[] = {BYTES_LITERAL(PROTO_FEATURE_RESUME)};
    static const uint8_t digest[16] = {7};
    generation->require = (struct text_list){feature, 1};
    generation->has_seed = true;
    generation->sampling.seed = 5;
    generation->output = (struct id_list){given, GIVEN};
    generation->off = GIVEN_TEXT;
    generation->lost = lost;
    generation->prompt_digest = (struct bytes){digest, sizeof digest};
}

static void resume_and_keep(struct generation *generation)
{
    resume(generation);
    generation->on_disconnect = DISCONNECT_KEEP;
    generation->keep_s = 60;
}

static void resume_without_limit(struct generation *generation)
{
    resume(generation);
    generation->max_tokens = 0;
}

static void resume_with_many(struct generation *generation)
{
    resume(generation);
    generation->logprobs = 21;
    generation->max_tokens = 500000;
}

static void set_up(void)
{
    inside_set_up();
    lost = 0;
}

/* What a worker was assigned: ids and text so far. */
static struct message expect_assigned(int worker, size_t n, uint64_t off)
{
    struct message assign = worker_hears(worker);
    ck_assert_int_eq(assign.kind, MESSAGE_ASSIGN);
    const struct generation *generation = &assign.assign.generation;
    ck_assert_uint_eq(generation->output.n, n);
    ck_assert_mem_eq(generation->output.items, given, sizeof given);
    ck_assert_uint_eq(generation->off, off);
    ck_assert_uint_eq(generation->prompt_digest.len, 16);
    return assign;
}

static struct request *run_resumed(void)
{
    struct request *request = inside_admit(0, 'r', resume);
    broker->workers[1].state = WORKER_DRAINING;
    lifecycle_dispatch(broker);
    broker->workers[1].state = WORKER_READY;
    ck_assert_ptr_eq(request->worker, &broker->workers[0]);
    return request;
}

START_TEST(frames_continue_behind_what_was_brought_along)
{
    struct request *request = run_resumed();
    const struct message assign = expect_assigned(0, GIVEN, GIVEN_TEXT);
    ck_assert_uint_eq(assign.assign.generation.sampling.seed, 5);
    ck_assert_uint_eq(assign.assign.generation.lost, 0);
    ck_assert_uint_gt(assign.assign.credit, GIVEN);
    inside_produce(request, 4, END_REASON_COUNT);
    const struct message frame = client_listens(0);
    ck_assert_uint_eq(frame.frame.seq, GIVEN);
    ck_assert_uint_eq(frame.frame.off, GIVEN_TEXT);
    ck_assert_uint_eq(broker->counters.tokens, 4); /* the others were another pool's */
    inside_produce(request, 1, END_STOP);
    ck_assert_uint_eq(client_listens(0).frame.seq, GIVEN + 4);
    const struct message end = client_hears(0);
    ck_assert_int_eq(end.kind, MESSAGE_END);
    ck_assert_uint_eq(end.end.count, GIVEN + 5);
    ck_assert_uint_eq(broker->counters.tokens, 5);
}
END_TEST

START_TEST(a_worker_that_dies_is_followed_by_one_that_has_both_parts)
{
    struct request *request = run_resumed();
    expect_assigned(0, GIVEN, GIVEN_TEXT);
    inside_produce(request, 2, END_REASON_COUNT);
    lifecycle_worker_lost(broker, &broker->workers[0], false, "it died");
    broker->workers[0].state = WORKER_STARTING;
    lifecycle_dispatch(broker);
    const struct message assign = expect_assigned(1, GIVEN + 2, GIVEN_TEXT + 2);
    ck_assert_uint_eq(assign.assign.generation.lost, 1);
    inside_produce(request, 1, END_STOP);
    while (client_listens(0).kind != MESSAGE_NONE)
        ;
    ck_assert_uint_eq(client_hears(0).end.count, GIVEN + 3);
}
END_TEST

START_TEST(one_that_dies_before_its_first_token_leaves_what_was_brought_along)
{
    run_resumed();
    expect_assigned(0, GIVEN, GIVEN_TEXT);
    lifecycle_worker_lost(broker, &broker->workers[0], false, "it died");
    broker->workers[0].state = WORKER_STARTING;
    lifecycle_dispatch(broker);
    expect_assigned(1, GIVEN, GIVEN_TEXT);
}
END_TEST

/* Two workers in other pools and the third one here. */
START_TEST(deaths_elsewhere_count)
{
    lost = PROTO_MAX_LOST;
    struct request *request = run_resumed();
    ck_assert_uint_eq(expect_assigned(0, GIVEN, GIVEN_TEXT).assign.generation.lost, PROTO_MAX_LOST);
    ck_assert_uint_eq(request->n_lost, PROTO_MAX_LOST);
    lifecycle_worker_lost(broker, &broker->workers[0], false, "it died");
    ck_assert_int_eq(request->state, REQUEST_ENDED);
    const struct ending end = client_listens(0).frame.end;
    ck_assert_int_eq(end.error, PROTO_WORKER_LOST);
    ck_assert_uint_eq(end.lost, PROTO_MAX_LOST + 1);
    ck_assert_uint_eq(end.usage.output_tokens, GIVEN);
    ck_assert_uint_eq(client_hears(0).end.end.lost, PROTO_MAX_LOST + 1);
}
END_TEST

/* More may stand in a vault that is damaged. */
START_TEST(deaths_are_counted_up_to_the_limit)
{
    struct request *request = run_resumed();
    expect_assigned(0, GIVEN, GIVEN_TEXT);
    request->n_lost = UINT32_MAX;
    lifecycle_worker_lost(broker, &broker->workers[0], true, "it ended");
    broker->workers[0].state = WORKER_STARTING;
    lifecycle_dispatch(broker);
    ck_assert_uint_eq(expect_assigned(1, GIVEN, GIVEN_TEXT).assign.generation.lost, PROTO_MAX_LOST);
    lifecycle_worker_lost(broker, &broker->workers[1], false, "it died");
    ck_assert_int_eq(request->state, REQUEST_ENDED);
    ck_assert_uint_eq(client_hears(0).end.end.lost, PROTO_MAX_LOST + 1);
}
END_TEST

START_TEST(an_end_that_is_no_fault_of_the_request_tells_how_many_workers_it_had_lost)
{
    lost = 1;
    inside_admit(0, 'r', resume);
    lifecycle_end_all(broker, "the pool is shutting down");
    const struct ending end = client_listens(0).frame.end;
    ck_assert_int_eq(end.error, PROTO_DRAINING);
    ck_assert_uint_eq(end.lost, 1);
}
END_TEST

START_TEST(a_claim_to_have_been_begun_elsewhere_gets_nobody_an_earlier_turn)
{
    struct request *fresh = inside_admit(0, 'f', NULL), *resumed = inside_admit(1, 'r', resume);
    ck_assert_int_eq(resumed->queued_class, fresh->queued_class);
    ck_assert_ptr_eq(queue_first(&broker->queue, QUEUE_ALL), fresh);
}
END_TEST

START_TEST(who_attaches_hears_where_the_output_begins_here)
{
    struct request *request = inside_admit(0, 'r', resume_and_keep);
    lifecycle_dispatch(broker);
    inside_produce(request, 1, END_REASON_COUNT);
    struct message attach = {.kind = MESSAGE_ATTACH};
    attach.attach.session = sessions[0]->id;
    attach.attach.id = inside_id('r');
    client_says(1, &attach);
    const struct message ok = client_hears(1);
    ck_assert_int_eq(ok.kind, MESSAGE_ATTACH_OK);
    ck_assert_uint_eq(ok.attach_ok.from, GIVEN);
    ck_assert_uint_eq(ok.attach_ok.off, GIVEN_TEXT);
    ck_assert_uint_eq(ok.attach_ok.next, GIVEN + 1);
    struct message replay = {.kind = MESSAGE_REPLAY};
    replay.replay.id = inside_id('r');
    replay.replay.next = GIVEN;
    client_says(1, &replay);
    const struct message page = client_hears(1);
    ck_assert_int_eq(page.kind, MESSAGE_REPLAY_OK);
    ck_assert_uint_eq(page.replay_ok.frames.n, 1);
    ck_assert_uint_eq(page.replay_ok.from, GIVEN);
    ck_assert_uint_eq(page.replay_ok.next, GIVEN + 1);
}
END_TEST

/* The journal has room for what is to come, and needs none for the rest. */
START_TEST(what_was_brought_along_takes_no_room_in_the_journal)
{
    struct request *request = inside_admit(0, 'r', resume_without_limit);
    const uint64_t queued = request->log.reserved;
    struct request *fresh = inside_admit(1, 'f', NULL);
    ck_assert_uint_eq(queued, fresh->log.reserved);
    lifecycle_dispatch(broker);
    const uint64_t ahead = request->growth.credit - GIVEN;
    ck_assert_uint_eq(request->log.reserved, queued + ahead * request->growth.token_bytes);
    const struct message no = client_generates(1, 'm', resume_with_many);
    ck_assert_int_eq(no.kind, MESSAGE_ERROR); /* far above the context, whatever was made of it */
    ck_assert_int_eq(no.error.error, PROTO_TOO_LONG);
}
END_TEST

static void forget_feature(struct generation *generation)
{
    resume(generation);
    static const struct bytes unknown[] = {BYTES_LITERAL(PROTO_FEATURE_RESUME), BYTES_LITERAL("time")};
    generation->require = (struct text_list){unknown, 2};
}

START_TEST(the_feature_is_known_and_others_are_not)
{
    const struct message no = client_generates(0, 'u', forget_feature);
    ck_assert_int_eq(no.kind, MESSAGE_ERROR);
    ck_assert_text(no.error.text, "generate: require: \"time\" is not supported");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, inside_tear_down);
    tcase_add_test(tests, frames_continue_behind_what_was_brought_along);
    tcase_add_test(tests, a_worker_that_dies_is_followed_by_one_that_has_both_parts);
    tcase_add_test(tests, one_that_dies_before_its_first_token_leaves_what_was_brought_along);
    tcase_add_test(tests, deaths_elsewhere_count);
    tcase_add_test(tests, deaths_are_counted_up_to_the_limit);
    tcase_add_test(tests, an_end_that_is_no_fault_of_the_request_tells_how_many_workers_it_had_lost);
    tcase_add_test(tests, a_claim_to_have_been_begun_elsewhere_gets_nobody_an_earlier_turn);
    tcase_add_test(tests, who_attaches_hears_where_the_output_begins_here);
    tcase_add_test(tests, what_was_brought_along_takes_no_room_in_the_journal);
    tcase_add_test(tests, the_feature_is_known_and_others_are_not);
}

int main(void)
{
    return run_tests("broker/lifecycle_resumed", add);
}
