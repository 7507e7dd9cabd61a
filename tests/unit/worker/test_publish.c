/* SPDX-License-Identifier: MIT */
/* When what requests make leaves in frames. The stream has no socket: what was published is what its window
 * keeps. */

#include "tests/unit/run.h"
#include "tests/unit/text/tokenizer/vocabularies.h"
#include "common/clock.h"
#include "worker/publish.h"

#include <string.h>

#define FRAME_US 1000
#define FRAME_NS (FRAME_US * 1000ull)
#define SHORT_NS 8000 /* of a step that makes no frame due */
#define START_NS (100 * FRAME_NS)
#define MANY     500
#define WAIT_NS                                                                                              \
    (MANY * 8000ull * (4096 + MANY) / 4096) /* of MANY: 8 to 16 µs for each, the more the longer */

static struct stream stream;
static struct publisher publisher;
static struct output outputs[MANY];

static void setup(void)
{
    stream = (struct stream){0};
    publisher_init(&publisher, &stream, NULL, NULL, FRAME_US);
    for (unsigned i = 0; i < MANY; i++)
        outputs[i] = (struct output){.topic = {(uint8_t)(i + 1), (uint8_t)(i >> 8)}};
}

static void teardown(void)
{
    for (unsigned i = 0; i < MANY; i++)
        publish_drop(&publisher, &outputs[i]);
    window_deinit(&stream.window);
    publisher_deinit(&publisher);
}

static void make(struct output *output, uint32_t n)
{
    static const int32_t ids[512];
    const struct engine_event event = {.ids = ids, .n_ids = n, .text = BYTES_LITERAL("text")};
    publish_event(&publisher, output, &event);
}

/* Frames that leave at a moment, after a step of so long. */
static uint64_t leave(uint64_t now, uint64_t step_ns)
{
    uint64_t before = stream.window.last;
    publish_due(&publisher, now, step_ns);
    return stream.window.last - before;
}

START_TEST(tokens_made_within_the_time_of_a_frame_share_it)
{
    make(&outputs[0], 1);
    ck_assert_uint_eq(leave(START_NS, SHORT_NS), 1); /* the first waits for nothing */
    make(&outputs[0], 1);
    ck_assert_uint_eq(leave(START_NS + FRAME_NS / 2, SHORT_NS), 0);
    make(&outputs[0], 1);
    ck_assert_uint_eq(leave(START_NS + FRAME_NS - 1, SHORT_NS), 0);
    ck_assert_uint_eq(leave(START_NS + FRAME_NS, SHORT_NS), 1);
    ck_assert_uint_eq(outputs[0].seq, 3);
    ck_assert_uint_eq(outputs[0].off, 3 * strlen("text"));
    ck_assert_uint_eq(leave(START_NS + 3 * FRAME_NS, SHORT_NS), 0); /* nothing was made */
}
END_TEST

START_TEST(each_output_is_due_in_its_own_time)
{
    make(&outputs[0], 1);
    ck_assert_uint_eq(leave(START_NS, SHORT_NS), 1);
    make(&outputs[0], 1);
    ck_assert_uint_eq(leave(START_NS + FRAME_NS / 2, SHORT_NS), 0);
    make(&outputs[1], 1); /* its first: at once, and alone */
    ck_assert_uint_eq(leave(START_NS + FRAME_NS / 2, SHORT_NS), 1);
    make(&outputs[1], 1);
    ck_assert_uint_eq(leave(START_NS + FRAME_NS, SHORT_NS), 1);
    ck_assert_uint_eq(outputs[0].seq, 2);
    ck_assert_uint_eq(outputs[1].seq, 1);
    ck_assert_uint_eq(leave(START_NS + FRAME_NS * 3 / 2 - 1, SHORT_NS), 0);
    ck_assert_uint_eq(leave(START_NS + FRAME_NS * 3 / 2, SHORT_NS), 1);
    ck_assert_uint_eq(outputs[1].seq, 2);
}
END_TEST

START_TEST(a_step_as_long_as_a_frame_flushes_all)
{
    make(&outputs[0], 1);
    make(&outputs[1], 1);
    ck_assert_uint_eq(leave(START_NS, SHORT_NS), 2);
    make(&outputs[0], 1);
    make(&outputs[1], 1);
    ck_assert_uint_eq(leave(START_NS + 1, FRAME_NS - 1), 0);
    ck_assert_uint_eq(leave(START_NS + 1, FRAME_NS), 2);
}
END_TEST

