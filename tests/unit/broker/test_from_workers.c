/* SPDX-License-Identifier: MIT */
/* What workers say, on their link and on their streams, and what the broker believes of it. */

#include "broker/from_workers.h"
#include "tests/unit/broker/inside.h"
#include "tests/unit/broker/logged.h"
#include "tests/unit/broker/running.h"
#include "tests/unit/run.h"

#include <string.h>

#include "broker/frames.h"
#include "broker/core/lifecycle.h"
#include "broker/core/status.h"
#include "common/clock.h"

#define S  CLOCK_NS_PER_S
#define MS CLOCK_NS_PER_MS

static struct worker *first;

static void set_up(void)
{
    inside_set_up();
    first = &broker->workers[0];
}

/* ---- registration ---- */

/* As worker 0 registers. */
static struct message registration(void)
{
    static const uint8_t digest[16] = {3};
    struct message message = {.kind = MESSAGE_REGISTER};
    message.register_.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    message.register_.name = BYTES_LITERAL("worker-0");
    message.register_.incarnation = 1;
    message.register_.pid = 100;
    message.register_.stream = BYTES_LITERAL("inproc://worker-0");
    message.register_.model = BYTES_LITERAL("other");
    message.register_.device = BYTES_LITERAL("gpu");
    message.register_.tools = BYTES_LITERAL("hermes");
    message.register_.digest = (struct bytes){digest, sizeof digest};
    message.register_.slots = 7;
    message.register_.context = 99;
    message.register_.embedding = 12;
    message.register_.chat = true;
    return message;
}

START_TEST(a_worker_is_what_it_registers)
{
    struct message message = registration();
    worker_says(0, &message);
    struct message ok = worker_hears(0);
    ck_assert_int_eq(ok.kind, MESSAGE_REGISTER_OK);
    ck_assert_uint_eq(ok.register_ok.boot, INSIDE_BOOT);
    ck_assert_uint_eq(ok.register_ok.heartbeat_ms, 250);
    ck_assert_str_eq(first->model, "other");
    ck_assert_str_eq(first->device, "gpu");
    ck_assert_str_eq(first->tools, "hermes");
    ck_assert_uint_eq(first->digest[0], 3);
    ck_assert_uint_eq(first->slots, 7);
    ck_assert_uint_eq(first->context, 99);
    ck_assert_uint_eq(first->embedding, 12);
    ck_assert(first->chat);
    ck_assert_int_eq(first->state, WORKER_READY); /* it only asked again */
}
END_TEST

START_TEST(who_comes_with_another_address_begins_anew)
{
    struct message message = registration();
    const struct peer before = first->peer;
    first->peer.bytes[0] ^= 1;
    first->under_way = 5;
    first->relieved = true;
    worker_says(0, &message);
    ck_assert_int_eq(first->state, WORKER_LOADING);
    ck_assert_uint_eq(first->under_way, 0);
    ck_assert(!first->relieved);
    ck_assert_mem_eq(&first->peer, &before, sizeof before);
}
END_TEST

static char wanted[16]; /* the model that the next request names */

static void name_model(struct generation *generation)
{
    generation->model = bytes_of_string(wanted);
}

static struct request *admit_for(uint8_t name, const char *model)
{
    strcpy(wanted, model);
    return inside_admit(0, name, name_model);
}

