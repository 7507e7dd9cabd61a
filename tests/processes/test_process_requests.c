/* SPDX-License-Identifier: MIT */
/* The broker as a process, from its sockets: requests and their ends. */

#include "tests/processes/client.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"

START_TEST(a_request_streams_every_token_once_and_ends_on_both_sockets)
{
    uint64_t count;
    open_pool(NULL);
    client_generate(&client_a, 'r', "count 500", NULL);
    struct message accepted = client_expect(&client_a, MESSAGE_ACCEPTED);
    ck_assert(!accepted.accepted.again);
    ck_assert_uint_gt(accepted.accepted.epoch.boot, 0);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 500);
    struct message end = client_expect(&client_a, MESSAGE_END);
    ck_assert_uint_eq(end.end.count, 500);
    ck_assert_int_eq(end.end.end.reason, END_LENGTH);
    close_pool();
}
END_TEST

START_TEST(frames_published_twice_or_late_are_forwarded_once_and_in_order)
{
    uint64_t count;
    open_pool(NULL);
    client_generate(&client_a, 't', "twice 100", NULL);
    ck_assert_int_eq(client_read(&client_a, 't', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 100);
    client_generate(&client_a, 'g', "gap 100", NULL);
    ck_assert_int_eq(client_read(&client_a, 'g', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 100);
    client_generate(&client_a, 'l', "tail 100", NULL);
    ck_assert_int_eq(client_read(&client_a, 'l', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 100);
    ck_assert_int_eq(client_frame(&client_a, 100).kind, MESSAGE_NONE);
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
    client_generate(&client_a, 'r', "wait", NULL);
    uint64_t seed = client_expect(&client_a, MESSAGE_ACCEPTED).accepted.seed;
    client_generate(&client_a, 'r', "wait", NULL);
    struct message accepted = client_expect(&client_a, MESSAGE_ACCEPTED);
    ck_assert(accepted.accepted.again);
    ck_assert_uint_eq(accepted.accepted.seed, seed);
    client_generate(&client_a, 'r', "wait", fewer_tokens);
    ck_assert_int_eq(expect_error(&client_a), PROTO_CONFLICT);
    while (client_status(&client_a).status_ok.running == 0) /* all of this may be one turn of the loop */
        ;
    struct message cancel = named(MESSAGE_CANCEL, 'r');
    client_send(&client_a, &cancel);
    client_expect(&client_a, MESSAGE_CANCEL_OK);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_CANCELLED);
    ck_assert_uint_eq(count, 1);
    client_expect(&client_a, MESSAGE_END);
    client_generate(&client_a, 'r', "wait", NULL); /* still one generation, and it has ended */
    ck_assert(client_expect(&client_a, MESSAGE_ACCEPTED).accepted.again);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_END).end.end.reason, END_CANCELLED);
    ck_assert_int_eq(client_frame(&client_a, 100).kind, MESSAGE_NONE);
    close_pool();
}
END_TEST

START_TEST(a_replay_gives_the_frames_again_from_any_position)
{
    uint64_t count;
    open_pool(NULL);
    client_generate(&client_a, 'r', "count 5000", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    struct message replay = named(MESSAGE_REPLAY, 'r');
    replay.replay.next = 100;
    for (unsigned pages = 1;; pages++) {
        client_send(&client_a, &replay);
        struct message page = client_expect(&client_a, MESSAGE_REPLAY_OK);
        ck_assert_uint_eq(page.replay_ok.from, replay.replay.next);
        ck_assert_uint_eq(page.replay_ok.next, replay.replay.next + page.replay_ok.frames.n);
        replay.replay.next = page.replay_ok.next;
        if (!page.replay_ok.done)
            continue;
        ck_assert_uint_gt(pages, 1);
        ck_assert_uint_eq(page.replay_ok.next, 5000);
        struct bytes last = page.replay_ok.frames.items[page.replay_ok.frames.n - 1];
        struct message frame;
        ck_assert_int_eq(message_decode(client_a.decoder, last.data, last.len, &frame, NULL), 0);
        ck_assert(frame.frame.has_end);
        break;
    }
    struct message unknown = named(MESSAGE_REPLAY, 'x');
    client_send(&client_a, &unknown);
    ck_assert_int_eq(expect_error(&client_a), PROTO_UNKNOWN_REQUEST);
    close_pool();
}
END_TEST

START_TEST(a_request_that_the_worker_refuses_ends_with_the_workers_error)
{
    uint64_t count;
    enum proto_error error;
    open_pool(NULL);
    client_generate(&client_a, 'r', "refuse", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, &error), END_ERROR);
    ck_assert_int_eq(error, PROTO_TOO_LONG);
    ck_assert_uint_eq(count, 0);
    struct message end = client_expect(&client_a, MESSAGE_END);
    ck_assert(bytes_equal(end.end.end.text, bytes_of_string("9 is above 8")));
    close_pool();
}
END_TEST

