/* SPDX-License-Identifier: MIT */
/* Who is told what of a trace. The test is both clients and both workers. */

#include "broker/core/instruments.h"
#include "tests/unit/broker/running.h"
#include "tests/unit/run.h"

#include <string.h>

#include "common/clock.h"

static struct message ask_for(int client, const char *worker, uint32_t most)
{
    const struct message question = {
        .kind = MESSAGE_TRACE,
        .trace = {.ref = 77, .worker = bytes_of_string(worker), .from = 3, .most = most}};
    client_says(client, &question);
    return client_hears(client);
}

static struct message ask(int client, const char *worker)
{
    return ask_for(client, worker, 9);
}

static void is_refused(struct message no, enum proto_error error)
{
    ck_assert_str_eq(message_kind_name(no.kind), message_kind_name(MESSAGE_ERROR));
    ck_assert_str_eq(proto_error_name(no.error.error), proto_error_name(error));
    ck_assert_int_eq(no.error.retry_after_ms > 0, error == PROTO_OVERLOADED);
}

/* The question as worker 0 gets it. */
static uint64_t is_asked(void)
{
    struct message question = worker_hears(0);
    ck_assert_str_eq(message_kind_name(question.kind), message_kind_name(MESSAGE_TRACE));
    ck_assert_uint_eq(question.trace.from, 3);
    ck_assert_uint_eq(question.trace.most, 9);
    return question.trace.ref;
}

/* A step, and a mark of each of those requests. */
static struct message tell(uint64_t ref, const struct request *a, const struct request *b)
{
    const struct trace_record records[] = {
        {.what = TRACE_STEP, .at_us = 1, .n = 8, .decode_rows = 2, .total_us = 5},
        {.what = TRACE_SLOT, .at_us = 2, .n = 1, .session = a->home.session, .id = a->home.id},
        {.what = TRACE_SLOT, .at_us = 3, .n = 2, .session = b->home.session, .id = b->home.id},
        {.what = TRACE_END, .at_us = 4, .session = sessions[0]->id, .id = {{251}}},
        {.what = TRACE_END, .at_us = 5, .session = {{250}}, .id = {{251}}}}; /* ended long ago */
    struct message answer = {.kind = MESSAGE_TRACE_OK, .trace_ok = {.ref = ref, .next = 7, .lost = 2}};
    answer.trace_ok.records.items = records;
    answer.trace_ok.records.n = sizeof records / sizeof *records;
    worker_says(0, &answer);
    return client_hears(0);
}

static void named(struct generation *generation)
{
    generation->request_id = BYTES_LITERAL("req_1");
}

static void set_up(void)
{
    inside_set_up();
    broker->workers[1].state = WORKER_LOADING;
}

START_TEST(in_the_run_directory_all_is_seen)
{
    static const struct id128 nobody;
    struct request *own = run_on_first(1, named);
    struct request *other = inside_admit(1, 2, NULL);
    while (worker_hears(0).kind != MESSAGE_NONE)
        ;
    sessions[0]->near = true;
    ck_assert_int_eq(ask(0, "worker-0").kind, MESSAGE_NONE);
    struct message told = tell(is_asked(), own, other);
    ck_assert_str_eq(message_kind_name(told.kind), message_kind_name(MESSAGE_TRACE_OK));
    ck_assert_uint_eq(told.trace_ok.ref, 77);
    ck_assert_uint_eq(told.trace_ok.next, 7);
    ck_assert_uint_eq(told.trace_ok.lost, 2);
    ck_assert_uint_eq(told.trace_ok.records.n, 5);
    const struct trace_record *records = told.trace_ok.records.items;
    ck_assert_uint_eq(records[0].decode_rows, 2);
    ck_assert(bytes_equal(records[1].request_id, BYTES_LITERAL("req_1")));
    ck_assert_mem_eq(&records[2].id, &other->home.id, sizeof other->home.id);
    for (int i = 0; i < 5; i++) /* whoever knows a session can read its answers */
        ck_assert_mem_eq(&records[i].session, &nobody, sizeof nobody);
}
END_TEST