START_TEST(while_the_broker_is_behind_frames_wait_and_hold_more)
{
    uint64_t now = START_NS;
    for (unsigned i = 0; i < WINDOW_MOST / 8; i++, now += FRAME_NS) {
        make(&outputs[0], 1);
        ck_assert_uint_eq(leave(now, FRAME_NS), 1);
    }
    now -= FRAME_NS; /* when the last one left */
    make(&outputs[0], 1);
    ck_assert_uint_eq(leave(now + FRAME_NS, FRAME_NS), 0);
    make(&outputs[0], 1);
    ck_assert_uint_eq(leave(now + 10 * CLOCK_NS_PER_MS - 1, FRAME_NS), 0);
    ck_assert_uint_eq(leave(now + 10 * CLOCK_NS_PER_MS, FRAME_NS), 1); /* both in one */
    make(&outputs[0], 1);
    ck_assert_uint_eq(leave(now + 10 * CLOCK_NS_PER_MS, UINT64_MAX), 1); /* nothing more is made now */
    window_ack(&stream.window, stream.window.last);
    make(&outputs[0], 1);
    ck_assert_uint_eq(leave(now + 10 * CLOCK_NS_PER_MS, FRAME_NS), 1); /* it has caught up */
}
END_TEST

START_TEST(frames_of_many_requests_wait_and_hold_more)
{
    const uint64_t wait_ns = WAIT_NS;
    for (unsigned n = 0; n < MANY; n++)
        make(&outputs[n], 1);
    ck_assert_uint_eq(leave(START_NS, SHORT_NS), MANY); /* the first waits for nothing */
    for (unsigned n = 0; n < MANY; n++)
        make(&outputs[n], 1);
    ck_assert_uint_eq(leave(START_NS + FRAME_NS, FRAME_NS), 0);
    for (unsigned n = 0; n < MANY; n++)
        make(&outputs[n], 1);
    ck_assert_uint_eq(leave(START_NS + wait_ns - 1, wait_ns - 1), 0);
    ck_assert_uint_eq(leave(START_NS + wait_ns, SHORT_NS),
                      MANY); /* all of them, though fewer are pending then */
    ck_assert_uint_eq(outputs[MANY - 1].seq, 3);
    for (unsigned n = 0; n < MANY; n++)
        make(&outputs[n], 1);
    ck_assert_uint_eq(leave(START_NS + wait_ns + 1, wait_ns), MANY); /* a step that took as long */
}
END_TEST

/* Four times as long. */
START_TEST(while_the_broker_is_behind_frames_of_many_wait_longest)
{
    const uint64_t wait_ns = 4 * WAIT_NS;
    uint64_t now = START_NS;
    while (window_kept(&stream.window) < WINDOW_MOST / 8) {
        for (unsigned n = 0; n < MANY; n++)
            make(&outputs[n], 1);
        publish_due(&publisher, now, UINT64_MAX);
    }
    for (unsigned n = 0; n < MANY; n++)
        make(&outputs[n], 1);
    ck_assert_uint_eq(leave(now + wait_ns - 1, wait_ns), 0); /* however long the step was */
    ck_assert_uint_eq(leave(now + wait_ns, SHORT_NS), MANY);
}
END_TEST

START_TEST(a_full_frame_waits_for_no_time)
{
    make(&outputs[0], 1);
    ck_assert_uint_eq(leave(START_NS, SHORT_NS), 1);
    make(&outputs[0], 511);
    ck_assert_uint_eq(leave(START_NS + 1, SHORT_NS), 0);
    make(&outputs[0], 1);
    ck_assert_uint_eq(leave(START_NS + 1, SHORT_NS), 1);
    ck_assert_uint_eq(outputs[0].seq, 513);
}
END_TEST

START_TEST(what_was_dropped_never_leaves)
{
    make(&outputs[0], 1);
    make(&outputs[1], 1);
    publish_drop(&publisher, &outputs[0]);
    ck_assert_uint_eq(leave(START_NS, FRAME_NS), 1);
    ck_assert_uint_eq(outputs[0].seq, 0);
    ck_assert_uint_eq(outputs[1].seq, 1);
}
END_TEST

