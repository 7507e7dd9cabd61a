/* SPDX-License-Identifier: MIT */
/* A real quern-worker with the null backend against a scripted broker: what PROTOCOL.md says of workers. */

#include "tests/integration/worker/scripted_broker.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "common/program.h"
#include "worker/convert/synth.h"

#define ARGS(...)                                                                                            \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

#define WINDOW 32768 /* frames without an acknowledgement */

/* One request as its frames told it. */
struct told {
    struct ids ids;
    struct buffer text;
    uint64_t frames, last_wseq;
    struct ending end;
    bool ended;
};

static void told_deinit(struct told *told)
{
    ids_deinit(&told->ids);
    buffer_deinit(&told->text);
}

/* Takes a frame in: it must continue where the last one ended. */
static void take_frame(struct told *told, const struct frame *frame)
{
    ck_assert(!told->ended);
    ck_assert_uint_eq(frame->seq, told->ids.len);
    ck_assert_uint_eq(frame->off, told->text.len);
    ids_append(&told->ids, frame->ids.items, frame->ids.n);
    buffer_append(&told->text, frame->text.data, frame->text.len);
    told->frames++;
    told->last_wseq = frame->wseq;
    told->ended = frame->has_end;
    if (frame->has_end)
        told->end = frame->end; /* its text is not looked at later */
}

/* Reads frames, of this request alone, to its end. */
static struct told read_request(struct scripted *s, uint8_t id)
{
    struct told told = {0};
    struct frame frame;
    while (!told.ended) {
        ck_assert_msg(next_frame(s, WAIT_MS, &frame), "no end of the request came");
        ck_assert_uint_eq(frame.id.bytes[0], id);
        ck_assert_uint_eq(s->topic[0], 1);
        ck_assert_uint_eq(s->topic[16], id);
        take_frame(&told, &frame);
    }
    return told;
}

static void ack(struct scripted *s, uint64_t wseq)
{
    struct message message = {.kind = MESSAGE_ACK};
    message.ack.wseq = wseq;
    say(s, &message);
}

/* A request served from assignment to `finished` shows that the worker is well. */
static void check_serves(struct scripted *s, uint8_t id)
{
    struct message assign = assignment(id, 5, 20);
    say(s, &assign);
    struct told told = read_request(s, id);
    struct message finished = expect(s, MESSAGE_FINISHED);
    ck_assert_int_eq(told.end.reason, END_LENGTH);
    ck_assert_uint_eq(told.ids.len, 20);
    ck_assert_uint_eq(finished.finished.count, 20);
    ck_assert_uint_eq(finished.finished.id.bytes[0], id);
    ck_assert_uint_eq(finished.finished.wseq, told.last_wseq);
    ck_assert_uint_eq(finished.finished.end.usage.prompt_tokens, 5);
    told_deinit(&told);
}

START_TEST(a_worker_is_ready_only_after_it_saw_the_subscription)
{
    struct scripted *s = scripted_new(NULL);
    struct message hello = expect(s, MESSAGE_REGISTER);
    ck_assert(bytes_equal(hello.register_.name, BYTES_LITERAL("worker-7")));
    ck_assert_uint_eq(hello.register_.incarnation, 3);
    ck_assert_uint_eq(hello.register_.pid, (uint32_t)s->worker);
    ck_assert(bytes_equal(hello.register_.stream, bytes_of_string(s->stream)));
    ck_assert_uint_eq(hello.register_.context, 4096);
    ck_assert_uint_eq(hello.register_.wseq, 0);
    struct message ok = {.kind = MESSAGE_REGISTER_OK};
    ok.register_ok.boot = 1;
    ok.register_ok.subscription.bytes[5] = 77;
    ok.register_ok.heartbeat_ms = 20;
    say(s, &ok);
    zmq_connect(s->sub, s->stream);
    zmq_setsockopt(s->sub, ZMQ_SUBSCRIBE, "somebody else's", 15);
    ck_assert(said_nothing(s, 300));
    ck_assert_uint_gt(s->heartbeats, 5);
    zmq_setsockopt(s->sub, ZMQ_SUBSCRIBE, &ok.register_ok.subscription, 16);
    ck_assert_uint_eq(expect(s, MESSAGE_READY).ready.incarnation, 3);
    struct board_snapshot snapshot;
    usleep(20000);
    ck_assert_int_eq(board_read(&s->board->slots[1], &snapshot), 0);
    ck_assert_int_eq(snapshot.state, WORKER_READY);
    ck_assert_uint_eq(snapshot.pid, (uint32_t)s->worker);
    ck_assert_str_eq(snapshot.device, "null");
    scripted_free(s);
}
END_TEST

