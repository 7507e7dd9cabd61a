/* SPDX-License-Identifier: MIT */
/* The broker as a process, beside a client that wants everything: what it gets, and what others still do. */

#include "tests/processes/client.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

/* Sends a generate for a tenant under a number; numbers below 2^16 give distinct ids. */
static void generate_for(struct client *client, unsigned number, const char *tenant, const char *prompt,
                         uint32_t max_tokens, uint32_t logprobs)
{
    struct message generate = {.kind = MESSAGE_GENERATE};
    memcpy(&generate.generate.id, &number, sizeof number);
    generation_defaults(&generate.generate.generation);
    generate.generate.generation.prompt.text = bytes_of_string(prompt);
    generate.generate.generation.max_tokens = max_tokens;
    generate.generate.generation.logprobs = logprobs;
    generate.generate.generation.tenant = bytes_of_string(tenant);
    client_send(client, &generate);
}

static void generate(struct client *client, unsigned number, const char *prompt, uint32_t max_tokens,
                     uint32_t logprobs)
{
    generate_for(client, number, "", prompt, max_tokens, logprobs);
}

/* Reads verdicts on `n` requests: how many were accepted. All others are `overloaded` and say `reason`. */
static unsigned read_verdicts(struct client *client, unsigned n, const char *reason)
{
    unsigned accepted = 0;
    for (unsigned i = 0; i < n;) {
        struct message message = client_next(client);
        i += message.kind == MESSAGE_ACCEPTED || message.kind == MESSAGE_ERROR;
        accepted += message.kind == MESSAGE_ACCEPTED;
        if (message.kind != MESSAGE_ERROR)
            continue;
        char text[PROTO_MAX_TEXT_BYTES + 1];
        snprintf(text, sizeof text, "%.*s", (int)message.error.text.len,
                 (const char *)message.error.text.data);
        ck_assert_int_eq(message.error.error, PROTO_OVERLOADED);
        ck_assert_uint_ge(message.error.retry_after_ms, 100);
        ck_assert_msg(strstr(text, reason) != NULL, "\"%s\" does not say \"%s\"", text, reason);
    }
    return accepted;
}

static void cancel(struct client *client, unsigned number)
{
    struct message cancel = {.kind = MESSAGE_CANCEL};
    memcpy(&cancel.cancel.id, &number, sizeof number);
    client_send(client, &cancel);
}