static struct tokenizer *open_vocabulary(char *long_name)
{
    struct test_vocabulary v;
    vocabulary_begin(&v, "llama");
    vocabulary_add(&v, (struct test_token){"<unk>", TOKEN_UNKNOWN, 0});
    vocabulary_add(&v, (struct test_token){"<s>", TOKEN_CONTROL, 0});
    vocabulary_add(&v, (struct test_token){"</s>", TOKEN_CONTROL, 0});
    vocabulary_add(&v, (struct test_token){"▁the", TOKEN_NORMAL, -1});
    vocabulary_add(&v, (struct test_token){long_name, TOKEN_NORMAL, -2});
    vocabulary_add_bytes(&v);
    vocabulary_finish(&v);
    return vocabulary_must_open(&v);
}

START_TEST(frames_that_tell_pieces_hold_as_many_as_fit)
{
    enum { N = 100, WIDTH = PROTO_MAX_LOGPROBS + 1 };
    static struct logprob logprobs[N * WIDTH];
    static int32_t ids[N];
    char long_name[1001] = "";
    memset(long_name, 'x', sizeof long_name - 1);
    struct tokenizer *tokenizer = open_vocabulary(long_name);
    publisher_deinit(&publisher);
    publisher_init(&publisher, &stream, NULL, tokenizer, FRAME_US);
    for (size_t i = 0; i < N * WIDTH; i++)
        logprobs[i] = (struct logprob){i % WIDTH == 0 ? 2 : i % WIDTH == 1 ? 3 : 4, -1};
    outputs[0].pieces = true;
    publish_event(
        &publisher, &outputs[0],
        &(struct engine_event){
            .ids = ids, .n_ids = N, .logprobs = logprobs, .n_logprobs = WIDTH, .text = BYTES_LITERAL("t")});
    ck_assert_uint_gt(leave(START_NS, FRAME_NS), 1);
    struct message_decoder *decoder;
    struct message message;
    size_t n = 0;
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
    for (uint64_t wseq = 1; wseq <= stream.window.last; wseq++) {
        struct bytes topic, frame;
        ck_assert(window_get(&stream.window, wseq, &topic, &frame));
        ck_assert_int_eq(message_decode(decoder, frame.data, frame.len, &message, NULL), 0);
        ck_assert_uint_eq(message.frame.seq, n);
        ck_assert_uint_eq(message.frame.pieces.n, message.frame.ids.n * WIDTH);
        n += message.frame.ids.n;
        ck_assert_uint_eq(message.frame.text.len, n == N); /* never before the ids that it is of */
    }
    ck_assert_uint_eq(n, N);
    const struct bytes *pieces = message.frame.pieces.items;
    ck_assert(bytes_equal(pieces[0], BYTES_LITERAL("</s>"))); /* none of a text: by its name */
    ck_assert(bytes_equal(pieces[1], BYTES_LITERAL(" the")));
    ck_assert_uint_eq(pieces[2].len, PROTO_MAX_PIECE_BYTES);
    message_decoder_free(decoder);
    tokenizer_free(tokenizer);
}
END_TEST

/* The frame of that number, on a decoder that holds one at a time. */
static const struct frame *frame_at(uint64_t wseq)
{
    static struct message_decoder *decoder;
    static struct message message;
    struct bytes topic, frame;
    decoder = message_decoder_free(decoder);
    if (wseq == 0)
        return NULL;
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
    ck_assert(window_get(&stream.window, wseq, &topic, &frame));
    ck_assert_int_eq(message_decode(decoder, frame.data, frame.len, &message, NULL), 0);
    return &message.frame;
}