START_TEST(a_request_comes_in_contiguous_frames_and_is_the_same_again)
{
    struct scripted *s = scripted_new(ARGS("--frame-us", "0"));
    handshake(s);
    struct message assign = assignment(1, 5, 200);
    say(s, &assign);
    struct told first = read_request(s, 1);
    ck_assert_uint_eq(first.ids.len, 200);
    ck_assert_uint_eq(first.frames, 200);
    ck_assert_uint_eq(first.last_wseq, 200);
    ck_assert_uint_gt(first.text.len, 199);
    expect(s, MESSAGE_FINISHED);
    assign.assign.id.bytes[0] = 2;
    say(s, &assign);
    struct told second = read_request(s, 2);
    ck_assert_mem_eq(first.ids.data, second.ids.data, 200 * sizeof *first.ids.data);
    expect(s, MESSAGE_FINISHED);
    struct board_snapshot snapshot;
    usleep(300000);
    ck_assert_int_eq(board_read(&s->board->slots[1], &snapshot), 0);
    ck_assert_uint_eq(snapshot.tokens, 400);
    ck_assert_uint_eq(snapshot.kv_free, snapshot.kv_total);
    ck_assert_uint_eq(snapshot.step_started_ns, 0);
    ck_assert_uint_ge(atomic_load(&s->board->slots[1].layers), 400);
    told_deinit(&first);
    told_deinit(&second);
    scripted_free(s);
}
END_TEST

START_TEST(fast_tokens_share_frames_and_none_waits_for_ever)
{
    struct scripted *s = scripted_new(ARGS("--frame-us", "50000"));
    handshake(s);
    struct message assign = assignment(1, 5, 3000);
    say(s, &assign);
    struct told told = read_request(s, 1);
    ck_assert_uint_eq(told.ids.len, 3000);
    ck_assert_uint_lt(told.frames, 300);
    told_deinit(&told);
    scripted_free(s);
}
END_TEST

START_TEST(text_stop_strings_and_logprobs_are_served)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    struct message assign = assignment(1, 5, 300);
    assign.assign.generation.prompt =
        (struct prompt){.form = PROMPT_TEXT, .text = BYTES_LITERAL("Once upon a time")};
    assign.assign.generation.logprobs = 2;
    say(s, &assign);
    struct frame frame;
    struct told whole = {0};
    while (!whole.ended) {
        ck_assert(next_frame(s, WAIT_MS, &frame));
        ck_assert_uint_eq(frame.logprobs.width, frame.ids.n ? 2 : 0);
        for (size_t i = 0; i < frame.ids.n; i++)
            ck_assert_int_eq(frame.logprobs.items[2 * i].id, frame.ids.items[i]);
        take_frame(&whole, &frame);
    }
    expect(s, MESSAGE_FINISHED);
    ck_assert_uint_gt(whole.end.usage.prompt_tokens, 2);
    ck_assert_uint_gt(whole.text.len, 40);
    const struct bytes stop = {whole.text.data + 20, 6};
    assign.assign.id.bytes[0] = 2;
    assign.assign.generation.logprobs = 0;
    assign.assign.generation.stop = (struct text_list){&stop, 1};
    say(s, &assign);
    struct told cut = read_request(s, 2);
    ck_assert_int_eq(cut.end.reason, END_STOP);
    ck_assert_uint_le(cut.text.len, 20);
    ck_assert_mem_eq(cut.text.data, whole.text.data, cut.text.len);
    told_deinit(&whole);
    told_deinit(&cut);
    scripted_free(s);
}
END_TEST

