/* SPDX-License-Identifier: MIT */
/* Prompts that take long to become ids, in a real quern-worker: whom they may hold up, and how they end. */

#include "tests/integration/worker/scripted_broker.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "worker/prepare/prepare.h"

#define LARGE (4000 * 1000) /* bytes: about the largest message; half a second and more */

/* A context in which a large text could fit, as far as can be told without splitting it. */
static const char *const *const large_context = ARGS("--ctx", "1000000", "--kv-blocks", "70000");

/* The largest text; shorter where a sanitizer makes it take longer. */
static struct bytes large_text(void)
{
    static char text[LARGE];
    static const char words[] = "the quick brown fox 0123 jumps over lazy dogs, ";
    const char *scale = getenv("QUERN_TEST_SCALE");
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = words[i % (sizeof words - 1)];
    return (struct bytes){text, (size_t)((double)sizeof text * (scale ? atof(scale) : 1))};
}

static struct message text_assignment(uint8_t id, struct bytes text, uint32_t max_tokens)
{
    struct message message = assignment(id, 1, max_tokens);
    message.assign.generation.prompt = (struct prompt){.form = PROMPT_TEXT, .text = text};
    return message;
}

static void say_cancel(struct scripted *s, uint8_t id)
{
    struct message cancel = {.kind = MESSAGE_CANCEL};
    cancel.cancel.session.bytes[0] = 1;
    cancel.cancel.id.bytes[0] = id;
    say(s, &cancel);
}

/* The next last frame of a request, others aside. */
static struct frame next_end(struct scripted *s)
{
    struct frame frame;
    do
        ck_assert_msg(next_frame(s, WAIT_MS, &frame), "no request ends: %s", worker_stderr(s));
    while (!frame.has_end);
    return frame;
}

static uint64_t progress_of(struct scripted *s)
{
    const struct board_slot *slot = s->slot;
    return atomic_load(&slot->layers) + atomic_load(&slot->steps);
}

/* Acknowledges frames and watches the board, as a supervisor does, until so many answers have come; the
 * longest time without progress. The request that runs is made again should it end before. */
static uint64_t longest_standstill(struct scripted *s, int answers, struct message *running)
{
    uint64_t progress = progress_of(s), since = clock_ns(), longest = 0;
    struct message ack = {.kind = MESSAGE_ACK};
    while (answers > 0) {
        struct frame frame;
        while (next_frame(s, 0, &frame)) {
            ack.ack.wseq = frame.wseq;
            if (!frame.has_end)
                continue;
            ck_assert_int_eq(frame.end.reason, END_LENGTH);
            running->assign.id.bytes[0]++;
            say(s, running);
        }
        say(s, &ack);
        answers -= !said_nothing(s, 1);
        uint64_t now = clock_ns(), done = progress_of(s);
        longest = now - since > longest ? now - since : longest;
        ck_assert_msg(now - since < WAIT_MS * CLOCK_NS_PER_MS, "it stands for ever");
        if (done != progress) {
            progress = done;
            since = now;
        }
    }
    return longest;
}

START_TEST(large_texts_stop_no_request_that_runs)
{
    struct scripted *s = scripted_new(
        ARGS("--device", "cpu", "--threads", "1", "--ctx", "200000", "--kv-blocks", "7000", "--slots", "16"));
    handshake(s);
    struct message running = assignment(1, 5, 190000), ask = {.kind = MESSAGE_TOKENIZE};
    struct frame frame;
    say(s, &running);
    ck_assert(next_frame(s, WAIT_MS, &frame));
    ask.tokenize.has_text = true;
    ask.tokenize.text = large_text();
    uint64_t begun = clock_ns();
    for (int i = 0; i < 8; i++)
        say(s, &ask);
    uint64_t standstill = longest_standstill(s, 8, &running), whole = clock_ns() - begun;
    ck_assert_uint_lt(standstill,
                      whole / 3); /* nearly the whole, were they one after the other in the loop */
    scripted_free(s);
}
END_TEST

/* Messages between the two reach the worker in one go, however slow this process is to say them. */
static void hold(struct scripted *s)
{
    ck_assert_int_eq(kill(s->worker, SIGSTOP), 0);
}

static void release(struct scripted *s)
{
    ck_assert_int_eq(kill(s->worker, SIGCONT), 0);
}