/* While no worker has told its model, any name may turn out to be served. */
START_TEST(what_was_asked_before_a_worker_told_its_model_waits_for_no_made_up_names)
{
    struct request *made_up[TARGETS_UNKNOWN_EACH + 1];
    for (int i = 0; i < INSIDE_WORKERS; i++) {
        broker->workers[i].model[0] = 0;
        broker->workers[i].state = WORKER_STARTING;
    }
    for (uint8_t i = 0; i <= TARGETS_UNKNOWN_EACH; i++) {
        char model[] = "made-up-0";
        model[8] = (char)('0' + i);
        made_up[i] = admit_for((uint8_t)('0' + i), model);
    }
    struct request *real = admit_for('r', "m");
    ck_assert_uint_eq(real->queued_target, made_up[TARGETS_UNKNOWN_EACH]->queued_target);
    lifecycle_dispatch(broker);
    ck_assert_int_eq(real->state, REQUEST_QUEUED);
    broker->workers[1].peer.bytes[0] ^= 1; /* it has started anew */
    worker_registers(1, 0, 0);
    lifecycle_dispatch(broker);
    ck_assert_int_eq(real->state, REQUEST_RUNNING);
    ck_assert_int_eq(worker_hears(1).kind, MESSAGE_ASSIGN);
    for (int i = 0; i <= TARGETS_UNKNOWN_EACH; i++) /* worker 0 may have them */
        ck_assert_int_eq(made_up[i]->state, REQUEST_QUEUED);
}
END_TEST

/* A request for an alias waits while workers start, behind made-up names, and goes to the worker whose model
 * has it. */
START_TEST(what_was_asked_by_an_alias_goes_to_its_worker)
{
    struct message message = registration();
    strcpy(broker->options.aliases[0], "other"); /* its own name, which is none */
    strcpy(broker->options.aliases[1], "gpt-4o");
    strcpy(broker->options.aliases[2], "llama");
    broker->options.n_aliases = 3;
    for (int i = 0; i < INSIDE_WORKERS; i++) {
        broker->workers[i].model[0] = 0;
        broker->workers[i].state = WORKER_STARTING;
    }
    for (uint8_t i = 0; i <= TARGETS_UNKNOWN_EACH; i++) {
        char model[] = "made-up-0";
        model[8] = (char)('0' + i);
        admit_for((uint8_t)('0' + i), model);
    }
    struct request *request = admit_for('a', "llama");
    ck_assert_int_eq(request->state, REQUEST_QUEUED);
    ck_assert(!request->model_known);
    worker_says(0, &message);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_REGISTER_OK);
    ck_assert(request->model_known);
    first->state = WORKER_READY;
    lifecycle_dispatch(broker);
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
    ck_assert_ptr_eq(request->worker, first);
    struct message status;
    static struct worker_status workers[WORKER_MAX];
    status_fill(broker, 1, workers, &status);
    ck_assert_uint_eq(workers[0].aliases.n, 2);
    ck_assert_text(workers[0].aliases.items[1], "llama");
    ck_assert_uint_eq(workers[1].aliases.n, 0);
}
END_TEST

/* Worker 1 has the model "m", which is asked for as "other" too: the own name of the model of worker 0. */
START_TEST(a_name_that_would_mean_two_models_is_refused)
{
    struct message message = registration();
    const struct bytes alias = BYTES_LITERAL("other");
    broker->workers[1].aliases[0] = alias;
    broker->workers[1].n_aliases = 1;
    worker_says(0, &message);
    struct message no = worker_hears(0);
    ck_assert_int_eq(no.kind, MESSAGE_ERROR);
    ck_assert_int_eq(no.error.error, PROTO_CONFLICT);
    ck_assert_text(no.error.text,
                   "model \"other\": this name is an alias of another model of this pool, \"m\"");
    ck_assert_str_ne(first->model, "other");
    broker->workers[1].state = WORKER_FAILED; /* nobody asks that one */
    worker_says(0, &message);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_REGISTER_OK);
}
END_TEST

/* As while a reload puts one in the place of the other. */
START_TEST(two_models_may_share_an_alias)
{
    struct message message = registration();
    const struct bytes alias = BYTES_LITERAL("gpt-4o");
    strcpy(broker->options.aliases[0], "gpt-4o");
    broker->options.n_aliases = 1;
    broker->workers[1].aliases[0] = alias;
    broker->workers[1].n_aliases = 1;
    worker_says(0, &message);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_REGISTER_OK);
    ck_assert(worker_answers_to(first, alias));
}
END_TEST