START_TEST(unacknowledged_frames_are_sent_again_as_they_were)
{
    struct scripted *s = scripted_new(ARGS("--frame-us", "0"));
    struct frame frame;
    handshake(s);
    struct message assign = assignment(1, 5, 50), resend = {.kind = MESSAGE_RESEND};
    say(s, &assign);
    struct told first = read_request(s, 1);
    expect(s, MESSAGE_FINISHED);
    resend.resend.wseq = 1;
    say(s, &resend);
    struct told again = read_request(s, 1);
    ck_assert_uint_eq(again.ids.len, 50);
    ck_assert_mem_eq(first.ids.data, again.ids.data, 50 * sizeof *first.ids.data);
    ack(s, 30);
    say(s, &resend);
    for (uint64_t wseq = 31; wseq <= 50; wseq++) {
        ck_assert(next_frame(s, WAIT_MS, &frame));
        ck_assert_uint_eq(frame.wseq, wseq);
    }
    ack(s, 50);
    say(s, &resend);
    ck_assert(!next_frame(s, 100, &frame));
    check_serves(s, 2);
    told_deinit(&first);
    told_deinit(&again);
    scripted_free(s);
}
END_TEST

START_TEST(at_a_full_window_no_token_is_made_until_an_acknowledgement)
{
    struct scripted *s = scripted_new(ARGS("--frame-us", "0", "--slots", "16"));
    struct frame frame;
    handshake(s);
    for (uint8_t id = 1; id <= 16; id++) {
        struct message assign = assignment(id, 5, 4000);
        say(s, &assign);
    }
    uint64_t frames = 0;
    while (next_frame(s, frames < WINDOW ? WAIT_MS : 300, &frame))
        ck_assert_uint_eq(frame.wseq, ++frames);
    ck_assert_uint_ge(frames, WINDOW);
    ck_assert_uint_lt(frames, WINDOW + 16);
    ck_assert(said_nothing(s, 50)); /* and it lives */
    ck_assert_uint_gt(s->heartbeats, 0);
    while (frames < 16 * 4000) {
        ack(s, frames);
        while (next_frame(s, 100, &frame))
            ck_assert_uint_eq(frame.wseq, ++frames);
    }
    for (int i = 0; i < 16; i++)
        ck_assert_uint_eq(expect(s, MESSAGE_FINISHED).finished.count, 4000);
    scripted_free(s);
}
END_TEST

START_TEST(a_cancel_ends_its_request_alone)
{
    /* A short window would end them by itself: the frames are large, so all 4000 tokens make few. */
    struct scripted *s = scripted_new(ARGS("--frame-us", "1000", "--ctx", "1000000", "--kv-blocks", "70000"));
    struct frame frame;
    struct told told[3] = {{{0}, {0}, 0, 0, {0}, false}};
    handshake(s);
    for (uint8_t id = 1; id <= 2; id++) {
        struct message assign = assignment(id, 5, 900000);
        say(s, &assign);
    }
    ck_assert(next_frame(s, WAIT_MS, &frame));
    take_frame(&told[frame.id.bytes[0]], &frame);
    struct message cancel = {.kind = MESSAGE_CANCEL};
    cancel.cancel.session.bytes[0] = 1;
    for (uint8_t id = 1; id <= 2; id++) {
        cancel.cancel.id.bytes[0] = id;
        say(s, &cancel);
        while (!told[id].ended) {
            ck_assert(next_frame(s, WAIT_MS, &frame));
            take_frame(&told[frame.id.bytes[0]], &frame);
            ack(s, frame.wseq);
        }
        ck_assert_int_eq(told[id].end.reason, END_CANCELLED);
        ck_assert(!told[3 - id].ended || id == 2);
        struct message finished = expect(s, MESSAGE_FINISHED);
        ck_assert_uint_eq(finished.finished.count, told[id].ids.len);
    }
    cancel.cancel.id.bytes[0] = 99; /* nobody's */
    say(s, &cancel);
    check_serves(s, 3);
    told_deinit(&told[1]);
    told_deinit(&told[2]);
    scripted_free(s);
}
END_TEST