START_TEST(others_see_their_own_requests_and_no_steps)
{
    struct request *own = run_on_first(1, NULL);
    struct request *other = inside_admit(1, 2, NULL);
    while (worker_hears(0).kind != MESSAGE_NONE)
        ;
    sessions[0]->near = false;
    ck_assert_int_eq(ask(0, "worker-0").kind, MESSAGE_NONE);
    struct message told = tell(is_asked(), own, other);
    ck_assert_uint_eq(told.trace_ok.records.n, 2);
    ck_assert_mem_eq(&told.trace_ok.records.items[0].id, &own->home.id, sizeof own->home.id);
    ck_assert_uint_eq(told.trace_ok.records.items[1].at_us, 4); /* own, and forgotten */
    struct message no = ask(0, "worker-0");                     /* and they take turns */
    ck_assert_str_eq(proto_error_name(no.error.error), proto_error_name(PROTO_OVERLOADED));
    ck_assert_uint_gt(no.error.retry_after_ms, 0);
    inside_pass(CLOCK_NS_PER_S);
    ck_assert_int_eq(ask(0, "worker-0").kind, MESSAGE_NONE);
    is_asked();
}
END_TEST

/* The broker has forgotten its name by then. */
START_TEST(one_that_has_ended_keeps_the_name_that_its_worker_said)
{
    struct request *own = run_on_first(1, named);
    inside_produce(own, 1, END_STOP);
    ck_assert_int_eq(own->state, REQUEST_ENDED);
    while (worker_hears(0).kind != MESSAGE_NONE || client_hears(0).kind != MESSAGE_NONE)
        ;
    ck_assert_int_eq(ask(0, "worker-0").kind, MESSAGE_NONE);
    const struct trace_record record = {.what = TRACE_ADMITTED,
                                        .session = own->home.session,
                                        .id = own->home.id,
                                        .request_id = BYTES_LITERAL("req_1")};
    struct message answer = {.kind = MESSAGE_TRACE_OK, .trace_ok = {.ref = is_asked(), .next = 7}};
    answer.trace_ok.records.items = &record;
    answer.trace_ok.records.n = 1;
    worker_says(0, &answer);
    struct message told = client_hears(0);
    ck_assert_uint_eq(told.trace_ok.records.n, 1);
    ck_assert_text(told.trace_ok.records.items[0].request_id, "req_1");
}
END_TEST

START_TEST(each_client_beyond_the_run_directory_has_its_own_turns)
{
    sessions[0]->near = sessions[1]->near = false;
    is_refused(ask(0, "worker-1"), PROTO_NO_WORKER);
    broker->tokenize.n += TOKENIZE_TABLE_MAX; /* what is refused costs no turn */
    is_refused(ask(0, "worker-0"), PROTO_OVERLOADED);
    broker->tokenize.n -= TOKENIZE_TABLE_MAX;
    ck_assert_int_eq(ask(0, "worker-0").kind, MESSAGE_NONE);
    is_asked();
    broker->workers[1].state = WORKER_READY;
    is_refused(ask(0, "worker-1"), PROTO_OVERLOADED);
    is_refused(ask(1, "worker-0"), PROTO_OVERLOADED); /* in this very moment */
    inside_pass(2 * CLOCK_NS_PER_MS);
    ck_assert_int_eq(ask_for(1, "worker-0", 0).kind, MESSAGE_NONE);
    ck_assert_uint_eq(worker_hears(0).trace.most, 64);
    inside_pass(48 * CLOCK_NS_PER_MS);
    ck_assert_int_eq(ask_for(0, "worker-1", 1000).kind, MESSAGE_NONE);
    ck_assert_uint_eq(worker_hears(1).trace.most, 64);
}
END_TEST

START_TEST(sessions_of_a_key_take_turns)
{
    struct client_key key = {.number = 4};
    HASH_ADD(by_number, broker->client_keys.by_number, number, sizeof key.number, &key);
    for (int i = 0; i < 2; i++) {
        sessions[i]->key = key.number;
        sessions[i]->client = inside_id('k');
    }
    ck_assert_int_eq(ask(0, "worker-0").kind, MESSAGE_NONE);
    is_asked();
    inside_pass(10 * CLOCK_NS_PER_MS);
    is_refused(ask(1, "worker-0"), PROTO_OVERLOADED);
    inside_pass(40 * CLOCK_NS_PER_MS);
    ck_assert_int_eq(ask(1, "worker-0").kind, MESSAGE_NONE);
    is_asked();
    HASH_DELETE(by_number, broker->client_keys.by_number, &key);
}
END_TEST

