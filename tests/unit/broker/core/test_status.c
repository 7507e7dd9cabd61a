/* SPDX-License-Identifier: MIT */
/* The status, from the three sources that it has. */

#include "broker/core/status.h"
#include "tests/unit/run.h"
#include "common/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N 3

static struct broker *broker;
static struct board_slot slots[N];
static struct worker_status workers[WORKER_MAX];
static struct message message;

static void set_up(void)
{
    broker = calloc(1, sizeof *broker);
    ck_assert_ptr_nonnull(broker);
    broker->n_workers = broker->supervisor.n = N;
    memset(slots, 0, sizeof slots);
    for (int i = 0; i < N; i++)
        broker->supervisor.slots[i] = &slots[i];
}

static void tear_down(void)
{
    free(broker);
}

static const struct worker_status *status_of(uint32_t index)
{
    status_fill(broker, 0, workers, &message);
    return &workers[index];
}

#define ck_assert_text(bytes, text) ck_assert(bytes_equal(bytes, bytes_of_string(text)))

START_TEST(the_pool_is_counted)
{
    broker->supervisor.boot = 3;
    broker->sessions.n = 4;
    broker->queue.n = 5;
    broker->workers[0].n_requests = 6;
    broker->workers[2].n_requests = 7;
    broker->journal.used = 8;
    broker->journal.limit = 16;
    broker->growth.n_waiting = 17;
    broker->options.max_tokens = 18;
    broker->supervisor.gateway_pid = 15;
    broker->options.began = (uint32_t)(clock_ns() / CLOCK_NS_PER_S) - 20;
    broker->counters = (struct broker_counters){9, 10, 11, 12, 13};
    status_fill(broker, 14, workers, &message);
    ck_assert_int_eq(message.kind, MESSAGE_STATUS_OK);
    ck_assert_uint_eq(message.status_ok.ref, 14);
    ck_assert_uint_eq(message.status_ok.boot, 3);
    ck_assert_uint_eq(message.status_ok.sessions, 4);
    ck_assert_uint_eq(message.status_ok.queued, 5);
    ck_assert_uint_eq(message.status_ok.running, 13);
    ck_assert_uint_eq(message.status_ok.journal_bytes, 8);
    ck_assert_uint_eq(message.status_ok.journal_limit, 16);
    ck_assert_uint_eq(message.status_ok.journal_waiting, 17);
    ck_assert_uint_eq(message.status_ok.max_tokens, 18);
    ck_assert_uint_ge(message.status_ok.uptime_s, 20);
    ck_assert_uint_lt(message.status_ok.uptime_s, 20 + 600);
    ck_assert_uint_eq(message.status_ok.supervisor_pid, (uint32_t)getppid());
    ck_assert_uint_eq(message.status_ok.broker_pid, (uint32_t)getpid());
    ck_assert_uint_eq(message.status_ok.gateway_pid, 15);
    ck_assert_uint_eq(message.status_ok.admitted, 9);
    ck_assert_uint_eq(message.status_ok.ended, 10);
    ck_assert_uint_eq(message.status_ok.rejected, 11);
    ck_assert_uint_eq(message.status_ok.moved, 12);
    ck_assert_uint_eq(message.status_ok.tokens, 13);
    ck_assert_text(message.status_ok.version, QUERN_VERSION);
    ck_assert(!message.status_ok.draining);
    ck_assert_ptr_eq(message.status_ok.workers.items, workers);
    ck_assert_uint_eq(message.status_ok.workers.n, N);
}
END_TEST

START_TEST(a_worker_is_what_it_registered_and_its_process)
{
    struct worker *worker = &broker->workers[1];
    struct place_record *record = &broker->supervisor.places[1].record;
    *worker = (struct worker){.name = "worker-1",
                              .state = WORKER_READY,
                              .model = "m",
                              .device = "d",
                              .tools = "hermes",
                              .embedding = 64,
                              .context = 4096,
                              .slots = 8,
                              .incarnation = 3};
    record->pid = 77;
    strcpy(record->reason, "of its last death");
    const struct worker_status *status = status_of(1);
    ck_assert_text(status->name, "worker-1");
    ck_assert_text(status->model, "m");
    ck_assert_text(status->device, "d");
    ck_assert_text(status->tools, "hermes");
    ck_assert_uint_eq(status->embedding, 64);
    ck_assert_uint_eq(status->context, 4096);
    ck_assert_uint_eq(status->slots, 8);
    ck_assert_uint_eq(status->pid, 77);
    ck_assert_uint_eq(status->incarnation, 3);
    ck_assert_uint_eq(status->restarts, 2);
    ck_assert_int_eq(status->state, WORKER_READY);
    ck_assert_text(status->reason, ""); /* it serves again */
    worker->state = WORKER_FAILED;
    ck_assert_text(status_of(1)->reason, "of its last death");
    ck_assert_uint_eq(status_of(0)->restarts, 0); /* none was started yet */
}
END_TEST

