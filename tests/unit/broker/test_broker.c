/* SPDX-License-Identifier: MIT */
/* The broker as a process, from its sockets: requests and their ends, what it does when workers, clients and
 * strangers misbehave, and how it starts and stops. */

#include "tests/unit/broker/pool.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <czmq.h>

#include "common/clock.h"

static struct pool pool;
static struct client client, other;

static void open_pool(const char *const *arguments)
{
    pool_start(&pool, "ok", arguments);
    ck_assert_msg(pool_said(&pool, 0, "ready:"), "%s", pool.said);
    client_open(&client, &pool, 'a');
}

static void close_pool(void)
{
    client_close(&client);
    pool_stop(&pool);
}

/* The endpoint of the frontend, written into `endpoint`. */
static const char *frontend_of(const struct pool *of, char *endpoint)
{
    sprintf(endpoint, "ipc://%s/frontend", of->rundir);
    return endpoint;
}

static struct message named(enum message_kind kind, uint8_t name)
{
    struct message message = {.kind = kind};
    if (kind == MESSAGE_CANCEL)
        memset(&message.cancel.id, name, 16);
    if (kind == MESSAGE_REPLAY)
        memset(&message.replay.id, name, 16);
    if (kind == MESSAGE_ATTACH)
        memset(&message.attach.id, name, 16);
    return message;
}

static enum proto_error expect_error(struct client *of)
{
    return client_expect(of, MESSAGE_ERROR).error.error;
}

/* ---- a request ---- */

