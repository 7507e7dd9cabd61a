/* SPDX-License-Identifier: MIT */
/* What a real quern-worker says of itself: registration, heartbeats, the board, refusals by name. */

#include "tests/integration/worker/scripted_broker.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files/rundir.h"

/* Listens until the last heartbeat says so many. */
static void wait_for_load(struct scripted *s, uint32_t active, uint32_t waiting)
{
    uint64_t until = clock_ns() + WAIT_MS * CLOCK_NS_PER_MS;
    do {
        ck_assert_msg(clock_ns() < until, "the last heartbeat says %u and %u", s->heartbeat.heartbeat.active,
                      s->heartbeat.heartbeat.waiting);
        ck_assert(said_nothing(s, 5));
    } while (s->heartbeats == 0 || s->heartbeat.heartbeat.active != active ||
             s->heartbeat.heartbeat.waiting != waiting);
}

static struct board_snapshot read_board(struct scripted *s)
{
    struct board_snapshot snapshot;
    ck_assert_int_eq(board_read(s->slot, &snapshot), 0);
    return snapshot;
}

START_TEST(registration_says_what_the_worker_can)
{
    struct scripted *s = scripted_new(ARGS("--slots", "3", "--kv-blocks", "40", "--ctx", "2000"));
    struct message hello = expect(s, MESSAGE_REGISTER);
    ck_assert_uint_eq(hello.register_.slots, 3);
    ck_assert_uint_eq(hello.register_.kv_blocks, 40);
    ck_assert_uint_eq(hello.register_.context, 40 * 32); /* what the cache holds of it */
    ck_assert_uint_eq(hello.register_.max_prompt, 40 * 32 - 1);
    ck_assert_uint_eq(hello.register_.digest.len, 16);
    ck_assert(bytes_equal(hello.register_.device, BYTES_LITERAL("null")));
    ck_assert_ptr_nonnull(memmem(hello.register_.model.data, hello.register_.model.len, "tiny", 4));
    ck_assert(!hello.register_.chat);
    ck_assert_uint_eq(hello.register_.proto.min, PROTO_VERSION_MIN);
    ck_assert_uint_eq(hello.register_.proto.max, PROTO_VERSION_MAX);
    expect(s, MESSAGE_REGISTER); /* said again until it is answered */
    scripted_free(s);
    s = scripted_new_with_template("{{ messages[0].content }}");
    ck_assert(expect(s, MESSAGE_REGISTER).register_.chat);
    scripted_free(s);
}
END_TEST

/* A field of /proc/PID/status, or -1. */
static long status_of(pid_t pid, const char *field)
{
    char path[64], line[256];
    long value = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, field, strlen(field)) == 0)
            value = strtol(line + strlen(field), NULL, 10);
    fclose(file);
    return value;
}

START_TEST(a_worker_that_serves_is_confined_unless_told_otherwise)
{
    static const char *const devices[] = {"cpu", "null"};
    for (int i = 0; i < 4; i++) {
        bool sandbox = i < 2;
        struct scripted *s =
            scripted_new(ARGS("--ctx", "512", "--device", devices[i % 2], sandbox ? NULL : "--no-sandbox"));
        handshake(s);
        bool confined = sandbox && SANDBOXED;
        ck_assert_int_eq(status_of(s->worker, "NoNewPrivs:"),
                         confined ? 1 : status_of(getpid(), "NoNewPrivs:"));
        ck_assert_int_eq(status_of(s->worker, "Seccomp:"), confined ? 2 : status_of(getpid(), "Seccomp:"));
        /* A container may have a filter of its own. */
        ck_assert_int_eq(status_of(s->worker, "Seccomp_filters:"),
                         status_of(getpid(), "Seccomp_filters:") + 2 * confined);
        scripted_free(s);
    }
}
END_TEST

