/* SPDX-License-Identifier: MIT */
/* Requests that are longer than a message may be: their parts, and what comes between these. */

#include "client/lib/requests/sending.h"
#include "tests/unit/client/lib/bare.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "client/lib/incoming.h"
#include "client/lib/requests/request.h"
#include "client/lib/session.h"

#define LONG ((size_t)10 << 20) /* more than is on its way at a time */

static char *prompt; /* of LONG bytes */
static struct message_decoder *reads;
static uint8_t *sent; /* the last message that went out */
static struct buffer whole;

static void set_up(void)
{
    bare_set_up();
    bare_open();
    ck_assert_int_eq(message_decoder_new(&reads), 0);
    prompt = malloc(LONG + 1);
    sent = malloc(PROTO_MAX_REQUEST_BYTES);
    ck_assert(prompt && sent);
    memset(prompt, 'p', LONG);
    prompt[LONG] = 0;
}

static void tear_down(void)
{
    free(prompt);
    free(sent);
    buffer_deinit(&whole);
    reads = message_decoder_free(reads);
    bare_tear_down();
}

/* The next message that went out but pings; kind MESSAGE_NONE: none did. */
static struct message next(void)
{
    struct message message = {.kind = MESSAGE_NONE};
    do {
        int n = zmq_recv(broker, sent, PROTO_MAX_REQUEST_BYTES, ZMQ_DONTWAIT);
        if (n < 0)
            return (struct message){.kind = MESSAGE_NONE};
        ck_assert_int_le(n, PROTO_MAX_REQUEST_BYTES);
        ck_assert_int_eq(message_decode(reads, sent, (size_t)n, &message, NULL), 0);
    } while (message.kind == MESSAGE_PING);
    return message;
}

static struct quern_id ask(size_t bytes, const char *tenant, struct told *told)
{
    struct quern_request request;
    struct quern_id id;
    quern_request_init(&request);
    request.text = prompt + LONG - bytes;
    request.tenant = tenant;
    ck_assert_int_eq(quern_generate(client, &request, bare_output, told, &id, NULL), 0);
    return id;
}

/* Takes the parts of one request until they are whole, or no more come; false then. */
static bool take_parts(const struct quern_id *id)
{
    struct message part;
    sending_go_on(client);
    while ((part = next()).kind == MESSAGE_GENERATE_PART) {
        ck_assert_mem_eq(&part.generate_part.id, id, sizeof *id);
        if (part.generate_part.at == 0)
            whole.len = 0;
        ck_assert_uint_eq(part.generate_part.at, whole.len);
        ck_assert_int_eq(buffer_append(&whole, part.generate_part.data.data, part.generate_part.data.len), 0);
        ck_assert_uint_le(client->piped, UNDER_WAY_MAX_BYTES);
        if (whole.len == part.generate_part.total)
            return true;
        sending_go_on(client);
    }
    ck_assert_int_eq(part.kind, MESSAGE_NONE);
    return false;
}

/* One part is taken off the wire. */
static void take_one(const struct quern_id *id)
{
    const struct message part = next();
    ck_assert_int_eq(part.kind, MESSAGE_GENERATE_PART);
    ck_assert_mem_eq(&part.generate_part.id, id, sizeof *id);
}

static void drop_what_was_sent(void)
{
    while (next().kind != MESSAGE_NONE)
        ;
}

static void accept(struct quern_id id)
{
    struct message accepted = {.kind = MESSAGE_ACCEPTED};
    memcpy(&accepted.accepted.id, &id, sizeof id);
    incoming_message(client, &accepted);
}

static void refuse(struct quern_id id)
{
    struct message no = {.kind = MESSAGE_ERROR};
    no.error.has_id = true;
    memcpy(&no.error.id, &id, sizeof id);
    no.error.of = MESSAGE_GENERATE;
    no.error.error = PROTO_OVERLOADED;
    no.error.text = BYTES_LITERAL("full");
    incoming_message(client, &no);
}

static void pass(uint64_t ns)
{
    client->now += ns;
    client->heard_ns = client->now - 1;
    requests_timers(client);
}

START_TEST(the_parts_are_the_generate)
{
    struct told told = {0};
    const struct quern_id id = ask(LONG, "ann", &told);
    struct message message;
    ck_assert(take_parts(&id));
    ck_assert_int_eq(message_decode(reads, whole.data, whole.len, &message, NULL), 0);
    ck_assert_int_eq(message.kind, MESSAGE_GENERATE);
    ck_assert_mem_eq(&message.generate.id, &id, sizeof id);
    ck_assert_uint_eq(message.generate.generation.prompt.text.len, LONG);
    ck_assert(bytes_equal(message.generate.generation.tenant, BYTES_LITERAL("ann")));
    struct id128 key;
    memcpy(&key, &id, sizeof key);
    ck_assert_uint_eq(message.generate.generation.sampling.seed, state_find_request(client, &key)->seed);
    accept(id);
    ck_assert_uint_eq(client->unaccepted, 0);
    ck_assert_uint_eq(client->under_way, 0);
    ck_assert_ptr_null(client->parting);
}
END_TEST