START_TEST(a_session_with_one_request_does_not_wait_behind_all_of_another)
{
    enum { FLOOD = 2000 };
    uint64_t count;
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    for (unsigned i = 0; i < FLOOD; i++)
        generate(&client_a, i, "wait", 1, 0);
    ck_assert_uint_eq(read_verdicts(&client_a, FLOOD, ""), FLOOD);
    client_generate(&client_b, 'b', "count 3", NULL);
    client_expect(&client_b, MESSAGE_ACCEPTED);
    /* Two of the first give their slots up: one for the flood, one for the other session. */
    cancel(&client_a, 0);
    cancel(&client_a, 1);
    ck_assert_int_eq(client_read(&client_b, 'b', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_gt(client_status(&client_b).status_ok.queued, FLOOD - 20);
    client_close(&client_b);
    close_pool();
}
END_TEST

static void of_bob(struct generation *generation)
{
    generation->tenant = BYTES_LITERAL("bob");
}

START_TEST(a_tenant_with_one_request_does_not_wait_behind_all_of_another)
{
    enum { FLOOD = 2000 };
    uint64_t count;
    open_pool(NULL);
    for (unsigned i = 0; i < FLOOD; i++)
        generate_for(&client_a, i, "ann", "wait", 1, 0);
    ck_assert_uint_eq(read_verdicts(&client_a, FLOOD, ""), FLOOD);
    client_generate(&client_a, 'b', "count 3", of_bob); /* of the same session */
    client_expect(&client_a, MESSAGE_ACCEPTED);
    cancel(&client_a, 0);
    cancel(&client_a, 1);
    ck_assert_int_eq(client_read(&client_a, 'b', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_gt(client_status(&client_a).status_ok.queued, FLOOD - 20);
    close_pool();
}
END_TEST

START_TEST(a_session_that_makes_up_names_leaves_room_for_others)
{
    enum { FLOOD = 9000, MOST = 8192 - 8192 / 8 };
    char name[16];
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    for (unsigned i = 0; i < FLOOD; i++) {
        struct message ping = {.kind = MESSAGE_PING};
        snprintf(name, sizeof name, "n%u", i);
        generate_for(&client_a, i, name, "wait", 1, 0);
        if (i % 500 == 0)
            client_send(&client_b, &ping);
    }
    unsigned accepted = read_verdicts(&client_a, FLOOD, "this session's share of the queue is full");
    ck_assert_uint_ge(accepted, MOST);
    ck_assert_uint_le(accepted, MOST + 20); /* those that run */
    for (unsigned i = 0; i < 500; i++)
        generate(&client_b, i, "wait", 1, 0);
    ck_assert_uint_eq(read_verdicts(&client_b, 500, ""), 500);
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(one_session_does_not_fill_the_queue)
{
    enum { FLOOD = 6000, HALF = 4096 };
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    for (unsigned i = 0; i < FLOOD; i++)
        generate(&client_a, i, "wait", 1, 0);
    unsigned accepted = read_verdicts(&client_a, FLOOD, "this session's share of the queue is full");
    ck_assert_uint_ge(accepted, HALF);
    ck_assert_uint_le(accepted, HALF + 20); /* those that run */
    for (unsigned i = 0; i < FLOOD; i++) {
        struct message ping = {.kind = MESSAGE_PING};
        generate(&client_b, i, "wait", 1, 0);
        if (i % 500 == 0) /* the other one is still there, however long this takes */
            client_send(&client_a, &ping);
    }
    accepted = read_verdicts(&client_b, FLOOD, "this session's share of the queue is full");
    ck_assert_uint_ge(accepted, HALF / 2);
    ck_assert_uint_le(accepted, HALF / 2 + 20);
    client_close(&client_b);
    close_pool();
}
END_TEST

/* What waits has an eighth of the journal: 2 MiB of these. */
START_TEST(one_session_does_not_fill_the_journals_part_for_the_queue)
{
    enum { FLOOD = 1500 };
    open_pool("--journal", "16", NULL);
    client_open(&client_b, &the_pool, 'b');
    for (unsigned i = 0; i < FLOOD; i++)
        generate(&client_a, i, "wait", 10000, 0);
    unsigned accepted = read_verdicts(&client_a, FLOOD, "this session's share of the journal is full");
    ck_assert_uint_ge(accepted, 300);
    ck_assert_uint_le(accepted, 600);
    for (unsigned i = 0; i < FLOOD; i++)
        generate(&client_b, i, "wait", 10000, 0);
    unsigned others = read_verdicts(&client_b, FLOOD, "this session's share of the journal is full");
    ck_assert_uint_ge(others, accepted / 2 - 50);
    ck_assert_uint_lt(others, accepted * 3 / 4);
    client_close(&client_b);
    close_pool();
}
END_TEST

/* MB of memory that the broker has in use. */
static double resident_mb(void)
{
    char path[64];
    long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pool_broker_pid(&the_pool));
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return (double)(pages * sysconf(_SC_PAGESIZE)) / 1e6;
}

/* Opens a session that takes nothing out of its socket but the hello_ok, and whose socket takes nothing out
 * of the kernel. */
static void open_without_reading(struct client *client, uint8_t name)
{
    char endpoint[POOL_ENDPOINT_MAX];
    int one = 1;
    client_connect(client, &the_pool);
    zmq_disconnect(client->control, pool_endpoint(&the_pool, "frontend", endpoint));
    zmq_setsockopt(client->control, ZMQ_RCVHWM, &one, sizeof one);
    ck_assert_int_eq(zmq_connect(client->control, endpoint), 0);
    memset(&client->session, name, sizeof client->session);
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}, .session = client->session}};
    client_send(client, &hello);
    client_expect(client, MESSAGE_HELLO_OK);
}

enum { MUTE = 10 };
static struct client mute[MUTE];

/* They read nothing, but are there. */
static void keep_leases(void)
{
    struct message ping = {.kind = MESSAGE_PING};
    for (int i = 0; i < MUTE; i++)
        client_send(&mute[i], &ping);
}

START_TEST(clients_that_ask_for_pages_and_read_none_hold_little)
{
    enum { PAGES = 300 };
    uint64_t count;
    open_pool(NULL);
    for (uint8_t i = 0; i < MUTE; i++) {
        open_without_reading(&mute[i], i);
        client_generate(&mute[i], 'r', "count 5000", NULL); /* in pages: three */
    }
    while (client_status(&client_a).status_ok.ended < MUTE) {
        keep_leases();
        usleep(100000);
    }
    double before = resident_mb();
    struct message replay = named(MESSAGE_REPLAY, 'r');
    for (int i = 0; i < MUTE; i++)
        for (int k = 0; k < PAGES; k++)
            client_send(&mute[i], &replay);
    client_generate(&client_a, 'r', "count 1000", NULL); /* who reads is served meanwhile */
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    client_send(&client_a, &replay);
    ck_assert_uint_eq(client_expect(&client_a, MESSAGE_REPLAY_OK).replay_ok.next, 1000);
    for (int i = 0; i < 10; i++) {
        keep_leases();
        usleep(100000);
    }
    double grown = resident_mb() - before;
    ck_assert_msg(grown < 40, "%.1f MB for %d pages of which none was read", grown, MUTE * PAGES);
    /* What is owed comes when it is wanted. */
    replay.replay.next = 0;
    for (int i = 0; i < MUTE; i++) {
        client_send(&mute[i], &replay);
        ck_assert_uint_eq(client_expect(&mute[i], MESSAGE_REPLAY_OK).replay_ok.from, 0);
        ck_assert_uint_eq(client_expect(&mute[i], MESSAGE_REPLAY_OK).replay_ok.from, 0);
        client_close(&mute[i]);
    }
    close_pool();
}
END_TEST

static void keep(struct generation *generation)
{
    generation->on_disconnect = DISCONNECT_KEEP;
    generation->keep_s = 60;
}

/* Asks, as session `name` on this connection, for the longest answer that there is room for. */
static void reserve_most(struct client *client, uint8_t name)
{
    struct message generate = {.kind = MESSAGE_GENERATE}, verdict;
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}}};
    memset(&hello.hello.session, name, sizeof hello.hello.session);
    client_send(client, &hello);
    client_expect(client, MESSAGE_HELLO_OK);
    generation_defaults(&generate.generate.generation);
    keep(&generate.generate.generation);
    generate.generate.generation.prompt.text = BYTES_LITERAL("wait");
    generate.generate.generation.max_tokens = 100000;
    generate.generate.generation.logprobs = 21;
    do {
        generate.generate.id.bytes[0]++;
        client_send(client, &generate);
        do
            verdict = client_next(client);
        while (verdict.kind != MESSAGE_ACCEPTED && verdict.kind != MESSAGE_ERROR);
        generate.generate.generation.max_tokens /= 2;
    } while (verdict.kind == MESSAGE_ERROR && generate.generate.generation.max_tokens > 0);
}