START_TEST(a_worker_that_cannot_be_asked_is_named)
{
    struct message no = ask(0, "worker-9");
    ck_assert_str_eq(message_kind_name(no.kind), message_kind_name(MESSAGE_ERROR));
    ck_assert_str_eq(proto_error_name(no.error.error), proto_error_name(PROTO_BAD_REQUEST));
    ck_assert_int_eq(no.error.of, MESSAGE_TRACE);
    ck_assert_uint_eq(no.error.ref, 77);
    ck_assert(bytes_equal(no.error.text, BYTES_LITERAL("no worker \"worker-9\" in this pool")));
    no = ask(0, "worker-1");
    ck_assert_str_eq(proto_error_name(no.error.error), proto_error_name(PROTO_NO_WORKER));
    ck_assert(bytes_equal(no.error.text, BYTES_LITERAL("worker-1 is not ready: loading")));
}
END_TEST

/* Nobody beyond the run directory makes a worker slower, or has it forget what it knows. */
START_TEST(a_trim_is_for_the_run_directory)
{
    static const struct given_memory given = {BYTES_LITERAL("kv"), 9};
    const struct message question = {
        .kind = MESSAGE_TRIM,
        .trim = {.ref = 77, .worker = BYTES_LITERAL("worker-0"), .run = 3, .prefixes = true}};
    sessions[0]->near = false;
    client_says(0, &question);
    struct message no = client_hears(0);
    is_refused(no, PROTO_UNSUPPORTED);
    ck_assert_text(no.error.text, "trim: only for clients in the run directory");
    sessions[0]->near = true;
    client_says(0, &question);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_NONE);
    const struct message asked = worker_hears(0);
    ck_assert_int_eq(asked.kind, MESSAGE_TRIM);
    ck_assert(asked.trim.run == 3 && asked.trim.prefixes);
    struct message answer = {.kind = MESSAGE_TRIM_OK, .trim_ok = {.ref = asked.trim.ref, .blocks = 4}};
    answer.trim_ok.given.items = &given;
    answer.trim_ok.given.n = 1;
    worker_says(0, &answer);
    const struct message told = client_hears(0);
    ck_assert_int_eq(told.kind, MESSAGE_TRIM_OK);
    ck_assert(told.trim_ok.ref == 77 && told.trim_ok.blocks == 4 && told.trim_ok.given.n == 1);
    ck_assert_uint_eq(told.trim_ok.given.items[0].bytes, 9);
}
END_TEST

START_TEST(a_question_that_nobody_asked_is_not_answered)
{
    struct request *own = run_on_first(1, NULL);
    while (worker_hears(0).kind != MESSAGE_NONE)
        ;
    ck_assert_int_eq(tell(12345, own, own).kind, MESSAGE_NONE);
    const struct message question = {.kind = MESSAGE_TOKENIZE,
                                     .tokenize = {.ref = 5, .text = BYTES_LITERAL("a"), .has_text = true}};
    client_says(0, &question);
    struct message asked = worker_hears(0);
    ck_assert_int_eq(asked.kind, MESSAGE_TOKENIZE);
    ck_assert_int_eq(tell(asked.tokenize.ref, own, own).kind, MESSAGE_NONE);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, inside_tear_down);
    tcase_add_test(tests, in_the_run_directory_all_is_seen);
    tcase_add_test(tests, others_see_their_own_requests_and_no_steps);
    tcase_add_test(tests, one_that_has_ended_keeps_the_name_that_its_worker_said);
    tcase_add_test(tests, each_client_beyond_the_run_directory_has_its_own_turns);
    tcase_add_test(tests, sessions_of_a_key_take_turns);
    tcase_add_test(tests, a_worker_that_cannot_be_asked_is_named);
    tcase_add_test(tests, a_trim_is_for_the_run_directory);
    tcase_add_test(tests, a_question_that_nobody_asked_is_not_answered);
}

int main(void)
{
    return run_tests("instruments", add);
}