START_TEST(a_short_prompt_does_not_wait_for_a_row_of_long_ones)
{
    struct scripted *s = scripted_new(large_context);
    int place[9] = {0};
    handshake(s);
    hold(s);
    for (uint8_t id = 1; id <= 6; id++) {
        struct message large = text_assignment(id, large_text(), 5);
        say(s, &large);
    }
    struct message brief = text_assignment(7, BYTES_LITERAL("Hello there"), 5), ids = assignment(8, 5, 5);
    say(s, &brief);
    say(s, &ids);
    release(s);
    for (int i = 1; i <= 8; i++)
        place[next_end(s).id.bytes[0]] = i;
    ck_assert_int_le(place[8], 3); /* ids need no preparation: only what was done when they came is before */
    ck_assert_int_le(place[7], 4); /* and what was being prepared */
    scripted_free(s);
}
END_TEST

START_TEST(a_prompt_can_be_cancelled_while_it_waits_and_while_it_is_prepared)
{
    struct scripted *s = scripted_new(large_context);
    handshake(s);
    for (uint8_t id = 1; id <= 12; id++) {
        struct message large = text_assignment(id, large_text(), 5);
        say(s, &large);
    }
    usleep(20000); /* the first is being prepared */
    for (uint8_t id = 12; id >= 1; id--)
        say_cancel(s, id);
    for (int i = 0; i < 12; i++) {
        struct frame end = next_end(s);
        struct message finished = expect(s, MESSAGE_FINISHED);
        ck_assert_uint_eq(finished.finished.id.bytes[0], end.id.bytes[0]);
        ck_assert_int_eq(finished.finished.end.reason, end.end.reason);
        /* On a slow machine the first ones may have been done, or begun, before the cancel came. */
        if (end.id.bytes[0] > 4) {
            ck_assert_int_eq(end.end.reason, END_CANCELLED);
            ck_assert_uint_eq(finished.finished.count, 0);
        }
    }
    struct message brief = text_assignment(20, BYTES_LITERAL("Hello there"), 5);
    say(s, &brief);
    ck_assert_int_eq(next_end(s).end.reason, END_LENGTH);
    ck_assert_uint_eq(expect(s, MESSAGE_FINISHED).finished.count, 5);
    ck_assert(said_nothing(s, 100));
    scripted_free(s);
}
END_TEST

START_TEST(a_deadline_holds_for_a_prompt_that_waits_to_be_prepared)
{
    struct scripted *s = scripted_new(large_context);
    handshake(s);
    hold(s);
    for (uint8_t id = 1; id <= 8; id++) {
        struct message large = text_assignment(id, large_text(), 5);
        large.assign.deadline_left_ms = id == 8 ? 50 : 0;
        say(s, &large);
    }
    release(s);
    struct frame end = next_end(s);
    while (end.id.bytes[0] != 8) {
        ck_assert_uint_le(end.id.bytes[0], 4); /* done before it came */
        end = next_end(s);
    }
    ck_assert_int_eq(end.end.reason, END_DEADLINE);
    scripted_free(s);
}
END_TEST

/* Four prompts, of which the first holds up the others until all are there: at which place each ended. */
static void prepare_by_priority(struct scripted *s, uint8_t first, int ret_place[4])
{
    static const int32_t priorities[] = {0, 0, -8, 8};
    hold(s);
    for (uint8_t id = 0; id < 4; id++) {
        struct bytes text = large_text();
        text.len /= id == 0 ? 1 : 16;
        struct message assign = text_assignment(first + id, text, 1);
        assign.assign.generation.priority = priorities[id];
        say(s, &assign);
    }
    release(s);
    for (int i = 0; i < 4; i++)
        ret_place[next_end(s).id.bytes[0] - first] = i;
}

START_TEST(the_highest_priority_is_prepared_first)
{
    struct scripted *s = scripted_new(large_context);
    int place[4] = {0};
    handshake(s);
    /* On a busy machine the first may be done before the last has come. When the first ends hangs on the time
     * of its steps, too. */
    for (uint8_t round = 0; round < 5 && !(place[3] < place[1] && place[1] < place[2]); round++)
        prepare_by_priority(s, round * 4, place);
    ck_assert_int_lt(place[3], place[1]);
    ck_assert_int_lt(place[1], place[2]);
    scripted_free(s);
}
END_TEST