/* The id, the seed and the mark of a part stand wherever the encoding puts them: in any part, or in two. */
START_TEST(what_each_request_adds_is_in_its_part)
{
    struct quern_request request;
    struct quern_encoded *encoded;
    struct told told = {0};
    quern_request_init(&request);
    request.tenant = "ann";
    request.rpm = 5;
    client->limits.request_bytes = 1100; /* so that a part has 588 bytes */
    request.text = prompt + LONG - 5000;
    ck_assert_int_eq(quern_encode(client, &request, &encoded, NULL), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct quern_id id;
        struct message message;
        const uint64_t seed = 77 + i;
        ck_assert_int_eq(quern_generate_encoded(client, encoded, &seed, bare_output, &told, &id, NULL), 0);
        ck_assert(take_parts(&id));
        ck_assert_int_eq(message_decode(reads, whole.data, whole.len, &message, NULL), 0);
        ck_assert_mem_eq(&message.generate.id, &id, sizeof id);
        ck_assert_uint_eq(message.generate.generation.sampling.seed, seed);
        ck_assert_int_eq(message.generate.generation.part, i > 0);
        accept(id);
    }
    quern_encoded_free(encoded);
}
END_TEST

START_TEST(parts_are_made_as_the_socket_takes_them_and_one_request_at_a_time)
{
    struct told told = {0};
    const struct quern_id first = ask(LONG, NULL, &told), second = ask(LONG, "bob", &told);
    ck_assert_uint_le(client->piped, UNDER_WAY_MAX_BYTES);
    take_one(&first);
    const struct quern_id brief = ask(10, "eve", &told);
    bool passed = false; /* a brief one goes between them */
    for (int i = 0; i < 20 && !passed; i++) {
        sending_go_on(client);
        const struct message message = next();
        passed = message.kind == MESSAGE_GENERATE;
        ck_assert_mem_eq(passed ? &message.generate.id : &message.generate_part.id, passed ? &brief : &first,
                         sizeof first);
    }
    ck_assert(passed);
    while (client->parting) {
        sending_go_on(client);
        next();
    }
    drop_what_was_sent();
    sending_go_on(client);
    ck_assert_int_eq(next().kind, MESSAGE_NONE); /* not before the first was accepted */
    accept(first);
    ck_assert(take_parts(&second));
}
END_TEST

START_TEST(a_refusal_ends_what_is_half_sent)
{
    struct told told = {0};
    const struct quern_id first = ask(LONG, NULL, &told), second = ask(LONG, NULL, &told);
    take_one(&first);
    refuse(first);
    ck_assert_int_eq(told.ends, 1);
    ck_assert_str_eq(told.error, "overloaded");
    ck_assert_ptr_null(client->parting);
    told.ends = 0;
    drop_what_was_sent();
    ck_assert(take_parts(&second));
}
END_TEST

START_TEST(a_cancel_ends_what_is_half_sent)
{
    struct told told = {0};
    const struct quern_id id = ask(LONG, NULL, &told);
    take_one(&id);
    ck_assert_int_eq(quern_cancel(client, id, NULL), 0);
    ck_assert_int_eq(told.ends, 0);
    sending_go_on(client);
    ck_assert_int_eq(told.ends, 1);
    ck_assert_int_eq(told.end.reason, QUERN_CANCELLED);
    struct message message;
    while ((message = next()).kind == MESSAGE_GENERATE_PART)
        ;
    ck_assert_int_eq(message.kind, MESSAGE_CANCEL); /* the pool gives back what it has */
    ck_assert_mem_eq(&message.cancel.id, &id, sizeof id);
    ck_assert_uint_eq(quern_active(client), 0);
    ck_assert_uint_eq(client->unaccepted, 0);
    ck_assert_ptr_null(client->parting);
}
END_TEST

/* The pool may have it, and says how it ends. */
START_TEST(a_cancel_of_what_was_sent_whole_waits_for_the_end)
{
    struct told told = {0};
    const struct quern_id id = ask(LONG, NULL, &told);
    ck_assert(take_parts(&id));
    pass(2 * CLOCK_NS_PER_S); /* it is sent again */
    ck_assert_ptr_nonnull(client->parting);
    ck_assert_int_eq(quern_cancel(client, id, NULL), 0);
    sending_go_on(client);
    ck_assert_int_eq(told.ends, 0);
    struct message message = {.kind = MESSAGE_END};
    memcpy(&message.end.id, &id, sizeof id);
    message.end.end.reason = END_CANCELLED;
    incoming_message(client, &message);
    ck_assert_ptr_null(client->parting);
}
END_TEST

/* The next broker may know nothing of it: a cancel before the last part would only make it forget the others.
 */
