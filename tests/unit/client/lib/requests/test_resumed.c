/* SPDX-License-Identifier: MIT */
/* Requests that were begun elsewhere: what is sent of them, and where their outputs begin. */

#include "tests/unit/client/lib/bare.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>

#include "client/lib/incoming.h"
#include "client/lib/requests/request.h"

static const int32_t given[] = {5, 6, 7};
static const uint8_t digest[16] = {1, 2, 3};

static struct quern_request resumed(void)
{
    struct quern_request request;
    quern_request_init(&request);
    request.text = "Hi";
    request.has_seed = true;
    request.seed = 9;
    request.output = given;
    request.n_output = 3;
    request.off = 4;
    request.lost = 2;
    request.prompt_digest = digest;
    return request;
}

static void refused(const struct quern_request *request, const char *reason)
{
    struct quern_error err = {.text = ""};
    ck_assert_int_eq(quern_generate(client, request, NULL, NULL, NULL, &err), -EINVAL);
    ck_assert_str_eq(err.text, reason);
}

/* Sends one, which the pool takes. */
static struct request *send(struct told *told)
{
    struct quern_error err = {.text = ""};
    const struct quern_request request = resumed();
    struct quern_id id;
    struct id128 wanted;
    ck_assert_msg(quern_generate(client, &request, bare_output, told, &id, &err) == 0, "%s", err.text);
    memcpy(wanted.bytes, id.bytes, sizeof wanted.bytes);
    return state_find_request(client, &wanted);
}

static void take_frame(const struct frame *frame)
{
    struct message message;
    const struct bytes wire = bare_encode(&(struct message){.kind = MESSAGE_FRAME, .frame = *frame});
    ck_assert_int_eq(message_decode(client->frame_decoder, wire.data, wire.len, &message, NULL), 0);
    request_frame(client, &message.frame, wire.data, wire.len);
}

START_TEST(the_output_so_far_goes_with_the_request_and_the_pool_must_know_what_to_do_with_it)
{
    struct told told = {0};
    send(&told);
    const struct message said = bare_next();
    ck_assert_int_eq(said.kind, MESSAGE_GENERATE);
    const struct generation *generation = &said.generate.generation;
    ck_assert_uint_eq(generation->output.n, 3);
    ck_assert_mem_eq(generation->output.items, given, sizeof given);
    ck_assert_uint_eq(generation->off, 4);
    ck_assert_uint_eq(generation->lost, 2);
    ck_assert(bytes_equal(generation->prompt_digest, (struct bytes){digest, sizeof digest}));
    ck_assert_uint_eq(generation->sampling.seed, 9);
    ck_assert_uint_eq(generation->require.n, 1);
    ck_assert(bytes_equal(generation->require.items[0], BYTES_LITERAL("resume")));
}
END_TEST