START_TEST(on_a_real_device_a_long_prefill_can_be_cancelled_and_heartbeats_go_on)
{
    struct scripted *s = scripted_new(ARGS("--device", "cpu", "--threads", "1"));
    struct frame frame;
    handshake(s);
    struct message assign = assignment(1, 2000, 50), cancel = {.kind = MESSAGE_CANCEL};
    say(s, &assign);
    usleep(5000);
    cancel.cancel.session.bytes[0] = cancel.cancel.id.bytes[0] = 1;
    say(s, &cancel);
    ck_assert(next_frame(s, WAIT_MS, &frame));
    ck_assert(frame.has_end && frame.end.reason == END_CANCELLED);
    ck_assert_uint_eq(expect(s, MESSAGE_FINISHED).finished.count, 0);
    assign = assignment(2, 2000, 5);
    say(s, &assign);
    uint64_t heartbeats = s->heartbeats, layers = atomic_load(&s->board->slots[1].layers);
    struct told told = read_request(s, 2);
    ck_assert_uint_eq(told.ids.len, 5);
    expect(s, MESSAGE_FINISHED);
    ck_assert_uint_gt(s->heartbeats, heartbeats);
    ck_assert_uint_ge(atomic_load(&s->board->slots[1].layers), layers + 2 * (4 + 2000 / 512));
    told_deinit(&told);
    scripted_free(s);
}
END_TEST

START_TEST(loading_moves_the_counter_that_proves_progress)
{
    struct scripted *s = scripted_new(ARGS("--device", "cpu", "--threads", "2"));
    expect(s, MESSAGE_REGISTER);
    /* Seven matrices a layer, and the head. */
    ck_assert_uint_ge(atomic_load(&s->board->slots[1].layers), 7 * synth_shape_by_name("tiny")->n_layers + 1);
    scripted_free(s);
}
END_TEST

START_TEST(a_limit_that_nobody_gave_is_cut_to_what_the_prompt_leaves)
{
    static const struct {
        uint32_t n_prompt;
        uint64_t n_made;
    } cases[] = {{4000, 96}, {4095, 1}, {100, 256}};
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    for (uint8_t i = 0; i < 3; i++) {
        struct message assign = assignment(i, cases[i].n_prompt, 0);
        say(s, &assign);
        struct message finished = expect(s, MESSAGE_FINISHED);
        ck_assert_int_eq(finished.finished.end.reason, END_LENGTH);
        ck_assert_uint_eq(finished.finished.count, cases[i].n_made);
    }
    scripted_free(s);
}
END_TEST

START_TEST(what_cannot_be_served_ends_with_its_reason)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    const struct chat_message turn = {.role = BYTES_LITERAL("user"), .content = BYTES_LITERAL("hi")};
    const int32_t bad_id = 1 << 20;
    struct {
        struct message assign;
        enum proto_error error;
        const char *says;
    } cases[3] = {{assignment(1, 4000, 97), PROTO_TOO_LONG, "4096"},
                  {assignment(2, 5, 5), PROTO_BAD_REQUEST, "1048576"},
                  {assignment(3, 5, 5), PROTO_UNSUPPORTED, "text"}};
    cases[1].assign.assign.generation.prompt.ids = (struct id_list){&bad_id, 1};
    cases[2].assign.assign.generation.prompt = (struct prompt){.form = PROMPT_CHAT};
    cases[2].assign.assign.generation.prompt.chat.items = &turn;
    cases[2].assign.assign.generation.prompt.chat.n = 1;
    for (int i = 0; i < 3; i++) {
        struct frame frame;
        say(s, &cases[i].assign);
        ck_assert(next_frame(s, WAIT_MS, &frame));
        ck_assert(frame.has_end && frame.ids.n == 0 && frame.seq == 0);
        ck_assert_int_eq(frame.end.reason, END_ERROR);
        ck_assert_str_eq(proto_error_name(frame.end.error), proto_error_name(cases[i].error));
        ck_assert_ptr_nonnull(
            memmem(frame.end.text.data, frame.end.text.len, cases[i].says, strlen(cases[i].says)));
        struct message finished = expect(s, MESSAGE_FINISHED);
        ck_assert_uint_eq(finished.finished.count, 0);
        ck_assert_int_eq(finished.finished.end.error, cases[i].error);
    }
    check_serves(s, 9);
    scripted_free(s);
}
END_TEST