START_TEST(a_cancel_waits_for_the_last_part_where_all_are_sent_again)
{
    struct told told = {0};
    const struct quern_id id = ask(LONG, NULL, &told);
    ck_assert(take_parts(&id));
    drop_what_was_sent();
    pass(2 * CLOCK_NS_PER_S);
    ck_assert_ptr_nonnull(client->parting);
    ck_assert_int_eq(quern_cancel(client, id, NULL), 0);
    size_t parts = 0;
    struct message message;
    while ((message = next()).kind != MESSAGE_NONE && message.kind != MESSAGE_CANCEL) {
        parts += message.kind == MESSAGE_GENERATE_PART;
        sending_go_on(client);
    }
    ck_assert_ptr_null(client->parting); /* all are out */
    ck_assert_uint_gt(parts, 1);
    ck_assert_int_eq(told.ends, 0);
}
END_TEST

START_TEST(without_an_answer_all_parts_are_sent_again)
{
    struct told told = {0};
    const struct quern_id id = ask(LONG, NULL, &told);
    pass(2 * CLOCK_NS_PER_S); /* not while they are being sent */
    ck_assert(take_parts(&id));
    struct buffer first = {0};
    ck_assert_int_eq(buffer_append(&first, whole.data, whole.len), 0);
    ck_assert_int_eq(next().kind, MESSAGE_NONE);
    pass(CLOCK_NS_PER_S / 2);
    ck_assert_int_eq(next().kind, MESSAGE_NONE);
    pass(CLOCK_NS_PER_S);
    ck_assert(take_parts(&id));
    ck_assert_uint_eq(whole.len, first.len);
    ck_assert_mem_eq(whole.data, first.data, first.len);
    buffer_deinit(&first);
    accept(id);
    pass(2 * CLOCK_NS_PER_S);
    ck_assert_ptr_null(client->parting);
}
END_TEST

START_TEST(a_session_that_opens_again_begins_with_the_first_part)
{
    struct told told = {0};
    const struct quern_id id = ask(LONG, NULL, &told);
    take_one(&id);
    take_one(&id);
    session_lost(client);
    ck_assert_int_eq(client->state, SESSION_HELLO);
    sending_go_on(client);
    drop_what_was_sent();
    sending_go_on(client);
    ck_assert_int_eq(next().kind, MESSAGE_NONE);
    bare_open();
    requests_opened(client, true);
    ck_assert(take_parts(&id));
    accept(id);
    ck_assert_int_eq(told.ends, 0);
}
END_TEST

START_TEST(what_the_pool_does_not_take_is_refused)
{
    struct quern_request request;
    struct quern_error err;
    struct told told = {0};
    quern_request_init(&request);
    request.text = prompt;
    client->limits.generate_bytes = (uint32_t)LONG;
    ck_assert_int_eq(quern_generate(client, &request, bare_output, &told, NULL, &err), -EMSGSIZE);
    ck_assert_str_eq(err.text, "the message has 10.0 MiB; the pool accepts 10 MiB");
    client->limits.generate_bytes = 0; /* an older one */
    ck_assert_int_eq(quern_generate(client, &request, bare_output, &told, NULL, &err), -EMSGSIZE);
    ck_assert_str_eq(err.text, "the message has 10.0 MiB; the pool accepts 4 MiB");
    client->limits = PROTO_LIMITS;
    client->state = SESSION_HELLO;
    ask(LONG, NULL, &told);
    client->limits.generate_bytes = 5 << 20; /* told after it was asked for */
    bare_open();
    sending_go_on(client);
    ck_assert_int_eq(told.ends, 1);
    ck_assert_str_eq(told.error, "too_long");
}
END_TEST

START_TEST(what_is_half_sent_is_given_back_with_the_client)
{
    struct told told = {0};
    ask(LONG, NULL, &told);
    ask(LONG, NULL, &told);
    ck_assert_ptr_nonnull(client->parting);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_parts_are_the_generate);
    tcase_add_test(tests, what_each_request_adds_is_in_its_part);
    tcase_add_test(tests, parts_are_made_as_the_socket_takes_them_and_one_request_at_a_time);
    tcase_add_test(tests, a_refusal_ends_what_is_half_sent);
    tcase_add_test(tests, a_cancel_ends_what_is_half_sent);
    tcase_add_test(tests, a_cancel_of_what_was_sent_whole_waits_for_the_end);
    tcase_add_test(tests, a_cancel_waits_for_the_last_part_where_all_are_sent_again);
    tcase_add_test(tests, without_an_answer_all_parts_are_sent_again);
    tcase_add_test(tests, a_session_that_opens_again_begins_with_the_first_part);
    tcase_add_test(tests, what_the_pool_does_not_take_is_refused);
    tcase_add_test(tests, what_is_half_sent_is_given_back_with_the_client);
}

int main(void)
{
    return run_tests("client parts", add);
}
