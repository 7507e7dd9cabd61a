/* SPDX-License-Identifier: MIT */
/* Records of a trace: numbered, bounded, counted where they are lost, and none while nobody watches. The test
 * is the engine and the link. */

#include "tests/unit/run.h"
#include "worker/instruments/trace.h"

#include <string.h>

bool __wrap_link_send(struct link *link, const struct message *message);
void __wrap_engine_observe(struct engine *engine, const struct engine_observer *observer);
void __wrap_engine_stats(const struct engine *engine, struct engine_stats *ret_stats);

static struct trace trace;
static const struct engine_observer *observer;
static struct message said;
static struct trace_record records[PROTO_MAX_TRACE];
static uint64_t steps, now;
static const uint8_t topic[PROTO_TOPIC_BYTES] = {[0] = 7, [16] = 9};

bool __wrap_link_send(struct link *link, const struct message *message)
{
    said = *message;
    if (said.kind == MESSAGE_TRACE_OK)
        memcpy(records, said.trace_ok.records.items, said.trace_ok.records.n * sizeof *records);
    return true;
}

void __wrap_engine_observe(struct engine *engine, const struct engine_observer *wanted)
{
    observer = wanted;
}

void __wrap_engine_stats(const struct engine *engine, struct engine_stats *ret_stats)
{
    *ret_stats = (struct engine_stats){.steps = steps};
}

static const uint8_t *topic_of(uint64_t tag)
{
    ck_assert_uint_eq(tag, 42);
    return topic;
}

static void set_up(void)
{
    steps = 0;
    trace_init(&trace, NULL, NULL, 3, topic_of);
    now = trace.begun_ns;
    observer = NULL;
}

static void tear_down(void)
{
    trace_close(&trace);
}

/* What is answered, and how many records it has. */
static size_t ask(uint64_t from, uint32_t most)
{
    struct message question = {.kind = MESSAGE_TRACE, .trace = {.ref = 5, .from = from, .most = most}};
    trace_take(&trace, &question, now);
    ck_assert_int_eq(said.kind, MESSAGE_TRACE_OK);
    ck_assert_uint_eq(said.trace_ok.ref, 5);
    ck_assert_uint_eq(said.trace_ok.incarnation, 3);
    return said.trace_ok.records.n;
}

static void step(void)
{
    steps++;
    now += CLOCK_NS_PER_MS;
    const struct engine_step_facts facts = {.number = steps,
                                            .decode_rows = 2,
                                            .prefill_rows = 30,
                                            .ids = 3,
                                            .begun_ns = now - 700000,
                                            .read_ns = now,
                                            .backend = {4, 1000, 500000, 9999}};
    if (observer)
        observer->step(observer->arg, &facts);
}

START_TEST(a_step_and_the_marks_of_a_request_are_told_as_they_were)
{
    trace_admitted(&trace, topic, BYTES_LITERAL("req_0"), 1, now); /* nobody watches */
    ck_assert_uint_eq(ask(0, 0), 0);
    ck_assert_uint_eq(said.trace_ok.next, 1);
    step();
    observer->mark(observer->arg, 42, ENGINE_MARK_PREFIX, 64, now + 5000);
    trace_end(&trace, topic, &(struct ending){.reason = END_LENGTH}, 12);
    ck_assert_uint_eq(ask(1, 0), 3);
    ck_assert_uint_eq(said.trace_ok.next, 4);
    ck_assert_uint_eq(said.trace_ok.lost, 0);
    ck_assert_int_eq(records[0].what, TRACE_STEP);
    ck_assert_uint_eq(records[0].at_us, 1000);
    ck_assert_uint_eq(records[0].n, 1);
    ck_assert(records[0].decode_rows == 2 && records[0].prefill_rows == 30 && records[0].padding_rows == 4);
    ck_assert(records[0].ids == 3 && records[0].total_us == 700);
    ck_assert(records[0].embed_us == 1 && records[0].layers_us == 500 && records[0].sample_us == 9);
    ck_assert_int_eq(records[1].what, TRACE_PREFIX);
    ck_assert_uint_eq(records[1].n, 64);
    ck_assert_uint_eq(records[1].at_us, 1005);
    ck_assert_mem_eq(&records[1].session, topic, sizeof records[1].session);
    ck_assert_mem_eq(&records[1].id, topic + 16, sizeof records[1].id);
    ck_assert_int_eq(records[2].what, TRACE_END);
    ck_assert_int_eq(records[2].reason, END_LENGTH);
    ck_assert_uint_eq(records[2].n, 12);
    ck_assert_uint_eq(ask(4, 0), 0);
    trace_admitted(&trace, topic, BYTES_LITERAL("req_1"), 250, now);
    ck_assert_uint_eq(ask(4, 0), 1);
    ck_assert_int_eq(records[0].what, TRACE_ADMITTED);
    ck_assert_uint_eq(records[0].n, 250);
    ck_assert(bytes_equal(records[0].request_id, BYTES_LITERAL("req_1")));
}
END_TEST