START_TEST(what_it_does_now_is_on_the_board)
{
    struct board_slot *slot = &slots[2];
    const struct board_snapshot snapshot = {.active = 1,
                                            .waiting = 2,
                                            .kv_free = 3,
                                            .kv_total = 4,
                                            .tokens = 5,
                                            .cache_hits = 30,
                                            .tokens_per_s = 7.5,
                                            .prefill_tokens = 10,
                                            .evictions = 9,
                                            .restores = 11,
                                            .kv_cached = 12,
                                            .kv_block_bytes = 13,
                                            .step_mixed = {.sum = 15, .counts = {[3] = 16}},
                                            .kv_used = {.sum = 17, .counts = {[15] = 18}}};
    board_write(slot, &snapshot);
    atomic_store(&slot->steps, 14);
    const struct worker_status *status = status_of(2);
    ck_assert_uint_eq(status->active, 1);
    ck_assert_uint_eq(status->waiting, 2);
    ck_assert_uint_eq(status->kv_free, 3);
    ck_assert_uint_eq(status->kv_total, 4);
    ck_assert_uint_eq(status->tokens, 5);
    ck_assert_uint_eq(status->cache_hits, 30);
    ck_assert_double_eq(status->tokens_per_s, 7.5);
    ck_assert_uint_eq(status->prefill_tokens, 10);
    ck_assert_uint_eq(status->evictions, 9);
    ck_assert_uint_eq(status->restores, 11);
    ck_assert_uint_eq(status->kv_cached, 12);
    ck_assert_uint_eq(status->kv_block_bytes, 13);
    ck_assert_uint_eq(status->steps, 14);
    ck_assert_uint_eq(status->step_mixed.sum, 15);
    ck_assert_uint_eq(status->step_mixed.counts[3], 16);
    ck_assert_uint_eq(status->kv_used.counts[15], 18);
    ck_assert_uint_eq(histogram_count(&status->step_decode), 0);
    ck_assert_double_eq(status->hit_rate, 0.75);
    ck_assert_double_eq(status_of(0)->hit_rate, 0); /* of no prompts */
}
END_TEST

/* Whether a message takes the status as it is. */
static bool can_be_sent(void)
{
    struct buffer out = {0};
    status_of(0);
    int r = message_encode(&message, &out);
    buffer_deinit(&out);
    return r == 0;
}

START_TEST(what_no_worker_would_write_on_the_board_spoils_no_status)
{
    static const double reals[] = {(double)NAN, (double)INFINITY, -1, 1e300};
    struct board_slot *slot = &slots[1];
    struct board_snapshot snapshot = {.tokens_per_s = 1e12};
    for (uint32_t i = 0; i < N; i++)
        snprintf(broker->workers[i].name, sizeof broker->workers[i].name, "worker-%u", i);
    board_write(slot, &snapshot);
    ck_assert(can_be_sent());
    ck_assert_double_eq(status_of(1)->tokens_per_s, 1e12);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        snapshot.tokens_per_s = reals[i];
        board_write(slot, &snapshot);
        ck_assert_double_eq(status_of(1)->tokens_per_s, 0);
        ck_assert(can_be_sent());
    }
    memset(&snapshot, 0xff, sizeof snapshot);
    snapshot.prefill_tokens = 2; /* together one more than a word holds */
    board_write(slot, &snapshot);
    ck_assert(can_be_sent());
    ck_assert_double_eq(status_of(1)->hit_rate, 1);
}
END_TEST