static void soon(struct generation *generation)
{
    generation->deadline_ms = 50;
}

/* After it has begun, however busy the machine is. */
static void later(struct generation *generation)
{
    generation->deadline_ms = 3000;
}

START_TEST(a_deadline_that_passes_in_the_queue_ends_the_request_undispatched)
{
    uint64_t count;
    open_pool("--workers", "1", NULL);
    /* The fake has four slots, and a few more for refilling: 8 fill it whatever the margin is. */
    for (uint8_t i = 0; i < 8; i++)
        client_generate(&client_a, i, "wait", NULL);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(client_frame(&client_a, 30000).kind, MESSAGE_FRAME);
    client_generate(&client_a, 'd', "count 3", soon);
    ck_assert_int_eq(client_read(&client_a, 'd', &count, NULL), END_DEADLINE);
    ck_assert_uint_eq(count, 0);
    struct message cancel = named(MESSAGE_CANCEL, 7);
    client_send(&client_a, &cancel); /* this one is still queued */
    ck_assert_int_eq(client_read(&client_a, 7, &count, NULL), END_CANCELLED);
    ck_assert_uint_eq(count, 0);
    close_pool();
}
END_TEST

START_TEST(a_cancel_and_a_deadline_hold_though_the_worker_does_not_heed_them)
{
    uint64_t count;
    open_pool(NULL);
    client_generate(&client_a, 'c', "deaf", NULL);
    ck_assert_int_eq(client_frame(&client_a, 30000).kind, MESSAGE_FRAME);
    struct message cancel = named(MESSAGE_CANCEL, 'c');
    client_send(&client_a, &cancel);
    struct message last = client_frame(&client_a, 30000);
    ck_assert(last.frame.has_end);
    ck_assert_uint_eq(last.frame.seq, 1);
    ck_assert_int_eq(last.frame.end.reason, END_CANCELLED);
    client_generate(&client_a, 'd', "deaf", later);
    ck_assert_int_eq(client_read(&client_a, 'd', &count, NULL), END_DEADLINE);
    ck_assert_uint_eq(count, 1);
    client_generate(&client_a, 'r', "count 10", NULL); /* the worker is none the worse for it */
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    close_pool();
}
END_TEST

START_TEST(a_cancelled_request_that_its_worker_gives_back_is_cancelled)
{
    uint64_t count;
    open_pool(NULL);
    client_generate(&client_a, 'r', "return", NULL);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    while (client_status(&client_a).status_ok.running == 0)
        usleep(20000);
    struct message cancel = named(MESSAGE_CANCEL, 'r');
    client_send(&client_a, &cancel);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_CANCELLED);
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

static void embedding(struct generation *generation)
{
    generation->embed = true;
    generation->max_tokens = 0;
}

START_TEST(what_cannot_be_served_is_refused_by_name)
{
    open_pool(NULL);
    client_generate(&client_a, '1', "count 1", unknown_feature);
    ck_assert_int_eq(expect_error(&client_a), PROTO_UNSUPPORTED);
    client_generate(&client_a, '2', "count 1", other_model);
    ck_assert_int_eq(expect_error(&client_a), PROTO_NO_WORKER);
    client_generate(&client_a, '3', "count 1", endless);
    ck_assert_int_eq(expect_error(&client_a), PROTO_TOO_LONG);
    client_generate(&client_a, '4', "count 1", embedding); /* the fakes register none */
    ck_assert_int_eq(expect_error(&client_a), PROTO_UNSUPPORTED);
    struct message cancel = named(MESSAGE_CANCEL, 'x');
    client_send(&client_a, &cancel);
    ck_assert_int_eq(expect_error(&client_a), PROTO_UNKNOWN_REQUEST);
    close_pool();
}
END_TEST

static void open_embedding_pool(void)
{
    pool_start(&the_pool, fake_model(&the_pool, "embeds"), NULL);
    client_open(&client_a, &the_pool, 'a');
}