START_TEST(what_is_given_back_has_not_ended)
{
    ask(0, 0);
    trace_end(&trace, topic, &(struct ending){.reason = END_ERROR, .error = PROTO_DRAINING}, 7);
    trace_end(&trace, topic, &(struct ending){.reason = END_ERROR, .error = PROTO_MODEL_ERROR}, 8);
    ck_assert_uint_eq(ask(1, 0), 2);
    ck_assert_int_eq(records[0].what, TRACE_GIVEN_BACK);
    ck_assert_uint_eq(records[0].n, 7);
    ck_assert_int_eq(records[1].what, TRACE_END);
    ck_assert_int_eq(records[1].reason, END_ERROR);
}
END_TEST

START_TEST(what_is_overwritten_is_counted)
{
    const uint64_t made = TRACE_RECORDS + 1000;
    ask(0, 0);
    for (uint64_t i = 0; i < made; i++)
        step();
    now = trace.begun_ns;
    ck_assert_uint_eq(ask(1, 10), 10);
    ck_assert_uint_eq(said.trace_ok.lost, 1000);
    ck_assert_uint_eq(records[0].n, 1001);
    uint64_t told = 10, from = said.trace_ok.next;
    for (size_t n; (n = ask(from, 0)) > 0; from = said.trace_ok.next) {
        ck_assert_uint_eq(said.trace_ok.lost, 0);
        for (size_t i = 0; i < n; i++)
            ck_assert_uint_eq(records[i].n, from + i);
        told += n;
    }
    ck_assert_uint_eq(told, TRACE_RECORDS);
}
END_TEST

START_TEST(nothing_is_recorded_while_nobody_asks)
{
    ck_assert_ptr_null(observer);
    ask(0, 0);
    ck_assert_ptr_nonnull(observer);
    step();
    trace_expire(&trace, now);
    ck_assert_ptr_nonnull(observer);
    now += TRACE_LEASE_NS + CLOCK_NS_PER_MS;
    trace_expire(&trace, now);
    ck_assert_ptr_null(observer);
    ck_assert_ptr_null(trace.ring);
    for (int i = 0; i < 5; i++)
        step();
    trace_mark(&trace, topic, TRACE_ADMITTED, 1, now);
    trace_end(&trace, topic, &(struct ending){.reason = END_STOP}, 1);
    ck_assert_uint_eq(ask(1, 0), 0); /* who comes back hears how many steps it missed */
    ck_assert_uint_eq(said.trace_ok.lost, 6);
    ck_assert_uint_eq(said.trace_ok.next, 7);
    step();
    ck_assert_uint_eq(ask(7, 0), 1);
    ck_assert_uint_eq(records[0].n, 7);
}
END_TEST

/* It asks on from what another process has told. */
START_TEST(a_number_that_is_not_reached_yet_is_now)
{
    ask(0, 0);
    step();
    ck_assert_uint_eq(ask(1000000, 0), 0);
    ck_assert_uint_eq(said.trace_ok.next, 2);
    ck_assert_uint_eq(said.trace_ok.lost, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_step_and_the_marks_of_a_request_are_told_as_they_were);
    tcase_add_test(tests, what_is_given_back_has_not_ended);
    tcase_add_test(tests, what_is_overwritten_is_counted);
    tcase_add_test(tests, nothing_is_recorded_while_nobody_asks);
    tcase_add_test(tests, a_number_that_is_not_reached_yet_is_now);
}

int main(void)
{
    return run_tests("trace", add);
}