static struct message conversation(uint8_t id)
{
    static const struct chat_message turns[] = {
        {.role = BYTES_LITERAL("system"), .content = BYTES_LITERAL("Be brief.")},
        {.role = BYTES_LITERAL("user"), .content = BYTES_LITERAL("How are you?")}};
    struct message message = assignment(id, 1, 10);
    message.assign.generation.prompt = (struct prompt){.form = PROMPT_CHAT};
    message.assign.generation.prompt.chat.items = turns;
    message.assign.generation.prompt.chat.n = 2;
    return message;
}

START_TEST(a_conversation_goes_through_the_models_template)
{
    struct scripted *s = scripted_new_with_template(
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]");
    handshake(s);
    struct message assign = conversation(1);
    say(s, &assign);
    struct told told = read_request(s, 1);
    ck_assert_int_eq(told.end.reason, END_LENGTH);
    expect(s, MESSAGE_FINISHED);
    struct message ask = {.kind = MESSAGE_TOKENIZE};
    ask.tokenize.text = BYTES_LITERAL("[system]Be brief.[user]How are you?[assistant]");
    say(s, &ask);
    ck_assert_uint_eq(expect(s, MESSAGE_TOKENIZE_OK).tokenize_ok.ids.n, told.end.usage.prompt_tokens);
    told_deinit(&told);
    scripted_free(s);
}
END_TEST

START_TEST(tools_go_to_templates_that_know_them)
{
    for (int knows = 0; knows < 2; knows++) {
        struct scripted *s = scripted_new_with_template(
            knows ? "{{ tools | length }}<tool_call>{% for m in messages %}{{ m.content }}{% endfor %}"
                  : "{% for m in messages %}{{ m.content }}{% endfor %}");
        struct frame frame;
        handshake(s);
        struct message assign = conversation(1);
        assign.assign.generation.tools = BYTES_LITERAL("[{}, {}]");
        say(s, &assign);
        if (!knows) {
            ck_assert(next_frame(s, WAIT_MS, &frame));
            ck_assert_int_eq(frame.end.error, PROTO_UNSUPPORTED);
            scripted_free(s);
            continue;
        }
        struct told told = read_request(s, 1);
        ck_assert_int_eq(told.end.reason, END_LENGTH);
        expect(s, MESSAGE_FINISHED);
        struct message ask = {.kind = MESSAGE_TOKENIZE};
        ask.tokenize.text = BYTES_LITERAL("2<tool_call>Be brief.How are you?");
        say(s, &ask);
        ck_assert_uint_eq(expect(s, MESSAGE_TOKENIZE_OK).tokenize_ok.ids.n, told.end.usage.prompt_tokens);
        struct message back = {.kind = MESSAGE_DETOKENIZE};
        const int32_t ids[] = {1, 'a' + 3};
        back.detokenize.ids = (struct id_list){ids, 2};
        back.detokenize.special = true;
        say(s, &back);
        struct bytes text = expect(s, MESSAGE_DETOKENIZE_OK).detokenize_ok.text;
        ck_assert_msg(bytes_equal(text, BYTES_LITERAL("<s>a")), "%.*s", (int)text.len,
                      (const char *)text.data);
        told_deinit(&told);
        scripted_free(s);
    }
}
END_TEST

START_TEST(a_template_that_refuses_or_does_not_compile_costs_only_conversations)
{
    static const struct {
        const char *source, *says;
        enum proto_error error;
    } cases[] = {{"{{ raise_exception('only \xff one turn') }}", "one turn", PROTO_BAD_REQUEST},
                 {"{% for %}", "cannot be used", PROTO_UNSUPPORTED}};
    for (int i = 0; i < 2; i++) {
        struct scripted *s = scripted_new_with_template(cases[i].source);
        struct frame frame;
        handshake(s);
        struct message assign = conversation(1);
        say(s, &assign);
        ck_assert(next_frame(s, WAIT_MS, &frame));
        ck_assert(frame.has_end);
        ck_assert_str_eq(proto_error_name(frame.end.error), proto_error_name(cases[i].error));
        ck_assert_ptr_nonnull(
            memmem(frame.end.text.data, frame.end.text.len, cases[i].says, strlen(cases[i].says)));
        expect(s, MESSAGE_FINISHED);
        check_serves(s, 2);
        scripted_free(s);
    }
}
END_TEST