/* Thousands of them would else wait for one listener that does not read. */
START_TEST(a_vector_does_not_go_over_the_stream_and_is_replayed)
{
    open_embedding_pool();
    client_generate(&client_a, 'v', "vector 4", embedding);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_END).end.end.reason, END_STOP);
    client_generate(&client_a, 'c', "count 1", NULL);
    struct message frame = client_frame(&client_a, PATIENCE_S * 1000);
    ck_assert_int_eq(frame.frame.id.bytes[0], 'c'); /* what came before would have been first */
    struct message replay = named(MESSAGE_REPLAY, 'v'), vector;
    client_send(&client_a, &replay);
    struct message page = client_expect(&client_a, MESSAGE_REPLAY_OK);
    ck_assert_uint_eq(page.replay_ok.frames.n, 1);
    const struct bytes raw = page.replay_ok.frames.items[0];
    ck_assert_int_eq(message_decode(client_a.decoder, raw.data, raw.len, &vector, NULL), 0);
    ck_assert_uint_eq(vector.frame.embedding.len, 4 * sizeof(float));
    close_pool();
}
END_TEST

START_TEST(a_worker_whose_vector_has_another_length_is_believed_no_more)
{
    open_embedding_pool();
    client_generate(&client_a, 'v', "vector 3", embedding);
    struct message end = client_expect(&client_a, MESSAGE_END);
    ck_assert_int_eq(end.end.end.reason, END_ERROR);
    ck_assert_int_eq(end.end.end.error, PROTO_WORKER_LOST);
    close_pool();
}
END_TEST

/* Sends it; the error that comes is for this kind. */
static void expect_error_of(const struct message *message, enum message_kind of)
{
    client_send(&client_a, message);
    struct message no = client_expect(&client_a, MESSAGE_ERROR);
    ck_assert_str_eq(message_kind_name(no.error.of), message_kind_name(of));
}

START_TEST(an_error_says_what_it_answers)
{
    open_pool(NULL);
    struct message cancel = named(MESSAGE_CANCEL, 'x'), replay = named(MESSAGE_REPLAY, 'x');
    struct message attach = named(MESSAGE_ATTACH, 'x'), pong = {.kind = MESSAGE_PONG};
    struct message tokenize = {
        .kind = MESSAGE_TOKENIZE, .tokenize.has_text = true, .tokenize.text = BYTES_LITERAL("a")};
    tokenize.tokenize.model = BYTES_LITERAL("another");
    expect_error_of(&cancel, MESSAGE_CANCEL);
    expect_error_of(&replay, MESSAGE_REPLAY);
    expect_error_of(&attach, MESSAGE_ATTACH);
    expect_error_of(&tokenize, MESSAGE_TOKENIZE);
    expect_error_of(&pong, MESSAGE_PONG); /* which is not for a client to send */
    client_generate(&client_a, '2', "count 1", other_model);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_ERROR).error.of, MESSAGE_GENERATE);
    /* A generate without a prompt, and what cannot be read at all. */
    static const uint8_t malformed[] = "\x81\xa1k\xa8generate", nonsense[] = "\xc1";
    zmq_send(client_a.control, malformed, sizeof malformed - 1, 0);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_ERROR).error.of, MESSAGE_GENERATE);
    zmq_send(client_a.control, nonsense, sizeof nonsense - 1, 0);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_ERROR).error.of, MESSAGE_NONE);
    close_pool();
}
END_TEST

static void many_logprobs(struct generation *generation)
{
    generation->max_tokens = 100000;
    generation->logprobs = 21;
}