START_TEST(a_newer_attempt_replaces_one_that_is_being_prepared)
{
    struct scripted *s = scripted_new(large_context);
    handshake(s);
    struct message old = text_assignment(1, large_text(), 5), newer = assignment(1, 5, 30);
    newer.assign.epoch.move = 1;
    say(s, &old);
    usleep(20000);
    say(s, &newer);
    struct frame end = next_end(s);
    ck_assert_uint_eq(end.epoch.move, 1);
    ck_assert_int_eq(end.end.reason, END_LENGTH);
    ck_assert_uint_eq(expect(s, MESSAGE_FINISHED).finished.epoch.move, 1);
    struct message brief = text_assignment(2, BYTES_LITERAL("Hello there"), 5);
    say(s, &brief); /* behind the old one's preparation */
    ck_assert_uint_eq(next_end(s).id.bytes[0], 2);
    ck_assert_uint_eq(expect(s, MESSAGE_FINISHED).finished.id.bytes[0], 2);
    ck_assert(said_nothing(s, 100));
    scripted_free(s);
}
END_TEST

START_TEST(a_drain_waits_for_prompts_and_texts_in_preparation)
{
    struct scripted *s = scripted_new(large_context);
    handshake(s);
    struct bytes some = large_text();
    some.len /= 16;
    struct message large = text_assignment(1, some, 5), ask = {.kind = MESSAGE_TOKENIZE},
                   drain = {.kind = MESSAGE_DRAIN}, ack = {.kind = MESSAGE_ACK};
    ask.tokenize.ref = 77;
    ask.tokenize.has_text = true;
    ask.tokenize.text = large_text();
    say(s, &large);
    say(s, &ask);
    say(s, &drain);
    struct frame end = next_end(s);
    ck_assert_int_eq(end.end.reason, END_LENGTH);
    ck_assert_uint_gt(end.end.usage.prompt_tokens, 5000);
    ck_assert_double_gt(end.end.timing.prefill_ms, 1);
    ack.ack.wseq = end.wseq;
    ck_assert_uint_eq(expect(s, MESSAGE_FINISHED).finished.count, 5);
    struct message answer = expect(s, MESSAGE_ERROR); /* more ids than one message holds */
    ck_assert_uint_eq(answer.error.ref, 77);
    ck_assert_int_eq(answer.error.error, PROTO_TOO_LONG);
    say(s, &ack);
    ck_assert_int_eq(worker_status(s), 0);
    scripted_free(s);
}
END_TEST

START_TEST(more_texts_than_the_queue_holds_are_refused_by_name)
{
    struct scripted *s = scripted_new(large_context);
    handshake(s);
    struct message ask = {.kind = MESSAGE_TOKENIZE};
    ask.tokenize.has_text = true;
    ask.tokenize.text = large_text();
    const uint64_t n = PREPARE_MOST_BYTES / ask.tokenize.text.len + 8;
    for (uint64_t ref = 1; ref <= n; ref++) {
        ask.tokenize.ref = ref;
        say(s, &ask);
    }
    uint32_t refused = 0;
    for (uint64_t i = 0; i < n && refused == 0; i++) {
        struct message answer = expect(s, MESSAGE_ERROR);
        refused += answer.error.error == PROTO_OVERLOADED;
        ck_assert(answer.error.error == PROTO_OVERLOADED || answer.error.error == PROTO_TOO_LONG);
    }
    ck_assert_uint_eq(refused, 1);
    struct message ids = assignment(1, 5, 5); /* and it serves what needs none */
    say(s, &ids);
    ck_assert_int_eq(next_end(s).end.reason, END_LENGTH);
    scripted_free(s);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, large_texts_stop_no_request_that_runs);
    tcase_add_test(tests, a_prompt_can_be_cancelled_while_it_waits_and_while_it_is_prepared);
    tcase_add_test(tests, a_newer_attempt_replaces_one_that_is_being_prepared);
    tcase_add_test(tests, a_drain_waits_for_prompts_and_texts_in_preparation);
    if (test_is_for_races())
        return;
    tcase_add_test(tests, a_short_prompt_does_not_wait_for_a_row_of_long_ones);
    tcase_add_test(tests, a_deadline_holds_for_a_prompt_that_waits_to_be_prepared);
    tcase_add_test(tests, the_highest_priority_is_prepared_first);
    tcase_add_test(tests, more_texts_than_the_queue_holds_are_refused_by_name);
}

int main(void)
{
    return run_tests("worker preparation", add);
}