START_TEST(an_assignment_said_twice_is_one_generation_and_a_newer_epoch_replaces_it)
{
    struct scripted *s = scripted_new(ARGS("--ctx", "1000000", "--kv-blocks", "70000"));
    struct frame frame;
    handshake(s);
    struct message old = assignment(1, 5, 900000);
    say(s, &old);
    say(s, &old);
    ck_assert(next_frame(s, WAIT_MS, &frame));
    ck_assert_uint_eq(frame.epoch.move, 0);
    struct message newer = assignment(1, 5, 30);
    newer.assign.epoch.move = 1;
    say(s, &newer);
    do
        ck_assert(next_frame(s, WAIT_MS, &frame));
    while (frame.epoch.move == 0);
    struct told told = {0};
    take_frame(&told, &frame);
    while (!told.ended) {
        ck_assert(next_frame(s, WAIT_MS, &frame));
        ck_assert_uint_eq(frame.epoch.move, 1); /* the old one is silent */
        take_frame(&told, &frame);
    }
    ck_assert_uint_eq(told.ids.len, 30);
    ck_assert_uint_eq(expect(s, MESSAGE_FINISHED).finished.epoch.move, 1);
    ck_assert(said_nothing(s, 100));
    check_serves(s, 2);
    told_deinit(&told);
    scripted_free(s);
}
END_TEST

START_TEST(noise_from_the_broker_harms_nothing)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    uint8_t bytes[300];
    srand(4);
    for (int i = 0; i < 300; i++) {
        size_t len = (size_t)rand() % sizeof bytes;
        for (size_t k = 0; k < len; k++)
            bytes[k] = (uint8_t)rand();
        say_bytes(s, bytes, len, i % 5 == 0);
    }
    say_bytes(s, "\x81\xa1k\xa7unknown", 11, false); /* a map of one: no such kind */
    struct message strange = {.kind = MESSAGE_WELCOME};
    say(s, &strange); /* a kind, but none that is said to workers */
    struct message ping = {.kind = MESSAGE_PING};
    ping.ping.ref = 123;
    say(s, &ping);
    ck_assert_uint_eq(expect(s, MESSAGE_PONG).pong.ref, 123);
    check_serves(s, 1);
    scripted_free(s);
}
END_TEST

START_TEST(text_is_tokenized_for_clients)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    struct message ask = {.kind = MESSAGE_TOKENIZE};
    ask.tokenize.ref = 7;
    ask.tokenize.text = BYTES_LITERAL("Hello there");
    say(s, &ask);
    struct message answer = expect(s, MESSAGE_TOKENIZE_OK);
    ck_assert_uint_eq(answer.tokenize_ok.ref, 7);
    ck_assert_uint_gt(answer.tokenize_ok.ids.n, 1);
    scripted_free(s);
}
END_TEST

START_TEST(of_those_that_wait_for_a_slot_the_highest_priority_starts_first)
{
    struct scripted *s = scripted_new(ARGS("--device", "cpu", "--slots", "1"));
    struct told low = {0}, high = {0};
    struct frame frame;
    handshake(s);
    /* A prefill during which the others arrive. */
    struct message first = assignment(1, 3500, 20), second = assignment(2, 5, 300),
                   third = assignment(3, 5, 20);
    second.assign.generation.priority = -8;
    third.assign.generation.priority = 8;
    say(s, &first);
    say(s, &second);
    say(s, &third);
    while (!high.ended) {
        ck_assert(next_frame(s, WAIT_MS, &frame));
        if (frame.id.bytes[0] == 2)
            take_frame(&low, &frame);
        else if (frame.id.bytes[0] == 3)
            take_frame(&high, &frame);
    }
    ck_assert_uint_eq(low.ids.len, 0);
    told_deinit(&low);
    told_deinit(&high);
    scripted_free(s);
}
END_TEST