/* The state that is told for a worker's own, what its slot says, and whether the pool is shutting down. */
static enum worker_state told(enum worker_state own, enum worker_state on_board, bool draining)
{
    const struct board_snapshot snapshot = {.state = on_board};
    broker->draining = draining;
    broker->workers[0].state = own;
    board_write(&slots[0], &snapshot);
    return status_of(0)->state;
}

START_TEST(its_state_is_the_brokers_until_it_says_more)
{
    ck_assert_int_eq(told(WORKER_STARTING, WORKER_STARTING, false), WORKER_STARTING);
    ck_assert_int_eq(told(WORKER_STARTING, WORKER_LOADING, false), WORKER_LOADING);
    ck_assert_int_eq(told(WORKER_STARTING, WORKER_READY, false), WORKER_STARTING);
    ck_assert_int_eq(told(WORKER_ABSENT, WORKER_LOADING, false), WORKER_ABSENT);
    ck_assert_int_eq(told(WORKER_READY, WORKER_LOADING, false), WORKER_READY);
    ck_assert_int_eq(told(WORKER_READY, WORKER_READY, true), WORKER_DRAINING);
    ck_assert_int_eq(told(WORKER_FAILED, WORKER_READY, true), WORKER_FAILED);
    ck_assert(message.status_ok.draining);
}
END_TEST

/* ---- models ---- */

static void serve(uint32_t index, enum worker_state state, const char *model, uint8_t digest,
                  uint32_t embedding)
{
    struct worker *worker = &broker->workers[index];
    *worker = (struct worker){
        .state = state, .digest = {digest}, .embedding = embedding, .context = 100 + index, .peer.len = 5};
    strcpy(worker->model, model);
}

START_TEST(workers_with_one_digest_serve_one_model)
{
    struct model_info models[WORKER_MAX];
    serve(0, WORKER_READY, "a", 1, 0);
    serve(1, WORKER_READY, "b", 2, 16);
    serve(2, WORKER_READY, "a", 1, 32);
    broker->workers[1].chat = true;
    ck_assert_uint_eq(status_models(broker, models), 2);
    ck_assert_text(models[0].name, "a");
    ck_assert_uint_eq(models[0].workers, 2);
    ck_assert_uint_eq(models[0].embedding, 32);
    ck_assert_uint_eq(models[0].context, 100);
    ck_assert(!models[0].chat);
    ck_assert_text(models[1].name, "b");
    ck_assert_uint_eq(models[1].workers, 1);
    ck_assert_uint_eq(models[1].embedding, 16);
    ck_assert_uint_eq(models[1].digest.len, 16);
    ck_assert_uint_eq(((const uint8_t *)models[1].digest.data)[0], 2);
    ck_assert(models[1].chat);
    serve(2, WORKER_READY, "a", 1, 8); /* the largest counts, whoever comes first */
    broker->workers[0].embedding = 64;
    broker->workers[2].context = 90; /* and of contexts the smallest: what is told fits in either */
    ck_assert_uint_eq(status_models(broker, models), 2);
    ck_assert_uint_eq(models[0].context, 90);
    ck_assert_uint_eq(models[0].embedding, 64);
}
END_TEST

START_TEST(a_model_stays_while_its_worker_is_started_again_and_goes_when_it_failed)
{
    struct model_info models[WORKER_MAX];
    serve(0, WORKER_STARTING, "a", 1, 0);
    serve(1, WORKER_FAILED, "b", 2, 0);
    serve(2, WORKER_STARTING, "", 0, 0); /* it has not registered yet */
    ck_assert_uint_eq(status_models(broker, models), 1);
    ck_assert_text(models[0].name, "a");
    ck_assert_uint_eq(models[0].workers, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_pool_is_counted);
    tcase_add_test(tests, a_worker_is_what_it_registered_and_its_process);
    tcase_add_test(tests, what_it_does_now_is_on_the_board);
    tcase_add_test(tests, what_no_worker_would_write_on_the_board_spoils_no_status);
    tcase_add_test(tests, its_state_is_the_brokers_until_it_says_more);
    tcase_add_test(tests, workers_with_one_digest_serve_one_model);
    tcase_add_test(tests, a_model_stays_while_its_worker_is_started_again_and_goes_when_it_failed);
}

int main(void)
{
    return run_tests("broker/status", add);
}