START_TEST(a_request_streams_every_token_once_and_ends_on_both_sockets)
{
    uint64_t count;
    open_pool(NULL);
    client_generate(&client, 'r', "count 500", NULL);
    struct message accepted = client_expect(&client, MESSAGE_ACCEPTED);
    ck_assert(!accepted.accepted.again);
    ck_assert_uint_gt(accepted.accepted.epoch.boot, 0);
    ck_assert_int_eq(client_read(&client, 'r', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 500);
    struct message end = client_expect(&client, MESSAGE_END);
    ck_assert_uint_eq(end.end.count, 500);
    ck_assert_int_eq(end.end.end.reason, END_LENGTH);
    close_pool();
}
END_TEST

START_TEST(frames_published_twice_or_late_are_forwarded_once_and_in_order)
{
    uint64_t count;
    open_pool(NULL);
    client_generate(&client, 't', "twice 100", NULL);
    ck_assert_int_eq(client_read(&client, 't', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 100);
    client_generate(&client, 'g', "gap 100", NULL);
    ck_assert_int_eq(client_read(&client, 'g', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 100);
    ck_assert_int_eq(client_frame(&client, 100).kind, MESSAGE_NONE);
    close_pool();
}
END_TEST

static void fewer_tokens(struct generation *generation)
{
    generation->max_tokens = 77;
}

START_TEST(the_same_generate_is_one_generation_and_another_body_is_a_conflict)
{
    uint64_t count;
    open_pool(NULL);
    client_generate(&client, 'r', "wait", NULL);
    uint64_t seed = client_expect(&client, MESSAGE_ACCEPTED).accepted.seed;
    client_generate(&client, 'r', "wait", NULL);
    struct message accepted = client_expect(&client, MESSAGE_ACCEPTED);
    ck_assert(accepted.accepted.again);
    ck_assert_uint_eq(accepted.accepted.seed, seed);
    client_generate(&client, 'r', "wait", fewer_tokens);
    ck_assert_int_eq(expect_error(&client), PROTO_CONFLICT);
    struct message cancel = named(MESSAGE_CANCEL, 'r');
    client_send(&client, &cancel);
    client_expect(&client, MESSAGE_CANCEL_OK);
    ck_assert_int_eq(client_read(&client, 'r', &count, NULL), END_CANCELLED);
    ck_assert_uint_eq(count, 1);
    client_expect(&client, MESSAGE_END);
    client_generate(&client, 'r', "wait", NULL); /* still one generation, and it has ended */
    ck_assert(client_expect(&client, MESSAGE_ACCEPTED).accepted.again);
    ck_assert_int_eq(client_expect(&client, MESSAGE_END).end.end.reason, END_CANCELLED);
    ck_assert_int_eq(client_frame(&client, 100).kind, MESSAGE_NONE);
    close_pool();
}
END_TEST

START_TEST(a_replay_gives_the_frames_again_from_any_position)
{
    uint64_t count;
    open_pool(NULL);
    client_generate(&client, 'r', "count 5000", NULL);
    ck_assert_int_eq(client_read(&client, 'r', &count, NULL), END_LENGTH);
    struct message replay = named(MESSAGE_REPLAY, 'r');
    replay.replay.next = 100;
    for (unsigned pages = 1;; pages++) {
        client_send(&client, &replay);
        struct message page = client_expect(&client, MESSAGE_REPLAY_OK);
        ck_assert_uint_eq(page.replay_ok.from, replay.replay.next);
        ck_assert_uint_eq(page.replay_ok.next, replay.replay.next + page.replay_ok.frames.n);
        replay.replay.next = page.replay_ok.next;
        if (!page.replay_ok.done)
            continue;
        ck_assert_uint_gt(pages, 1);
        ck_assert_uint_eq(page.replay_ok.next, 5000);
        struct bytes last = page.replay_ok.frames.items[page.replay_ok.frames.n - 1];
        struct message frame;
        ck_assert_int_eq(message_decode(client.decoder, last.data, last.len, &frame, NULL), 0);
        ck_assert(frame.frame.has_end);
        break;
    }
    struct message unknown = named(MESSAGE_REPLAY, 'x');
    client_send(&client, &unknown);
    ck_assert_int_eq(expect_error(&client), PROTO_UNKNOWN_REQUEST);
    close_pool();
}
END_TEST

START_TEST(a_request_that_the_worker_refuses_ends_with_the_workers_error)
{
    uint64_t count;
    enum proto_error error;
    open_pool(NULL);
    client_generate(&client, 'r', "refuse", NULL);
    ck_assert_int_eq(client_read(&client, 'r', &count, &error), END_ERROR);
    ck_assert_int_eq(error, PROTO_TOO_LONG);
    ck_assert_uint_eq(count, 0);
    struct message end = client_expect(&client, MESSAGE_END);
    ck_assert(bytes_equal(end.end.end.text, bytes_of_string("9 is above 8")));
    close_pool();
}
END_TEST

static void soon(struct generation *generation)
{
    generation->deadline_ms = 50;
}

START_TEST(a_deadline_that_passes_in_the_queue_ends_the_request_undispatched)
{
    static const char *const slots[] = {"--workers", "1", NULL};
    uint64_t count;
    open_pool(slots);
    /* The fake has four slots, and a few more for refilling: 8 fill it whatever the margin is. */
    for (uint8_t i = 0; i < 8; i++)
        client_generate(&client, i, "wait", NULL);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(client_frame(&client, 5000).kind, MESSAGE_FRAME);
    client_generate(&client, 'd', "count 3", soon);
    ck_assert_int_eq(client_read(&client, 'd', &count, NULL), END_DEADLINE);
    ck_assert_uint_eq(count, 0);
    struct message cancel = named(MESSAGE_CANCEL, 7);
    client_send(&client, &cancel); /* this one is still queued */
    ck_assert_int_eq(client_read(&client, 7, &count, NULL), END_CANCELLED);
    ck_assert_uint_eq(count, 0);
    close_pool();
}
END_TEST

static void unknown_feature(struct generation *generation)
{
    static const struct bytes features[] = {{"telepathy", 9}};
    generation->require = (struct text_list){features, 1};
}

static void other_model(struct generation *generation)
{
    generation->model = BYTES_LITERAL("another");
}

static void endless(struct generation *generation)
{
    generation->max_tokens = 2000000000;
}

START_TEST(what_cannot_be_served_is_refused_by_name)
{
    open_pool(NULL);
    client_generate(&client, '1', "count 1", unknown_feature);
    ck_assert_int_eq(expect_error(&client), PROTO_UNSUPPORTED);
    client_generate(&client, '2', "count 1", other_model);
    ck_assert_int_eq(expect_error(&client), PROTO_NO_WORKER);
    client_generate(&client, '3', "count 1", endless);
    ck_assert_int_eq(expect_error(&client), PROTO_TOO_LONG);
    struct message cancel = named(MESSAGE_CANCEL, 'x');
    client_send(&client, &cancel);
    ck_assert_int_eq(expect_error(&client), PROTO_UNKNOWN_REQUEST);
    close_pool();
}
END_TEST

START_TEST(tokenize_goes_to_a_worker_and_back_under_the_clients_ref)
{
    open_pool(NULL);
    struct message question = {.kind = MESSAGE_TOKENIZE};
    question.tokenize.ref = 12345;
    question.tokenize.text = BYTES_LITERAL("ab");
    client_send(&client, &question);
    struct message answer = client_expect(&client, MESSAGE_TOKENIZE_OK);
    ck_assert_uint_eq(answer.tokenize_ok.ref, 12345);
    ck_assert_uint_eq(answer.tokenize_ok.ids.n, 2);
    close_pool();
}
END_TEST

START_TEST(status_shows_the_workers_and_the_counts)
{
    static const char *const two[] = {"--workers", "2", NULL};
    uint64_t count;
    open_pool(two);
    client_generate(&client, 'r', "count 10", NULL);
    client_read(&client, 'r', &count, NULL);
    struct message question = {.kind = MESSAGE_STATUS, .status = {.ref = 9}};
    client_send(&client, &question);
    struct message status = client_expect(&client, MESSAGE_STATUS_OK);
    ck_assert_uint_eq(status.status_ok.ref, 9);
    ck_assert_uint_eq(status.status_ok.sessions, 1);
    ck_assert_uint_eq(status.status_ok.admitted, 1);
    ck_assert_uint_eq(status.status_ok.ended, 1);
    ck_assert_uint_eq(status.status_ok.tokens, 10);
    ck_assert_uint_eq(status.status_ok.workers.n, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(status.status_ok.workers.items[i].state, WORKER_READY);
        ck_assert_int_eq(kill((pid_t)status.status_ok.workers.items[i].pid, 0), 0);
    }
    close_pool();
}
END_TEST

/* ---- sessions ---- */

START_TEST(a_peer_without_a_session_is_told_to_say_hello)
{
    open_pool(NULL);
    client_connect(&other, &pool);
    client_generate(&other, 'r', "count 1", NULL);
    ck_assert_int_eq(expect_error(&other), PROTO_HELLO_REQUIRED);
    client_close(&other);
    close_pool();
}
END_TEST

START_TEST(nobody_hears_sessions_that_he_cannot_name)
{
    uint64_t count;
    open_pool(NULL);
    client_connect(&other, &pool);
    zmq_setsockopt(other.stream, ZMQ_SUBSCRIBE, "", 0);
    zmq_setsockopt(other.stream, ZMQ_SUBSCRIBE, "aaaa", 4);
    zmq_setsockopt(other.stream, ZMQ_SUBSCRIBE, "aaaaaaaaaaaaaaa", 15);
    usleep(200000);
    client_generate(&client, 'r', "count 10", NULL);
    client_read(&client, 'r', &count, NULL);
    zmq_pollitem_t item = {.socket = other.stream, .events = ZMQ_POLLIN};
    ck_assert_int_eq(zmq_poll(&item, 1, 200), 0);
    client_close(&other);
    close_pool();
}
END_TEST

static void keep(struct generation *generation)
{
    generation->on_disconnect = DISCONNECT_KEEP;
    generation->keep_s = 30;
}

START_TEST(a_client_that_leaves_has_its_requests_cancelled_or_kept_as_they_asked)
{
    open_pool(NULL);
    client_open(&other, &pool, 'b');
    client_generate(&other, 'c', "wait", NULL);
    client_generate(&other, 'k', "count 20", keep);
    client_expect(&other, MESSAGE_ACCEPTED);
    client_expect(&other, MESSAGE_ACCEPTED);
    struct id128 session = other.session;
    client_close(&other);
    usleep(300000);
    struct message attach = named(MESSAGE_ATTACH, 'c');
    attach.attach.session = session;
    client_send(&client, &attach);
    ck_assert_uint_eq(client_expect(&client, MESSAGE_ATTACH_OK).attach_ok.next, 1);
    ck_assert_int_eq(client_expect(&client, MESSAGE_END).end.end.reason, END_CANCELLED);
    attach = named(MESSAGE_ATTACH, 'k');
    attach.attach.session = session;
    client_send(&client, &attach);
    ck_assert_uint_eq(client_expect(&client, MESSAGE_ATTACH_OK).attach_ok.next, 20);
    ck_assert_int_eq(client_expect(&client, MESSAGE_END).end.end.reason, END_LENGTH);
    close_pool();
}
END_TEST

START_TEST(an_attached_request_streams_to_its_new_session)
{
    open_pool(NULL);
    client_open(&other, &pool, 'b');
    client_generate(&other, 'k', "wait", keep);
    ck_assert_uint_eq(client_frame(&other, 5000).frame.ids.n, 1);
    struct message attach = named(MESSAGE_ATTACH, 'k');
    attach.attach.session = other.session;
    client_send(&client, &attach);
    client_expect(&client, MESSAGE_ATTACH_OK);
    struct message cancel = named(MESSAGE_CANCEL, 'k');
    client_send(&client, &cancel);
    struct message last = client_frame(&client, 5000);
    ck_assert_int_eq(last.kind, MESSAGE_FRAME);
    ck_assert(last.frame.has_end);
    ck_assert_int_eq(client_expect(&client, MESSAGE_END).end.end.reason, END_CANCELLED);
    ck_assert_int_eq(client_frame(&other, 100).kind, MESSAGE_NONE);
    client_close(&other);
    close_pool();
}
END_TEST

START_TEST(a_silent_session_loses_its_lease)
{
    open_pool(NULL);
    client_generate(&client, 'r', "wait", NULL);
    client_expect(&client, MESSAGE_ACCEPTED);
    client_open(&other, &pool, 'b');
    for (int i = 0; i < 13; i++) { /* six and a half seconds, in which only `other` gives signs of life */
        struct message ping = {.kind = MESSAGE_PING, .ping = {.ref = (uint64_t)i}};
        client_send(&other, &ping);
        ck_assert_uint_eq(client_expect(&other, MESSAGE_PONG).pong.ref, (uint64_t)i);
        usleep(500000);
    }
    struct message ping = {.kind = MESSAGE_PING};
    client_send(&client, &ping);
    ck_assert_int_eq(expect_error(&client), PROTO_HELLO_REQUIRED);
    client_close(&other);
    close_pool();
}
END_TEST

static void keep_a_second(struct generation *generation)
{
    generation->on_disconnect = DISCONNECT_KEEP;
    generation->keep_s = 1;
}

START_TEST(a_kept_request_is_cancelled_when_its_time_is_up)
{
    open_pool(NULL);
    client_open(&other, &pool, 'b');
    client_generate(&other, 'k', "wait", keep_a_second);
    client_expect(&other, MESSAGE_ACCEPTED);
    struct message bye = {.kind = MESSAGE_BYE}, question = {.kind = MESSAGE_STATUS};
    client_send(&other, &bye);
    client_expect(&other, MESSAGE_BYE_OK);
    usleep(500000);
    client_send(&client, &question);
    ck_assert_uint_eq(client_expect(&client, MESSAGE_STATUS_OK).status_ok.running, 1);
    usleep(1000000);
    client_send(&client, &question);
    ck_assert_uint_eq(client_expect(&client, MESSAGE_STATUS_OK).status_ok.running, 0);
    client_close(&other);
    close_pool();
}
END_TEST

START_TEST(a_client_that_does_not_read_slows_nobody_and_can_replay)
{
    uint64_t count;
    open_pool(NULL);
    client_open(&other, &pool, 'b');
    client_generate(&other, 's', "count 30000", NULL); /* and reads nothing */
    client_expect(&other, MESSAGE_ACCEPTED);
    client_generate(&client, 'r', "count 1000", NULL);
    ck_assert_int_eq(client_read(&client, 'r', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(client_expect(&other, MESSAGE_END).end.count, 30000);
    struct message replay = named(MESSAGE_REPLAY, 's');
    replay.replay.next = 29999;
    client_send(&other, &replay);
    struct message page = client_expect(&other, MESSAGE_REPLAY_OK);
    ck_assert_uint_eq(page.replay_ok.next, 30000);
    ck_assert(page.replay_ok.done);
    client_close(&other);
    close_pool();
}
END_TEST

START_TEST(beyond_what_the_journal_can_hold_requests_are_told_when_to_come_back)
{
    enum { REQUESTS = 6000 };
    unsigned accepted = 0, overloaded = 0;
    open_pool(NULL);
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct message generate = {.kind = MESSAGE_GENERATE};
        memcpy(&generate.generate.id, &i, sizeof i);
        generation_defaults(&generate.generate.generation);
        generate.generate.generation.prompt.text = BYTES_LITERAL("wait");
        client_send(&client, &generate);
    }
    while (accepted + overloaded < REQUESTS) {
        struct message message = client_next(&client);
        accepted += message.kind == MESSAGE_ACCEPTED;
        if (message.kind != MESSAGE_ERROR)
            continue;
        ck_assert_int_eq(message.error.error, PROTO_OVERLOADED);
        ck_assert_uint_ge(message.error.retry_after_ms, 100);
        overloaded++;
    }
    ck_assert_uint_gt(accepted, 3000);
    ck_assert_uint_gt(overloaded, 100);
    struct message question = {.kind = MESSAGE_STATUS};
    client_send(&client, &question);
    struct message status = client_expect(&client, MESSAGE_STATUS_OK);
    ck_assert_uint_le(status.status_ok.journal_bytes, 256 << 20);
    ck_assert_uint_eq(status.status_ok.rejected, overloaded);
    close_pool();
}
END_TEST

/* ---- strangers and broken workers ---- */

START_TEST(a_message_above_the_bound_costs_its_sender_the_connection_and_nobody_else)
{
    uint64_t count;
    open_pool(NULL);
    client_connect(&other, &pool);
    size_t len = PROTO_MAX_REQUEST_BYTES + 1;
    char *large = calloc(1, len);
    ck_assert_int_eq(zmq_send(other.control, large, len, 0), (int)len);
    free(large);
    client_generate(&client, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client, 'r', &count, NULL), END_LENGTH);
    client_close(&other);
    close_pool();
}
END_TEST

START_TEST(a_worker_of_an_earlier_broker_is_sent_away)
{
    char endpoint[RUNDIR_PATH_MAX + 32];
    open_pool(NULL);
    client_connect(&other, &pool);
    snprintf(endpoint, sizeof endpoint, "ipc://%s/backend", pool.rundir);
    ck_assert_int_eq(zmq_connect(other.control, endpoint), 0);
    zmq_disconnect(other.control, frontend_of(&pool, endpoint));
    struct message enroll = {.kind = MESSAGE_REGISTER};
    enroll.register_.proto = (struct version_range){1, 1};
    enroll.register_.name = BYTES_LITERAL("worker-0");
    enroll.register_.incarnation = 1;
    enroll.register_.pid = 1;
    enroll.register_.slots = 1;
    enroll.register_.context = 1;
    enroll.register_.stream = BYTES_LITERAL("ipc:///tmp/nowhere");
    enroll.register_.model = BYTES_LITERAL("m");
    enroll.register_.digest = BYTES_LITERAL("0123456789abcdef");
    client_send(&other, &enroll);
    ck_assert_int_eq(expect_error(&other), PROTO_BAD_REQUEST);
    client_expect(&other, MESSAGE_DRAIN);
    client_close(&other);
    close_pool();
}
END_TEST

START_TEST(garbage_on_every_socket_harms_nobody)
{
    uint64_t count;
    char endpoint[RUNDIR_PATH_MAX + 32], junk[300];
    open_pool(NULL);
    client_connect(&other, &pool);
    srand(5);
    snprintf(endpoint, sizeof endpoint, "ipc://%s/backend", pool.rundir);
    void *stranger = zmq_socket(other.context, ZMQ_DEALER);
    int linger = 0;
    zmq_setsockopt(stranger, ZMQ_LINGER, &linger, sizeof linger);
    ck_assert_int_eq(zmq_connect(stranger, endpoint), 0);
    struct message enroll = {.kind = MESSAGE_REGISTER};
    enroll.register_.proto = (struct version_range){1, 1};
    enroll.register_.name = BYTES_LITERAL("worker-0");
    enroll.register_.incarnation = 1;
    enroll.register_.stream = BYTES_LITERAL("ipc:///tmp/nowhere");
    enroll.register_.model = BYTES_LITERAL("evil");
    enroll.register_.digest = BYTES_LITERAL("0123456789abcdef");
    struct buffer out = {0};
    ck_assert_int_eq(message_encode(&enroll, &out), 0);
    for (int i = 0; i < 300; i++) {
        for (size_t j = 0; j < sizeof junk; j++)
            junk[j] = (char)rand();
        size_t len = (size_t)rand() % sizeof junk;
        zmq_send(client.control, junk, len, i % 7 == 0 ? ZMQ_SNDMORE : 0);
        zmq_send(other.control, junk, len, 0);
        zmq_send(stranger, i % 3 ? junk : (char *)out.data, i % 3 ? len : out.len, 0);
    }
    zmq_send(client.control, "", 0, 0);
    buffer_deinit(&out);
    client_generate(&client, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client, 'r', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 10);
    zmq_close(stranger);
    client_close(&other);
    close_pool();
}
END_TEST

START_TEST(a_worker_that_dies_fails_its_requests_and_comes_back)
{
    uint64_t count;
    enum proto_error error;
    open_pool(NULL);
    client_generate(&client, 'd', "die", NULL);
    ck_assert_int_eq(client_read(&client, 'd', &count, &error), END_ERROR);
    ck_assert_int_eq(error, PROTO_WORKER_LOST);
    ck_assert_uint_eq(count, 2);
    client_generate(&client, 'r', "count 10", NULL); /* queued until it is back */
    ck_assert_int_eq(client_read(&client, 'r', &count, NULL), END_LENGTH);
    close_pool();
}
END_TEST

START_TEST(a_worker_that_sends_garbage_is_killed_and_comes_back)
{
    uint64_t count;
    enum proto_error error;
    open_pool(NULL);
    client_generate(&client, 'g', "garbage", NULL);
    ck_assert_int_eq(client_read(&client, 'g', &count, &error), END_ERROR);
    ck_assert_int_eq(error, PROTO_WORKER_LOST);
    client_generate(&client, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client, 'r', &count, NULL), END_LENGTH);
    close_pool();
}
END_TEST

START_TEST(a_worker_that_makes_no_progress_is_killed_and_the_other_serves_on)
{
    static const char *const two[] = {"--workers", "2", NULL};
    uint64_t count, started = clock_ns();
    open_pool(two);
    client_generate(&client, 's', "stall", NULL);
    for (int i = 0; clock_ns() - started < 20 * CLOCK_NS_PER_S; i++) {
        struct message ping = {.kind = MESSAGE_PING};
        client_send(&client, &ping);
        struct message frame = client_frame(&client, 500);
        if (frame.kind == MESSAGE_FRAME && frame.frame.has_end) {
            ck_assert_int_eq(frame.frame.end.error, PROTO_WORKER_LOST);
            break;
        }
    }
    ck_assert_uint_ge(clock_ns() - started, 9 * CLOCK_NS_PER_S);
    ck_assert_uint_lt(clock_ns() - started, 15 * CLOCK_NS_PER_S);
    client_generate(&client, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client, 'r', &count, NULL), END_LENGTH);
    close_pool();
}
END_TEST

/* ---- start and stop ---- */

START_TEST(a_pool_starts_where_a_killed_broker_left_its_sockets)
{
    struct pool killed;
    char path[RUNDIR_PATH_MAX + 32];
    pool_start(&killed, "ok", NULL);
    ck_assert(pool_said(&killed, 0, "ready:"));
    snprintf(path, sizeof path, "%s/worker-0-1-1", killed.rundir);
    ck_assert_int_eq(access(path, F_OK), 0);
    kill(killed.pid, SIGKILL);
    ck_assert_int_eq(pool_wait(&killed), -SIGKILL);
    pool_start_in(&pool, killed.rundir, "ok", NULL);
    ck_assert_msg(pool_said(&pool, 0, "ready:"), "%s", pool.said);
    ck_assert_int_eq(access(path, F_OK), -1);
    client_open(&client, &pool, 'a');
    client_generate(&client, 'r', "count 1", NULL);
    ck_assert_uint_eq(client_expect(&client, MESSAGE_ACCEPTED).accepted.epoch.boot, 2);
    close_pool();
}
END_TEST

START_TEST(tcp_beyond_this_machine_takes_a_certificate_and_only_those_who_know_it)
{
    char rundir[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 32], address[64], endpoint[64];
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    snprintf(path, sizeof path, "%s/key", rundir);
    snprintf(address, sizeof address, "0.0.0.0:%d", 20000 + getpid() % 20000);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1%s", strchr(address, ':'));
    zsys_handler_set(NULL);
    zcert_t *server = zcert_new(), *mine = zcert_new();
    ck_assert_int_eq(zcert_save_secret(server, path), 0);
    const char *const arguments[] = {"--tcp", address, "--curve-key", path, NULL};
    pool_start_in(&pool, rundir, "ok", arguments);
    ck_assert_msg(pool_said(&pool, 0, "ready:"), "%s", pool.said);

    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}}};
    client_connect(&client, &pool);
    client_connect(&other, &pool);
    zmq_disconnect(client.control, frontend_of(&pool, path));
    zmq_disconnect(other.control, path);
    zmq_setsockopt(client.control, ZMQ_CURVE_SERVERKEY, zcert_public_key(server), 32);
    zmq_setsockopt(client.control, ZMQ_CURVE_PUBLICKEY, zcert_public_key(mine), 32);
    zmq_setsockopt(client.control, ZMQ_CURVE_SECRETKEY, zcert_secret_key(mine), 32);
    ck_assert_int_eq(zmq_connect(client.control, endpoint), 0);
    ck_assert_int_eq(zmq_connect(other.control, endpoint), 0);
    client_send(&other, &hello);
    client_send(&client, &hello);
    ck_assert_uint_eq(client_expect(&client, MESSAGE_HELLO_OK).hello_ok.stream.n, 2);
    zmq_pollitem_t item = {.socket = other.control, .events = ZMQ_POLLIN};
    ck_assert_int_eq(zmq_poll(&item, 1, 300), 0);
    zcert_destroy(&server);
    zcert_destroy(&mine);
    client_close(&other);
    close_pool();
}
END_TEST

