/* SPDX-License-Identifier: MIT */
/* How a real quern-worker ends: told by a signal or by its broker, handing over what runs, left alone, or not
 * even begun. */

#include "tests/integration/worker/told.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/program/program.h"

static void wait_for_state(struct scripted *s, enum worker_state state)
{
    struct board_snapshot snapshot = {0};
    for (int ms = 0; ms < WAIT_MS && snapshot.state != state; ms++) {
        usleep(1000);
        board_read(s->slot, &snapshot);
    }
    ck_assert_str_eq(worker_state_name(snapshot.state), worker_state_name(state));
}

START_TEST(sigterm_finishes_what_runs_refuses_more_and_ends_with_0_once_all_is_acknowledged)
{
    struct scripted *s = scripted_new(ARGS("--frame-us", "0"));
    struct frame frame;
    handshake(s);
    for (uint8_t id = 1; id <= 12; id++) { /* more than the window: it cannot end by itself */
        struct message assign = assignment(id, 5, 4000);
        say(s, &assign);
    }
    uint64_t frames = 0;
    int ended = 0, refused = 0;
    while (next_frame(s, frames < WINDOW ? WAIT_MS : 300, &frame)) {
        frames++;
        ended += frame.has_end;
    }
    ck_assert_int_lt(ended, 12);
    kill(s->worker, SIGTERM);
    wait_for_state(s, WORKER_DRAINING);
    struct message late = assignment(50, 5, 5);
    say(s, &late);
    while (ended + refused < 13) {
        ack(s, frames);
        while (next_frame(s, 50, &frame)) {
            frames++;
            ended += frame.has_end && frame.end.reason == END_LENGTH;
            refused += frame.has_end && frame.end.reason == END_ERROR && frame.end.error == PROTO_DRAINING;
        }
    }
    ck_assert_int_eq(refused, 1);
    ck_assert_uint_eq(frames, 12 * 4000 + 1);
    ack(s, frames);
    ck_assert_int_eq(worker_status(s), 0);
    scripted_free(s);
}
END_TEST

START_TEST(a_second_sigterm_ends_at_once)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    struct message assign = assignment(1, 5, 4000);
    say(s, &assign);
    struct told told = read_request(s, 1); /* never acknowledged: a drain would wait */
    kill(s->worker, SIGTERM);
    wait_for_state(s, WORKER_DRAINING); /* two that wait for it are one */
    kill(s->worker, SIGTERM);
    ck_assert_int_eq(worker_status(s), 1);
    told_deinit(&told);
    scripted_free(s);
}
END_TEST

START_TEST(drain_by_message_ends_with_0)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    struct message drain = {.kind = MESSAGE_DRAIN};
    say(s, &drain);
    ck_assert_int_eq(worker_status(s), 0);
    scripted_free(s);
}
END_TEST

/* Reads what was made of request `id` before it is given back, a frame at least, and that it is. Frames of
 * others are passed over. */
static struct told read_return(struct scripted *s, uint8_t id)
{
    struct message drain = {.kind = MESSAGE_DRAIN, .drain = {.hand_over = true}};
    struct told told = {0};
    struct frame frame;
    while (!told.ended) {
        ck_assert_msg(next_frame(s, WAIT_MS, &frame), "it was not given back");
        bool first = told.frames == 0;
        if (frame.id.bytes[0] == id)
            take_frame(&told, &frame);
        if (first && told.frames == 1)
            say(s, &drain);
    }
    ck_assert_int_eq(frame.end.reason, END_ERROR);
    ck_assert_int_eq(frame.end.error, PROTO_DRAINING);
    ck_assert_uint_eq(frame.ids.n, 0);
    ck_assert_uint_eq(frame.text.len, 0);
    return told;
}

#define LONG 50000 /* tokens: it is not at its end when it is to be given back */