START_TEST(nobody_registers_for_another)
{
    enum { NAME, INCARNATION, PID, STREAM, ABSENT, FAILED, CASES };
    for (int wrong = 0; wrong < CASES; wrong++) {
        struct message message = registration();
        first->state = wrong == ABSENT ? WORKER_ABSENT : wrong == FAILED ? WORKER_FAILED : WORKER_READY;
        if (wrong == NAME)
            message.register_.name = BYTES_LITERAL("worker-9");
        if (wrong == STREAM)
            message.register_.stream = BYTES_LITERAL("inproc://worker-1");
        message.register_.incarnation += wrong == INCARNATION;
        message.register_.pid += wrong == PID;
        worker_says(0, &message);
        struct message no = worker_hears(0);
        ck_assert_int_eq(no.kind, MESSAGE_ERROR);
        ck_assert_text(no.error.text, "register: this worker was not started by this broker");
        ck_assert_int_eq(worker_hears(0).kind, MESSAGE_DRAIN);
        ck_assert_str_eq(first->model, "m");
    }
    struct message message = registration();
    first->state = WORKER_READY;
    broker->supervisor.places[0].record.pid = 0; /* the supervisor has not said it yet */
    worker_says(0, &message);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_REGISTER_OK);
}
END_TEST

/* Name, incarnation, pid and stream of others stand in /proc for every worker to read. */
START_TEST(who_knows_all_of_another_worker_is_still_himself)
{
    struct message message = registration();
    const struct peer before = first->peer;
    worker_says(1, &message);
    struct message no = worker_hears(1);
    ck_assert_int_eq(no.kind, MESSAGE_ERROR);
    ck_assert_text(no.error.text, "register: this worker was not started by this broker");
    ck_assert_int_eq(worker_hears(1).kind, MESSAGE_DRAIN);
    ck_assert_mem_eq(&first->peer, &before, sizeof before);
    ck_assert_str_eq(first->model, "m");
    run_on_first('r', NULL); /* what is the other's goes to the other */
    expect_nothing(1);
}
END_TEST

START_TEST(a_worker_of_another_version_is_refused)
{
    static const struct version_range none[] = {{PROTO_VERSION_MAX + 1, 9}, {0, PROTO_VERSION_MIN - 1}};
    for (int i = 0; i < 2; i++) {
        struct message message = registration();
        message.register_.proto = none[i];
        worker_says(0, &message);
        struct message no = worker_hears(0);
        ck_assert_int_eq(no.error.error, PROTO_UNSUPPORTED);
        ck_assert_text(no.error.text, "register: no protocol version in common");
        ck_assert_str_eq(first->model, "m");
        expect_nothing(0);
    }
}
END_TEST

START_TEST(who_did_not_register_is_told_to)
{
    struct message beat = {.kind = MESSAGE_HEARTBEAT};
    first->peer.bytes[0] ^= 1;
    worker_says(0, &beat);
    struct message no = worker_hears(0);
    ck_assert_int_eq(no.error.error, PROTO_HELLO_REQUIRED);
    ck_assert_text(no.error.text, "expected register first");
    expect_nothing(0);
    first->peer.bytes[0] ^= 1;
}
END_TEST

/* ---- what they say ---- */

START_TEST(a_worker_is_ready_once_it_was_loading)
{
    static const enum worker_state states[] = {WORKER_LOADING, WORKER_STARTING, WORKER_DRAINING};
    const struct message ready = {.kind = MESSAGE_READY, .ready = {.incarnation = 1}};
    for (int i = 0; i < 3; i++) {
        first->state = states[i];
        broker->any_ready = false;
        worker_says(0, &ready);
        ck_assert_int_eq(first->state, i == 0 ? WORKER_READY : states[i]);
        ck_assert_int_eq(broker->any_ready, i == 0);
    }
    expect_nothing(0);
}
END_TEST