START_TEST(heartbeats_and_board_tell_the_load)
{
    struct scripted *s = scripted_new(
        ARGS("--slots", "1", "--ctx", "8000000", "--kv-blocks", "250000", "--frame-us", "1000000"));
    handshake(s);
    wait_for_load(s, 0, 0);
    uint32_t kv_free = s->heartbeat.heartbeat.kv_free;
    ck_assert_uint_eq(kv_free, 250000);
    for (uint8_t id = 1; id <= 3; id++) {
        struct message assign = assignment(id, 100, 7900000);
        say(s, &assign);
    }
    wait_for_load(s, 1, 2);
    /* One that is being prepared waits too, with no tokens yet. */
    for (int i = 0; i < WAIT_MS / 5 && s->heartbeat.heartbeat.waiting_tokens != 200; i++)
        ck_assert(said_nothing(s, 5));
    ck_assert_uint_eq(s->heartbeat.heartbeat.waiting_tokens, 200);
    ck_assert_uint_lt(s->heartbeat.heartbeat.kv_free, kv_free);
    struct board_snapshot board = read_board(s);
    for (uint64_t until = clock_ns() + WAIT_MS * CLOCK_NS_PER_MS; board.tokens_per_s <= 100;) {
        ck_assert_msg(clock_ns() < until, "%g tokens/s are reported", board.tokens_per_s);
        usleep(10000);
        board = read_board(s);
    }
    ck_assert_uint_eq(board.active, 1);
    ck_assert_uint_eq(board.waiting, 2);
    ck_assert_uint_eq(board.slots, 1);
    ck_assert_uint_eq(board.kv_total, 250000);
    ck_assert_uint_lt(board.kv_free, 250000);
    ck_assert_uint_eq(board.incarnation, 3);
    ck_assert_uint_gt(board.step_started_ns, 0);
    ck_assert_double_lt(board.tokens_per_s, 1e8);
    uint64_t steps = atomic_load(&s->slot->steps);
    for (int i = 0; i < 1200 && atomic_load(&s->slot->steps) == steps; i++)
        usleep(50000); /* others may have the processor */
    ck_assert_uint_gt(atomic_load(&s->slot->steps), steps);
    struct message cancel = {.kind = MESSAGE_CANCEL};
    cancel.cancel.session.bytes[0] = 1;
    for (uint8_t id = 1; id <= 3; id++) {
        cancel.cancel.id.bytes[0] = id;
        say(s, &cancel);
    }
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(expect(s, MESSAGE_FINISHED).finished.end.reason, END_CANCELLED);
    wait_for_load(s, 0, 0);
    ck_assert_uint_eq(s->heartbeat.heartbeat.kv_free, kv_free);
    ck_assert_uint_gt(s->heartbeat.heartbeat.wseq, 0);
    const char *ready = strstr(worker_stderr(s), "ready: ");
    ck_assert_ptr_nonnull(ready);
    ck_assert_msg(!strstr(ready + 1, "ready: "), "ready is said once, not with each of %llu heartbeats: %s",
                  (unsigned long long)s->heartbeats, worker_stderr(s));
    ck_assert_int_eq(board.state, WORKER_READY);
    scripted_free(s);
}
END_TEST

START_TEST(a_prompt_in_preparation_counts_as_waiting)
{
    static char text[3000000];
    struct scripted *s = scripted_new(ARGS("--ctx", "1000000", "--kv-blocks", "32000"));
    memset(text, 'a', sizeof text);
    handshake(s);
    struct message assign = assignment(1, 1, 5);
    assign.assign.generation.prompt = (struct prompt){.form = PROMPT_TEXT, .text = {text, sizeof text}};
    for (uint8_t id = 1; id <= 4; id++) {
        assign.assign.id.bytes[0] = id;
        say(s, &assign);
    }
    /* Some heartbeats that wait to be read are of the time before. */
    for (int i = 0; i < WAIT_MS / 5 && s->heartbeat.heartbeat.waiting == 0; i++)
        ck_assert(said_nothing(s, 5));
    ck_assert_uint_ge(s->heartbeat.heartbeat.waiting, 1);
    scripted_free(s);
}
END_TEST