static unsigned lines(const char *text)
{
    unsigned n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

START_TEST(a_permanent_failure_is_said_in_one_line_and_not_tried_again)
{
    static const char *const two[] = {"--workers", "2", NULL};
    pool_start(&pool, "permanent", two);
    ck_assert_int_eq(pool_wait(&pool), 1);
    ck_assert_msg(strstr(pool.said, "not a model") && lines(pool.said) == 1, "%s", pool.said);
    pool_stop(&pool);
}
END_TEST

START_TEST(a_missing_model_or_a_second_pool_is_one_line)
{
    struct pool second;
    open_pool(NULL);
    pool_start_in(&second, pool.rundir, "ok", NULL);
    ck_assert_int_eq(pool_wait(&second), 1);
    ck_assert_msg(strstr(second.said, pool.rundir) && lines(second.said) == 1, "%s", second.said);
    static const char *const bad_tcp[] = {"--tcp", "0.0.0.0:5999", NULL};
    char rundir[RUNDIR_PATH_MAX + 1];
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    pool_start_in(&second, rundir, "ok", bad_tcp);
    ck_assert_int_eq(pool_wait(&second), 1);
    ck_assert_msg(strstr(second.said, "0.0.0.0:5999") && lines(second.said) == 1, "%s", second.said);
    rundir_remove(rundir);
    close_pool();
}
END_TEST

START_TEST(a_port_in_use_is_one_line)
{
    struct pool second;
    char rundir[RUNDIR_PATH_MAX + 1], port[64];
    snprintf(port, sizeof port, "127.0.0.1:%d", 20000 + getpid() % 20000);
    const char *const tcp[] = {"--tcp", port, NULL};
    open_pool(tcp);
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    pool_start_in(&second, rundir, "ok", tcp);
    ck_assert_int_eq(pool_wait(&second), 1);
    ck_assert_msg(strstr(second.said, port) && lines(second.said) == 1, "%s", second.said);
    rundir_remove(rundir);
    close_pool();
}
END_TEST

START_TEST(sigterm_refuses_new_requests_and_finishes_the_others)
{
    open_pool(NULL);
    client_generate(&client, 'w', "wait", NULL);
    ck_assert_int_eq(client_frame(&client, 5000).kind, MESSAGE_FRAME);
    kill(pool.pid, SIGTERM);
    ck_assert(pool_said(&pool, 0, "draining"));
    client_generate(&client, 'r', "count 1", NULL);
    ck_assert_int_eq(expect_error(&client), PROTO_DRAINING);
    struct message cancel = named(MESSAGE_CANCEL, 'w');
    client_send(&client, &cancel);
    struct message last = client_frame(&client, 5000);
    ck_assert(last.frame.has_end);
    ck_assert_int_eq(client_expect(&client, MESSAGE_END).end.end.reason, END_CANCELLED);
    ck_assert_int_eq(pool_wait(&pool), 0);
    close_pool();
}
END_TEST

START_TEST(a_second_signal_ends_at_once_and_leaves_no_worker_behind)
{
    open_pool(NULL);
    struct message question = {.kind = MESSAGE_STATUS};
    client_send(&client, &question);
    pid_t worker = (pid_t)client_expect(&client, MESSAGE_STATUS_OK).status_ok.workers.items[0].pid;
    client_generate(&client, 'w', "wait", NULL);
    ck_assert_int_eq(client_frame(&client, 5000).kind, MESSAGE_FRAME);
    kill(pool.pid, SIGINT);
    ck_assert(pool_said(&pool, 0, "draining"));
    kill(pool.pid, SIGINT);
    ck_assert_int_eq(client_expect(&client, MESSAGE_END).end.end.error, PROTO_DRAINING);
    ck_assert_int_eq(pool_wait(&pool), 0);
    ck_assert_int_eq(kill(worker, 0), -1);
    close_pool();
}
END_TEST

START_TEST(a_crash_loop_stops_with_its_reason)
{
    pool_start(&pool, "crash", NULL);
    ck_assert_int_eq(pool_wait(&pool), 1);
    ck_assert_msg(strstr(pool.said, "killed by signal 6"), "%s", pool.said);
    ck_assert_uint_eq(lines(pool.said), 5);
    pool_stop(&pool);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_request_streams_every_token_once_and_ends_on_both_sockets);
    tcase_add_test(tests, frames_published_twice_or_late_are_forwarded_once_and_in_order);
    tcase_add_test(tests, the_same_generate_is_one_generation_and_another_body_is_a_conflict);
    tcase_add_test(tests, a_replay_gives_the_frames_again_from_any_position);
    tcase_add_test(tests, a_request_that_the_worker_refuses_ends_with_the_workers_error);
    tcase_add_test(tests, a_deadline_that_passes_in_the_queue_ends_the_request_undispatched);
    tcase_add_test(tests, what_cannot_be_served_is_refused_by_name);
    tcase_add_test(tests, tokenize_goes_to_a_worker_and_back_under_the_clients_ref);
    tcase_add_test(tests, status_shows_the_workers_and_the_counts);
    tcase_add_test(tests, a_peer_without_a_session_is_told_to_say_hello);
    tcase_add_test(tests, nobody_hears_sessions_that_he_cannot_name);
    tcase_add_test(tests, a_client_that_leaves_has_its_requests_cancelled_or_kept_as_they_asked);
    tcase_add_test(tests, an_attached_request_streams_to_its_new_session);
    tcase_add_test(tests, a_silent_session_loses_its_lease);
    tcase_add_test(tests, a_kept_request_is_cancelled_when_its_time_is_up);
    tcase_add_test(tests, a_client_that_does_not_read_slows_nobody_and_can_replay);
    tcase_add_test(tests, beyond_what_the_journal_can_hold_requests_are_told_when_to_come_back);
    tcase_add_test(tests, a_message_above_the_bound_costs_its_sender_the_connection_and_nobody_else);
    tcase_add_test(tests, a_worker_of_an_earlier_broker_is_sent_away);
    tcase_add_test(tests, garbage_on_every_socket_harms_nobody);
    tcase_add_test(tests, a_worker_that_dies_fails_its_requests_and_comes_back);
    tcase_add_test(tests, a_worker_that_sends_garbage_is_killed_and_comes_back);
    tcase_add_test(tests, a_worker_that_makes_no_progress_is_killed_and_the_other_serves_on);
    tcase_add_test(tests, a_pool_starts_where_a_killed_broker_left_its_sockets);
    tcase_add_test(tests, tcp_beyond_this_machine_takes_a_certificate_and_only_those_who_know_it);
    tcase_add_test(tests, a_permanent_failure_is_said_in_one_line_and_not_tried_again);
    tcase_add_test(tests, a_missing_model_or_a_second_pool_is_one_line);
    tcase_add_test(tests, a_port_in_use_is_one_line);
    tcase_add_test(tests, sigterm_refuses_new_requests_and_finishes_the_others);
    tcase_add_test(tests, a_second_signal_ends_at_once_and_leaves_no_worker_behind);
    tcase_add_test(tests, a_crash_loop_stops_with_its_reason);
}

int main(void)
{
    return run_tests("broker", add);
}