START_TEST(what_is_handed_over_can_be_gone_on_with_as_if_nothing_had_happened)
{
    struct scripted *s = scripted_new(ARGS("--slots", "2", "--ctx", "200000", "--kv-blocks", "20000"));
    struct message assign = assignment(1, 5, LONG), waits = assignment(2, 5, LONG),
                   third = assignment(3, 5, LONG);
    assign.assign.generation.sampling.temperature = 1;
    handshake(s);
    say(s, &assign);
    say(s, &waits);
    say(s, &third); /* has no slot */
    struct told part = read_return(s, 1);
    ck_assert_uint_lt(part.ids.len, LONG);
    int others = 0;
    for (struct frame frame; others < 2;) {
        ck_assert(next_frame(s, WAIT_MS, &frame));
        others += frame.has_end && frame.end.error == PROTO_DRAINING;
        ack(s, frame.wseq);
    }
    ck_assert_int_eq(worker_status(s), 0);
    scripted_free(s);

    s = scripted_new(ARGS("--ctx", "200000", "--kv-blocks", "20000"));
    handshake(s);
    say(s, &assign);
    struct told whole = read_request(s, 1);
    ck_assert_uint_eq(whole.ids.len, LONG);
    assign.assign.epoch.move = 1;
    assign.assign.generation.output = (struct id_list){part.ids.data, part.ids.len};
    assign.assign.generation.off = part.text.len;
    say(s, &assign);
    while (!part.ended || part.ids.len < LONG) {
        struct frame frame;
        part.ended = false;
        ck_assert(next_frame(s, WAIT_MS, &frame));
        take_frame(&part, &frame);
    }
    ck_assert_uint_eq(part.ids.len, whole.ids.len);
    ck_assert_mem_eq(part.ids.data, whole.ids.data, whole.ids.len * sizeof *whole.ids.data);
    ck_assert_uint_eq(part.text.len, whole.text.len);
    ck_assert_mem_eq(part.text.data, whole.text.data, whole.text.len);
    told_deinit(&part);
    told_deinit(&whole);
    scripted_free(s);
}
END_TEST

START_TEST(a_worker_that_is_told_to_end_by_a_signal_tells_its_broker)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    struct message assign = assignment(1, 5, 4000);
    say(s, &assign);
    struct told told = read_request(s, 1); /* not acknowledged: it stays for that */
    ck_assert(!s->heartbeat.heartbeat.draining);
    kill(s->worker, SIGTERM);
    for (int i = 0; i < WAIT_MS / 100 && !s->heartbeat.heartbeat.draining; i++)
        said_nothing(s, 100);
    ck_assert(s->heartbeat.heartbeat.draining);
    ack(s, told.last_wseq);
    ck_assert_int_eq(worker_status(s), 0);
    told_deinit(&told);
    scripted_free(s);
}
END_TEST

START_TEST(an_orphan_ends_even_with_a_full_window)
{
    struct scripted *s = scripted_new(ARGS("--orphan-s", "1", "--frame-us", "0"));
    handshake(s);
    check_serves(s, 1);
    s->mute = true;
    for (uint8_t id = 2; id <= 12; id++) {
        struct message assign = assignment(id, 5, 4000);
        say(s, &assign);
    }
    struct frame frame;
    uint64_t frames = 0;
    while (next_frame(s, frames == 0 ? WAIT_MS : 300, &frame))
        frames++;
    ck_assert_uint_gt(frames, 0);
    ck_assert_int_eq(worker_status(s), 0);
    scripted_free(s);
}
END_TEST

START_TEST(wrong_arguments_are_told_with_status_2)
{
    struct scripted *s = scripted_new(ARGS("--slots", "none"));
    ck_assert_int_eq(worker_status(s), 2);
    ck_assert_ptr_nonnull(strstr(worker_stderr(s), "none"));
    scripted_free(s);
}
END_TEST

START_TEST(a_bad_model_or_device_is_permanent_and_says_why_in_one_line)
{
    struct scripted *s = scripted_new(ARGS("--device", "abacus"));
    ck_assert_int_eq(worker_status(s), PROGRAM_EXIT_USAGE); /* as permanent: no such name in any build */
    const char *said = worker_stderr(s);
    ck_assert_ptr_nonnull(strstr(said, "abacus"));
    ck_assert_ptr_eq(strchr(said, '\n'), said + strlen(said) - 1);
    struct board_snapshot snapshot;
    ck_assert_int_eq(board_read(s->slot, &snapshot), 0);
    ck_assert_int_eq(snapshot.state, WORKER_FAILED);
    scripted_free(s);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, sigterm_finishes_what_runs_refuses_more_and_ends_with_0_once_all_is_acknowledged);
    tcase_add_test(tests, a_second_sigterm_ends_at_once);
    tcase_add_test(tests, drain_by_message_ends_with_0);
    tcase_add_test(tests, what_is_handed_over_can_be_gone_on_with_as_if_nothing_had_happened);
    tcase_add_test(tests, a_worker_that_is_told_to_end_by_a_signal_tells_its_broker);
    tcase_add_test(tests, an_orphan_ends_even_with_a_full_window);
    tcase_add_test(tests, wrong_arguments_are_told_with_status_2);
    tcase_add_test(tests, a_bad_model_or_device_is_permanent_and_says_why_in_one_line);
}

int main(void)
{
    return run_tests("endings", add);
}