START_TEST(an_assignment_that_cannot_be_read_is_refused_under_its_id)
{
    struct scripted *s = scripted_new(NULL);
    struct buffer bytes = {0};
    struct message assign = assignment(9, 5, 5);
    handshake(s);
    ck_assert_int_eq(message_encode(&assign, &bytes), 0);
    uint8_t *key = memmem(bytes.data, bytes.len, "max_tokens", 10);
    ck_assert_ptr_nonnull(key);
    key[10] = 0xc0; /* nil is no number */
    say_bytes(s, bytes.data, bytes.len, false);
    struct message answer = expect(s, MESSAGE_ERROR);
    ck_assert(answer.error.has_id);
    ck_assert_uint_eq(answer.error.id.bytes[0], 9);
    ck_assert_int_eq(answer.error.error, PROTO_BAD_REQUEST);
    ck_assert_ptr_nonnull(memmem(answer.error.text.data, answer.error.text.len, "max_tokens", 10));
    buffer_deinit(&bytes);
    scripted_free(s);
}
END_TEST

START_TEST(a_frame_holds_512_ids_at_most)
{
    struct scripted *s = scripted_new(ARGS("--frame-us", "1000000"));
    struct frame frame;
    uint64_t ids = 0, most = 0;
    handshake(s);
    struct message assign = assignment(1, 5, 3000);
    say(s, &assign);
    do {
        ck_assert(next_frame(s, WAIT_MS, &frame));
        ck_assert_uint_eq(frame.seq, ids);
        ids += frame.ids.n;
        most = frame.ids.n > most ? frame.ids.n : most;
    } while (!frame.has_end);
    ck_assert_uint_eq(ids, 3000);
    ck_assert_uint_eq(most, 512);
    scripted_free(s);
}
END_TEST

START_TEST(times_are_told_and_the_queue_is_the_brokers)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    struct message assign = assignment(1, 5, 100);
    assign.assign.queue_us = 12500;
    say(s, &assign);
    struct message finished = expect(s, MESSAGE_FINISHED);
    ck_assert_double_eq_tol(finished.finished.end.timing.queue_ms, 12.5, 1e-6);
    ck_assert_double_gt(finished.finished.end.timing.prefill_ms, 0);
    ck_assert_double_lt(finished.finished.end.timing.prefill_ms, WAIT_MS);
    const struct timing *timing = &finished.finished.end.timing;
    ck_assert_double_gt(timing->prepare_ms, 0);
    ck_assert_double_gt(timing->wait_ms, 0);
    ck_assert_double_gt(timing->lookup_ms, 0);
    ck_assert_double_lt(timing->prepare_ms + timing->wait_ms + timing->lookup_ms, timing->prefill_ms);
    ck_assert_double_gt(finished.finished.end.timing.decode_ms, 0);
    ck_assert_double_lt(finished.finished.end.timing.decode_ms, WAIT_MS);
    ck_assert_uint_eq(finished.finished.end.usage.prompt_tokens, 5);
    ck_assert_uint_eq(finished.finished.end.usage.output_tokens, 100);
    scripted_free(s);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, a_worker_that_serves_is_confined_unless_told_otherwise);
    tcase_add_test(tests, registration_says_what_the_worker_can);
    tcase_add_test(tests, heartbeats_and_board_tell_the_load);
    tcase_add_test(tests, a_prompt_in_preparation_counts_as_waiting);
    tcase_add_test(tests, an_assignment_that_cannot_be_read_is_refused_under_its_id);
    tcase_add_test(tests, a_frame_holds_512_ids_at_most);
    tcase_add_test(tests, times_are_told_and_the_queue_is_the_brokers);
}

int main(void)
{
    return run_tests("worker reports", add);
}