START_TEST(a_worker_that_the_broker_does_not_know_registers_again_and_keeps_its_frames)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    struct message assign = assignment(1, 5, 40);
    say(s, &assign);
    struct told first = read_request(s, 1);
    expect(s, MESSAGE_FINISHED);
    struct message unknown = {.kind = MESSAGE_ERROR};
    unknown.error.error = PROTO_HELLO_REQUIRED;
    unknown.error.text = BYTES_LITERAL("register first");
    say(s, &unknown);
    ck_assert_uint_eq(expect(s, MESSAGE_REGISTER).register_.wseq, first.last_wseq);
    struct message ok = {.kind = MESSAGE_REGISTER_OK};
    ok.register_ok.boot = 2;
    ok.register_ok.heartbeat_ms = 50;
    say(s, &ok);
    expect(s, MESSAGE_READY);
    struct message resend = {.kind = MESSAGE_RESEND};
    resend.resend.wseq = 1;
    say(s, &resend);
    struct told again = read_request(s, 1);
    ck_assert_uint_eq(again.ids.len, 40);
    told_deinit(&first);
    told_deinit(&again);
    scripted_free(s);
}
END_TEST

/* ---- ends ---- */

static void wait_for_state(struct scripted *s, enum worker_state state)
{
    struct board_snapshot snapshot = {0};
    for (int ms = 0; ms < WAIT_MS && snapshot.state != state; ms++) {
        usleep(1000);
        board_read(&s->board->slots[1], &snapshot);
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
    usleep(50000);
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
    assign.assign.output = (struct id_list){part.ids.data, part.ids.len};
    assign.assign.off = part.text.len;
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
    while (next_frame(s, 300, &frame))
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
    ck_assert_int_eq(worker_status(s), PROGRAM_EXIT_PERMANENT);
    const char *said = worker_stderr(s);
    ck_assert_ptr_nonnull(strstr(said, "abacus"));
    ck_assert_ptr_eq(strchr(said, '\n'), said + strlen(said) - 1);
    struct board_snapshot snapshot;
    ck_assert_int_eq(board_read(&s->board->slots[1], &snapshot), 0);
    ck_assert_int_eq(snapshot.state, WORKER_FAILED);
    scripted_free(s);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_worker_is_ready_only_after_it_saw_the_subscription);
    tcase_add_test(tests, a_request_comes_in_contiguous_frames_and_is_the_same_again);
    tcase_add_test(tests, fast_tokens_share_frames_and_none_waits_for_ever);
    tcase_add_test(tests, text_stop_strings_and_logprobs_are_served);
    tcase_add_test(tests, unacknowledged_frames_are_sent_again_as_they_were);
    tcase_add_test(tests, at_a_full_window_no_token_is_made_until_an_acknowledgement);
    tcase_add_test(tests, a_cancel_ends_its_request_alone);
    tcase_add_test(tests, on_a_real_device_a_long_prefill_can_be_cancelled_and_heartbeats_go_on);
    tcase_add_test(tests, loading_moves_the_counter_that_proves_progress);
    tcase_add_test(tests, a_limit_that_nobody_gave_is_cut_to_what_the_prompt_leaves);
    tcase_add_test(tests, what_cannot_be_served_ends_with_its_reason);
    tcase_add_test(tests, a_conversation_goes_through_the_models_template);
    tcase_add_test(tests, tools_go_to_templates_that_know_them);
    tcase_add_test(tests, a_template_that_refuses_or_does_not_compile_costs_only_conversations);
    tcase_add_test(tests, an_assignment_said_twice_is_one_generation_and_a_newer_epoch_replaces_it);
    tcase_add_test(tests, noise_from_the_broker_harms_nothing);
    tcase_add_test(tests, text_is_tokenized_for_clients);
    tcase_add_test(tests, of_those_that_wait_for_a_slot_the_highest_priority_starts_first);
    tcase_add_test(tests, a_worker_that_the_broker_does_not_know_registers_again_and_keeps_its_frames);
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
    return run_tests("worker", add);
}