START_TEST(journal_and_retention_are_as_large_as_asked)
{
    uint64_t count, until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S; /* of the minute that is the default */
    struct message replay = named(MESSAGE_REPLAY, 'r');
    open_pool("--journal", "16", "--retention", "1", NULL);
    client_generate(&client_a, 'l', "count 1", many_logprobs); /* which 256 MiB could hold */
    struct message no = client_expect(&client_a, MESSAGE_ERROR);
    ck_assert_int_eq(no.error.error, PROTO_TOO_LONG);
    client_generate(&client_a, 'r', "count 1", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    while (client_status(&client_a).status_ok.journal_bytes > 0) {
        ck_assert_uint_lt(clock_ns(), until);
        usleep(20000);
    }
    client_send(&client_a, &replay);
    ck_assert_int_eq(expect_error(&client_a), PROTO_UNKNOWN_REQUEST);
    close_pool();
}
END_TEST

START_TEST(tokenize_goes_to_a_worker_and_back_under_the_clients_ref)
{
    open_pool(NULL);
    struct message question = {.kind = MESSAGE_TOKENIZE};
    question.tokenize.ref = 12345;
    question.tokenize.has_text = true;
    question.tokenize.text = BYTES_LITERAL("ab");
    client_send(&client_a, &question);
    struct message answer = client_expect(&client_a, MESSAGE_TOKENIZE_OK);
    ck_assert_uint_eq(answer.tokenize_ok.ref, 12345);
    ck_assert_uint_eq(answer.tokenize_ok.ids.n, 2);
    close_pool();
}
END_TEST

static void make_few_tokens(struct generation *generation)
{
    generation->max_tokens = 8;
}

/* Asks with so many bytes of a letter before what the worker is to do. Which worker has it, by the log. */
static int ask_long(uint8_t name, char letter, size_t n, const char *what)
{
    static char prompt[10000];
    char line[64];
    const char *at = NULL, *next;
    memset(prompt, letter, n);
    memcpy(prompt, "long ", 5);
    snprintf(prompt + n, sizeof prompt - n, "|%s", what);
    client_generate(&client_a, name, prompt, make_few_tokens);
    snprintf(line, sizeof line, "request %02x%02x%02x%02x: queued -> running, worker-", name, name, name,
             name);
    ck_assert_msg(pool_says(&the_pool, line, PATIENCE_S), "%s", pool_log(&the_pool));
    for (next = pool_log(&the_pool); (next = strstr(next, line)); next++)
        at = next;
    return atoi(at + strlen(line));
}

/* The worker that has read a prompt is killed. With a store another one can bring it, so it is little work:
 * two more, of which the second goes to who has less to do, show what was counted. */
START_TEST(what_the_prefix_store_has_is_counted_for_other_workers_too)
{
    uint64_t count;
    struct message status;
    setenv("QUERN_LOG", "debug", 1);
    open_pool("--workers", "2", "--prefix-store", "1", NULL);
    unsetenv("QUERN_LOG");
    int first = ask_long('p', 'x', 8192, "count 1");
    client_read(&client_a, 'p', &count, NULL);
    status = client_status(&client_a);
    kill((pid_t)status.status_ok.workers.items[first].pid, SIGKILL);
    do {
        usleep(20000);
        status = client_status(&client_a);
    } while (status.status_ok.workers.items[first].incarnation != 2 ||
             status.status_ok.workers.items[first].state != WORKER_READY);
    int again = ask_long('q', 'x', 8192, "return");
    ck_assert_int_ne(ask_long('r', 'y', 2400, "return"), again);
    ck_assert_int_eq(ask_long('s', 'z', 1200, "return"), again);
    for (uint8_t name = 'q'; name <= 's'; name++) {
        struct message cancel = named(MESSAGE_CANCEL, name);
        client_send(&client_a, &cancel);
        ck_assert_int_eq(client_read(&client_a, name, &count, NULL), END_CANCELLED);
    }
    close_pool();
}
END_TEST

START_TEST(status_shows_the_workers_and_the_counts)
{
    uint64_t count;
    open_pool("--workers", "2", NULL);
    client_generate(&client_a, 'r', "count 10", NULL);
    client_read(&client_a, 'r', &count, NULL);
    struct message question = {.kind = MESSAGE_STATUS, .status = {.ref = 9}};
    client_send(&client_a, &question);
    struct message status = client_expect(&client_a, MESSAGE_STATUS_OK);
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

static void add(TCase *tests)
{
    tcase_add_test(tests, a_request_streams_every_token_once_and_ends_on_both_sockets);
    tcase_add_test(tests, frames_published_twice_or_late_are_forwarded_once_and_in_order);
    tcase_add_test(tests, the_same_generate_is_one_generation_and_another_body_is_a_conflict);
    tcase_add_test(tests, a_replay_gives_the_frames_again_from_any_position);
    tcase_add_test(tests, a_request_that_the_worker_refuses_ends_with_the_workers_error);
    tcase_add_test(tests, a_deadline_that_passes_in_the_queue_ends_the_request_undispatched);
    tcase_add_test(tests, a_cancel_and_a_deadline_hold_though_the_worker_does_not_heed_them);
    tcase_add_test(tests, a_cancelled_request_that_its_worker_gives_back_is_cancelled);
    tcase_add_test(tests, a_vector_does_not_go_over_the_stream_and_is_replayed);
    tcase_add_test(tests, a_worker_whose_vector_has_another_length_is_believed_no_more);
    tcase_add_test(tests, what_cannot_be_served_is_refused_by_name);
    tcase_add_test(tests, an_error_says_what_it_answers);
    tcase_add_test(tests, journal_and_retention_are_as_large_as_asked);
    tcase_add_test(tests, tokenize_goes_to_a_worker_and_back_under_the_clients_ref);
    tcase_add_test(tests, what_the_prefix_store_has_is_counted_for_other_workers_too);
    tcase_add_test(tests, status_shows_the_workers_and_the_counts);
}

int main(void)
{
    return run_tests("broker process: requests", add);
}