START_TEST(a_heartbeat_is_answered_and_believed)
{
    struct message beat = {.kind = MESSAGE_HEARTBEAT, .heartbeat = {.ref = 6}};
    worker_says(0, &beat);
    struct message pong = worker_hears(0);
    ck_assert_int_eq(pong.kind, MESSAGE_PONG);
    ck_assert_uint_eq(pong.pong.ref, 6);
    ck_assert_int_eq(first->state, WORKER_READY);
    beat.heartbeat.draining = true;
    worker_says(0, &beat);
    ck_assert_int_eq(first->state, WORKER_DRAINING);
    ck_assert_uint_eq(first->ending_ns, broker->now);
}
END_TEST

START_TEST(frames_that_two_heartbeats_miss_are_asked_for)
{
    struct message beat = {.kind = MESSAGE_HEARTBEAT, .heartbeat = {.wseq = 2}};
    worker_says(0, &beat);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_PONG); /* they may be under way */
    expect_nothing(0);
    first->drained = false;
    worker_says(0, &beat);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_PONG); /* or here, and not read */
    expect_nothing(0);
    first->drained = true;
    worker_says(0, &beat);
    struct message resend = worker_hears(0);
    ck_assert_int_eq(resend.kind, MESSAGE_RESEND);
    ck_assert_uint_eq(resend.resend.wseq, 1);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_PONG);
    first->wseq = 2;
    first->resend_asked = 0;
    worker_says(0, &beat);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_PONG);
    expect_nothing(0);
}
END_TEST

START_TEST(a_pong_says_what_was_taken)
{
    first->under_way = 30000;
    worker_says(0, &(struct message){.kind = MESSAGE_PONG, .pong = {20000}});
    ck_assert_uint_eq(first->under_way, 10000);
}
END_TEST

START_TEST(what_cannot_be_read_is_told_and_logged_once_a_second)
{
    struct logged logged;
    broker->stranger_logged_ns = 0;
    for (int i = 0; i < 4; i++) {
        logged_begin(&logged);
        worker_says_bytes(0, "\xc1", 1);
        const char *said = logged_end(&logged);
        ck_assert_int_eq(strstr(said, "worker-0 sent an invalid message") != NULL, i == 0 || i == 3);
        ck_assert_int_eq(worker_hears(0).error.error, PROTO_BAD_REQUEST);
        broker->now += i == 1 ? S - 1 : i == 2 ? 1 : 0;
    }
    logged_begin(&logged);
    worker_says(0, &(struct message){.kind = MESSAGE_BYE});
    ck_assert_ptr_nonnull(strstr(logged_end(&logged), "worker-0 sent a bye, which a worker may not send"));
    expect_nothing(0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, inside_tear_down);
    tcase_add_test(tests, a_worker_is_what_it_registers);
    tcase_add_test(tests, who_comes_with_another_address_begins_anew);
    tcase_add_test(tests, what_was_asked_before_a_worker_told_its_model_waits_for_no_made_up_names);
    tcase_add_test(tests, what_was_asked_by_an_alias_goes_to_its_worker);
    tcase_add_test(tests, a_name_that_would_mean_two_models_is_refused);
    tcase_add_test(tests, two_models_may_share_an_alias);
    tcase_add_test(tests, nobody_registers_for_another);
    tcase_add_test(tests, who_knows_all_of_another_worker_is_still_himself);
    tcase_add_test(tests, a_worker_of_another_version_is_refused);
    tcase_add_test(tests, who_did_not_register_is_told_to);
    tcase_add_test(tests, a_worker_is_ready_once_it_was_loading);
    tcase_add_test(tests, a_heartbeat_is_answered_and_believed);
    tcase_add_test(tests, frames_that_two_heartbeats_miss_are_asked_for);
    tcase_add_test(tests, a_pong_says_what_was_taken);
    tcase_add_test(tests, what_cannot_be_read_is_told_and_logged_once_a_second);
}

int main(void)
{
    return run_tests("broker/from_workers", add);
}