START_TEST(admissions_evict_no_answer_that_was_not_read)
{
    uint64_t count;
    open_pool("--drain-seconds", "1", NULL); /* what is kept would be waited for */
    client_generate(&client_a, 'r', "count 5000", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    client_open(&client_b, &the_pool, 'b');
    for (uint8_t i = 0; i < 16; i++) /* of what each leaves free the next one takes half */
        reserve_most(&client_b, i);
    struct message replay = named(MESSAGE_REPLAY, 'r');
    client_send(&client_a, &replay);
    ck_assert_uint_eq(client_expect(&client_a, MESSAGE_REPLAY_OK).replay_ok.from, 0);
    client_close(&client_b);
    close_pool();
}
END_TEST

/* A prompt of a megabyte that begins with this text. */
static const char *large_prompt(const char *text)
{
    static char prompt[(1 << 20) + 1];
    memset(prompt, ' ', sizeof prompt - 1);
    memcpy(prompt, text, strlen(text));
    return prompt;
}

START_TEST(brief_requests_pass_large_ones_that_the_worker_has_not_taken)
{
    enum { LARGE = 4 };
    uint64_t count;
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    client_generate(&client_b, 'h', "hush", NULL);
    ck_assert_int_eq(client_read(&client_b, 'h', &count, NULL), END_LENGTH);
    for (uint8_t i = 0; i < LARGE; i++)
        client_generate(&client_a, i, large_prompt("count 2"), NULL);
    for (int i = 0; i < LARGE; i++)
        client_expect(&client_a, MESSAGE_ACCEPTED);
    /* One is with the worker, which does not say that it has taken it. */
    ck_assert_int_eq(client_read(&client_a, 0, &count, NULL), END_LENGTH);
    client_generate(&client_b, 'b', "count 3", NULL);
    ck_assert_int_eq(client_read(&client_b, 'b', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(client_status(&client_b).status_ok.queued, LARGE - 1);
    client_generate(&client_b, 's', "speak", NULL);
    for (uint8_t i = 1; i < LARGE; i++)
        ck_assert_int_eq(client_read(&client_a, i, &count, NULL), END_LENGTH);
    client_close(&client_b);
    close_pool();
}
END_TEST

static void embedding(struct generation *generation)
{
    generation->embed = true;
    generation->max_tokens = 0;
}

static void await_queued(struct client *client, uint32_t n)
{
    for (int i = 0; client_status(client).status_ok.queued != n; i++) {
        ck_assert_int_lt(i, PATIENCE_S * 100);
        usleep(10000);
    }
}

START_TEST(a_request_that_one_worker_alone_could_take_holds_up_nobody)
{
    enum { PLACES = 5, LAST = 9 };
    struct message end;
    uint64_t count;
    pool_start(&the_pool, fake_model(&the_pool, "mixed"), "--workers", "2", NULL);
    client_open(&client_a, &the_pool, 'a');
    client_open(&client_b, &the_pool, 'b');
    for (uint8_t i = 0; i < PLACES; i++)
        client_generate(&client_a, i, "wait", embedding);
    client_generate(&client_a, LAST, "vector 4", embedding);
    await_queued(&client_a, 1);
    client_generate(&client_b, 'b', "count 3", NULL);
    ck_assert_int_eq(client_read(&client_b, 'b', &count, NULL), END_LENGTH);
    for (uint8_t i = 0; i <= PLACES; i++) /* one more than the other worker has room for */
        client_generate(&client_b, i, "wait", NULL);
    await_queued(&client_b, 2);
    cancel(&client_a, 0);
    do
        end = client_expect(&client_a, MESSAGE_END);
    while (end.end.id.bytes[0] != LAST);
    ck_assert_int_eq(end.end.end.reason, END_STOP); /* it was the first, once there was room */
    client_close(&client_b);
    close_pool();
}
END_TEST

static void for_worker_0(struct generation *generation)
{
    generation->model = BYTES_LITERAL("worker-0");
}

static void for_worker_1(struct generation *generation)
{
    generation->model = BYTES_LITERAL("worker-1");
}

START_TEST(what_waits_for_one_model_holds_up_no_other)
{
    enum { PLACES = 5 };
    uint64_t count;
    pool_start(&the_pool, fake_model(&the_pool, "named"), "--workers", "2", NULL);
    client_open(&client_a, &the_pool, 'a');
    client_open(&client_b, &the_pool, 'b');
    for (uint8_t i = 0; i <= PLACES; i++) /* one more than there is room for */
        client_generate(&client_a, i, "wait", for_worker_0);
    await_queued(&client_a, 1);
    client_generate(&client_b, 'm', "count 3", for_worker_1);
    ck_assert_int_eq(client_read(&client_b, 'm', &count, NULL), END_LENGTH);
    client_generate(&client_b, 'b', "count 3", NULL);
    ck_assert_int_eq(client_read(&client_b, 'b', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(client_status(&client_b).status_ok.queued, 1);
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(what_was_begun_goes_on_before_all_that_waits)
{
    enum { PLACES = 5 };
    unsigned went_on = 0;
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    for (uint8_t i = 0; i < PLACES; i++) {
        client_generate(&client_a, i, "wait", NULL);
        ck_assert_int_eq(client_frame(&client_a, PATIENCE_S * 1000).kind, MESSAGE_FRAME);
    }
    for (uint8_t i = 0; i <= PLACES; i++)
        client_generate(&client_b, i, "wait", NULL);
    await_queued(&client_b, PLACES + 1);
    const struct message status = client_status(&client_b);
    ck_assert_int_eq(kill((pid_t)status.status_ok.workers.items[0].pid, SIGKILL), 0);
    for (int s = 0; went_on < PLACES; s++) {
        const struct message frame = client_frame(&client_a, 1000);
        went_on += frame.kind == MESSAGE_FRAME && frame.frame.seq == 1;
        ck_assert_uint_gt(client_status(&client_b).status_ok.queued, PLACES); /* who waits is there */
        ck_assert_msg(s < PATIENCE_S, "%u of %d went on", went_on, PLACES);
    }
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(a_worker_has_one_large_question_and_answers_brief_ones_meanwhile)
{
    enum { LARGE = 3 };
    struct message question = {.kind = MESSAGE_TOKENIZE};
    uint64_t count;
    open_pool(NULL);
    client_generate(&client_a, 'h', "hush", NULL);
    ck_assert_int_eq(client_read(&client_a, 'h', &count, NULL), END_LENGTH);
    question.tokenize.has_text = true;
    question.tokenize.text = bytes_of_string(large_prompt("text"));
    for (; question.tokenize.ref < LARGE; question.tokenize.ref++)
        client_send(&client_a, &question);
    question.tokenize.text = BYTES_LITERAL("abc");
    client_send(&client_a, &question);
    ck_assert_uint_eq(client_expect(&client_a, MESSAGE_TOKENIZE_OK).tokenize_ok.ref, LARGE);
    client_generate(&client_a, 's', "speak", NULL);
    for (uint64_t ref = 0; ref < LARGE; ref++) {
        struct message answer = client_expect(&client_a, MESSAGE_TOKENIZE_OK);
        ck_assert_uint_eq(answer.tokenize_ok.ref, ref);
        ck_assert_uint_eq(answer.tokenize_ok.ids.n, ref == 0); /* it was there alone */
    }
    close_pool();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, admissions_evict_no_answer_that_was_not_read);
    tcase_add_test(tests, brief_requests_pass_large_ones_that_the_worker_has_not_taken);
    tcase_add_test(tests, a_request_that_one_worker_alone_could_take_holds_up_nobody);
    tcase_add_test(tests, what_waits_for_one_model_holds_up_no_other);
    tcase_add_test(tests, what_was_begun_goes_on_before_all_that_waits);
    tcase_add_test(tests, a_worker_has_one_large_question_and_answers_brief_ones_meanwhile);
    tcase_add_test(tests, a_session_with_one_request_does_not_wait_behind_all_of_another);
    tcase_add_test(tests, a_tenant_with_one_request_does_not_wait_behind_all_of_another);
    tcase_add_test(tests, a_session_that_makes_up_names_leaves_room_for_others);
    tcase_add_test(tests, one_session_does_not_fill_the_queue);
    tcase_add_test(tests, one_session_does_not_fill_the_journals_part_for_the_queue);
    tcase_add_test(tests, clients_that_ask_for_pages_and_read_none_hold_little);
}

int main(void)
{
    return run_tests("broker process: fairness", add);
}