/* Who has only the encoded request gets what who has the request gets. */
START_TEST(an_encoded_request_resumes_as_the_request_itself_does)
{
    static const char *const stops[] = {"end", "stop"};
    const struct quern_resume resume = {given, 3, 4, 2, digest, 1500};
    struct quern_request request = resumed(), before = request;
    struct quern_encoded *whole, *first, *second, *none;
    struct quern_error err = {.text = ""};
    before.stop = request.stop = stops;
    before.n_stop = request.n_stop = 2;
    before.frequency_penalty = request.frequency_penalty = 0.5;
    before.ignore_eos = request.ignore_eos = true; /* it requires a feature of its own */
    before.deadline_ms = 9000;
    request.deadline_ms = 9000 - 1500; /* what is left of it */
    before.output = NULL;
    before.n_output = before.off = before.lost = 0;
    before.prompt_digest = NULL;
    ck_assert_msg(quern_encode(client, &request, &whole, &err) == 0, "%s", err.text);
    ck_assert_msg(quern_encode(client, &before, &first, &err) == 0, "%s", err.text);
    ck_assert_msg(quern_encode_resumed(client, first, &resume, &second, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(quern_encoded_bytes(second), quern_encoded_bytes(whole));
    ck_assert_mem_eq(second->bytes.data, whole->bytes.data, whole->bytes.len);
    ck_assert_uint_eq(second->n_output, 3);
    ck_assert_uint_eq(second->off, 4);
    ck_assert(second->has_seed && second->seed == 9 && second->part);
    ck_assert_int_eq(quern_encode_resumed(client, second, &resume, &none, &err), -EINVAL);
    ck_assert_str_eq(err.text, "output: the request already resumes another one");
    quern_encoded_free(whole);
    quern_encoded_free(first);
    quern_encoded_free(second);
}
END_TEST

START_TEST(a_deadline_that_has_passed_leaves_a_millisecond)
{
    const struct quern_resume resume = {given, 3, 4, 2, digest, 1ull << 40};
    struct quern_request request = resumed(), before = request;
    struct quern_encoded *whole, *first, *second;
    before.deadline_ms = 9000;
    request.deadline_ms = 1;
    before.output = NULL;
    before.n_output = before.off = before.lost = 0;
    before.prompt_digest = NULL;
    ck_assert_int_eq(quern_encode(client, &request, &whole, NULL), 0);
    ck_assert_int_eq(quern_encode(client, &before, &first, NULL), 0);
    ck_assert_int_eq(quern_encode_resumed(client, first, &resume, &second, NULL), 0);
    ck_assert_uint_eq(quern_encoded_bytes(second), quern_encoded_bytes(whole));
    ck_assert_mem_eq(second->bytes.data, whole->bytes.data, whole->bytes.len);
    quern_encoded_free(whole);
    quern_encoded_free(first);
    quern_encoded_free(second);
}
END_TEST

START_TEST(outputs_begin_behind_what_was_given)
{
    static const int32_t ids[] = {8, 9};
    struct told told = {0};
    const struct request *request = send(&told);
    struct frame frame = {
        .id = request->id, .seq = 3, .off = 4, .ids = {ids, 2}, .text = BYTES_LITERAL("cd")};
    frame.prompt_digest = (struct bytes){digest, sizeof digest};
    take_frame(&frame);
    ck_assert_int_eq(told.calls, 1);
    ck_assert_uint_eq(told.index, 3);
    ck_assert_uint_eq(told.n_ids, 2);
    ck_assert_str_eq(told.text, "cd");
    ck_assert_mem_eq(told.prompt_digest, digest, sizeof digest);
    frame = (struct frame){.id = request->id, .seq = 5, .off = 6, .ids = {ids, 1}, .has_end = true};
    frame.end = (struct ending){.reason = END_ERROR, .error = PROTO_WORKER_LOST, .lost = 3};
    take_frame(&frame);
    ck_assert_int_eq(told.ends, 1);
    ck_assert_uint_eq(told.end.lost, 3);
    ck_assert_uint_eq(quern_active(client), 0);
}
END_TEST

/* The broker is another one, and nothing had come: what was given is no output of it. */
START_TEST(a_request_of_which_nothing_came_is_sent_again_with_what_was_given)
{
    struct told told = {0};
    struct request *request = send(&told);
    ck_assert_says(MESSAGE_GENERATE);
    struct message accepted = {.kind = MESSAGE_ACCEPTED};
    accepted.accepted.id = request->id;
    accepted.accepted.seed = 9;
    incoming_message(client, &accepted);
    requests_opened(client, true);
    ck_assert_says(MESSAGE_ATTACH);
    struct message no = {.kind = MESSAGE_ERROR};
    no.error.has_id = true;
    no.error.id = request->id;
    no.error.error = PROTO_UNKNOWN_REQUEST;
    no.error.of = MESSAGE_ATTACH;
    no.error.text = BYTES_LITERAL("unknown request");
    incoming_message(client, &no);
    ck_assert_int_eq(told.ends, 0);
    const struct message again = bare_next();
    ck_assert_int_eq(again.kind, MESSAGE_GENERATE);
    ck_assert_uint_eq(again.generate.generation.output.n, 3);
}
END_TEST

START_TEST(who_attaches_to_one_gets_what_this_pool_has)
{
    static const int32_t ids[] = {8, 9};
    struct told told = {0};
    const struct quern_id session = {{1}}, id = {{2}};
    ck_assert_int_eq(quern_attach(client, session, id, bare_output, &told, NULL), 0);
    ck_assert_says(MESSAGE_ATTACH);
    struct message ok = {.kind = MESSAGE_ATTACH_OK};
    ok.attach_ok.id = (struct id128){{2}};
    ok.attach_ok.next = 5;
    ok.attach_ok.from = 3;
    ok.attach_ok.off = 4;
    incoming_message(client, &ok);
    const struct message replay = bare_next();
    ck_assert_int_eq(replay.kind, MESSAGE_REPLAY);
    ck_assert_uint_eq(replay.replay.next, 3);
    struct frame frame = {.id = {{2}}, .seq = 3, .off = 4, .ids = {ids, 2}, .text = BYTES_LITERAL("cd")};
    struct message page = {.kind = MESSAGE_REPLAY_OK};
    const struct bytes item = bare_encode(&(struct message){.kind = MESSAGE_FRAME, .frame = frame});
    page.replay_ok.id = ok.attach_ok.id;
    page.replay_ok.done = true;
    page.replay_ok.frames.items = &item;
    page.replay_ok.frames.n = 1;
    incoming_message(client, &page);
    ck_assert_int_eq(told.ends, 0);
    ck_assert_uint_eq(told.index, 3);
    ck_assert_str_eq(told.text, "cd");
}
END_TEST

START_TEST(what_cannot_be_resumed_is_refused_before_it_is_sent)
{
    struct quern_request request = resumed();
    request.has_seed = false;
    refused(&request, "output: its seed is missing");
    request = resumed();
    request.lost = 3;
    refused(&request, "generate: lost: 3 is out of range 0..2");
    request = resumed();
    request.max_tokens = 2;
    refused(&request, "generate: output: 3 ids are more than max_tokens (2)");
    request = resumed();
    request.n_output = 0;
    refused(&request, "generate: off: expected with output only");
    request = resumed();
    request.embed = true;
    refused(
        &request,
        "generate: output, off, lost and prompt_digest: not supported with embed, which generates no tokens");
    ck_assert_says_none();
}
END_TEST

START_TEST(several_outputs_of_one_that_resumes_are_refused)
{
    const struct quern_request request = resumed();
    struct quern_encoded *encoded;
    struct quern_error err = {.text = ""};
    ck_assert_int_eq(quern_encode(client, &request, &encoded, &err), 0);
    ck_assert_int_eq(quern_generate_encoded(client, encoded, NULL, NULL, NULL, NULL, &err), 0);
    ck_assert_int_eq(quern_generate_encoded(client, encoded, NULL, NULL, NULL, NULL, &err), -EINVAL);
    ck_assert_str_eq(err.text, "output: a request that resumes an output can be sent only once");
    ck_assert_uint_eq(quern_active(client), 1);
    quern_encoded_free(encoded);
}
END_TEST

static void set_up(void)
{
    bare_set_up();
    bare_open();
}

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, bare_tear_down);
    tcase_add_test(tests, the_output_so_far_goes_with_the_request_and_the_pool_must_know_what_to_do_with_it);
    tcase_add_test(tests, an_encoded_request_resumes_as_the_request_itself_does);
    tcase_add_test(tests, a_deadline_that_has_passed_leaves_a_millisecond);
    tcase_add_test(tests, outputs_begin_behind_what_was_given);
    tcase_add_test(tests, a_request_of_which_nothing_came_is_sent_again_with_what_was_given);
    tcase_add_test(tests, who_attaches_to_one_gets_what_this_pool_has);
    tcase_add_test(tests, what_cannot_be_resumed_is_refused_before_it_is_sent);
    tcase_add_test(tests, several_outputs_of_one_that_resumes_are_refused);
}

int main(void)
{
    return run_tests("client/resumed", add);
}