/* Of 65,536 bytes each; a character that would be cut goes with the next. */
START_TEST(a_long_text_goes_in_several_frames_that_cut_no_character)
{
    static const struct {
        const char *character;
        size_t at, first; /* bytes before it, and of the first frame */
    } cases[] = {{"y", 65536, 65536}, {"é", 65534, 65536}, {"é", 65535, 65535}, {"€", 65533, 65536},
                 {"€", 65534, 65534}, {"€", 65535, 65535}, {"😀", 65532, 65536}, {"😀", 65533, 65533},
                 {"😀", 65534, 65534}, {"😀", 65535, 65535}};
    static const int32_t ids[] = {7, 8};
    static char text[65536 + 8];
    memset(text, 'x', sizeof text);
    memcpy(text + cases[_i].at, cases[_i].character, strlen(cases[_i].character));
    publish_event(&publisher, &outputs[0],
                  &(struct engine_event){.ids = ids, .n_ids = 2, .text = {text, sizeof text}});
    ck_assert_uint_eq(leave(START_NS, SHORT_NS), 2);
    const struct frame *frame = frame_at(1);
    ck_assert_uint_eq(frame->text.len, cases[_i].first);
    ck_assert(frame->seq == 0 && frame->off == 0 && frame->ids.n == 2 && !frame->has_end);
    frame = frame_at(2);
    ck_assert(
        bytes_equal(frame->text, (struct bytes){text + cases[_i].first, sizeof text - cases[_i].first}));
    ck_assert(frame->seq == 2 && frame->off == cases[_i].first && frame->ids.n == 0);
    ck_assert_uint_eq(outputs[0].off, sizeof text);
    /* As much as one frame holds goes in one, at once. */
    memset(text, 'x', sizeof text);
    publish_event(&publisher, &outputs[0], &(struct engine_event){.text = {text, 65535}});
    ck_assert_uint_eq(leave(START_NS + 1, SHORT_NS), 0);
    publish_event(&publisher, &outputs[0], &(struct engine_event){.text = {"z", 1}});
    ck_assert_uint_eq(leave(START_NS + 1, SHORT_NS), 1);
    ck_assert_uint_eq(frame_at(3)->text.len, 65536);
    frame_at(0);
}
END_TEST

START_TEST(places_without_an_id_have_one_that_the_wire_takes)
{
    static const int32_t ids[] = {5};
    static const struct logprob logprobs[] = {{5, -1}, {-1, -100}, {0, -2}};
    struct message_decoder *decoder;
    struct message message;
    struct bytes topic, frame;
    publish_event(
        &publisher, &outputs[0],
        &(struct engine_event){
            .ids = ids, .n_ids = 1, .logprobs = logprobs, .n_logprobs = 3, .text = BYTES_LITERAL("t")});
    ck_assert_uint_eq(leave(START_NS, FRAME_NS), 1);
    ck_assert(window_get(&stream.window, stream.window.last, &topic, &frame));
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
    ck_assert_int_eq(message_decode(decoder, frame.data, frame.len, &message, NULL), 0);
    ck_assert_uint_eq(message.frame.logprobs.width, 3);
    const struct token_logprob *told = message.frame.logprobs.items;
    ck_assert_int_eq(told[0].id, 5);
    ck_assert_int_eq(told[1].id, 0);
    ck_assert_float_eq(told[1].logprob, -100);
    ck_assert_int_eq(told[2].id, 0);
    message_decoder_free(decoder);
}
END_TEST

START_TEST(the_first_frame_of_an_attempt_says_which_prompt_it_is)
{
    static const uint8_t digest[PROMPT_DIGEST_BYTES] = {1, 2, 3};
    outputs[0].tells_prompt = true;
    memcpy(outputs[0].prompt_digest, digest, sizeof digest);
    for (unsigned i = 0; i < 2; i++) {
        make(&outputs[0], 1);
        ck_assert_uint_eq(leave(START_NS + i * FRAME_NS, FRAME_NS), 1);
    }
    ck_assert(bytes_equal(frame_at(1)->prompt_digest, (struct bytes){digest, sizeof digest}));
    ck_assert_uint_eq(frame_at(2)->prompt_digest.len, 0);
    frame_at(0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, tokens_made_within_the_time_of_a_frame_share_it);
    tcase_add_test(tests, each_output_is_due_in_its_own_time);
    tcase_add_test(tests, a_step_as_long_as_a_frame_flushes_all);
    tcase_add_test(tests, while_the_broker_is_behind_frames_wait_and_hold_more);
    tcase_add_test(tests, frames_of_many_requests_wait_and_hold_more);
    tcase_add_test(tests, while_the_broker_is_behind_frames_of_many_wait_longest);
    tcase_add_test(tests, a_full_frame_waits_for_no_time);
    tcase_add_test(tests, what_was_dropped_never_leaves);
    tcase_add_loop_test(tests, a_long_text_goes_in_several_frames_that_cut_no_character, 0, 10);
    tcase_add_test(tests, places_without_an_id_have_one_that_the_wire_takes);
    tcase_add_test(tests, frames_that_tell_pieces_hold_as_many_as_fit);
    tcase_add_test(tests, the_first_frame_of_an_attempt_says_which_prompt_it_is);
}

int main(void)
{
    return run_tests("worker/publish", add);
}
