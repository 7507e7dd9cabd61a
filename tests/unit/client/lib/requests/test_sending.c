/* SPDX-License-Identifier: MIT */
/* What goes out of requests that the pool has not accepted, in which order, and how much of them there is. */

#include "client/lib/requests/sending.h"
#include "tests/unit/client/lib/bare.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "client/lib/incoming.h"
#include "client/lib/requests/request.h"

#define LARGE ((size_t)3 << 20) /* of which two are on their way at a time */

static char *prompt; /* of LARGE bytes */
static struct message_decoder *reads;
static uint8_t sent[PROTO_MAX_REQUEST_BYTES];
static size_t sent_len;

static void set_up(void)
{
    bare_set_up();
    bare_open();
    ck_assert_int_eq(message_decoder_new(&reads), 0);
    prompt = malloc(LARGE + 1);
    ck_assert_ptr_nonnull(prompt);
    memset(prompt, 'p', LARGE);
    prompt[LARGE] = 0;
}

static void tear_down(void)
{
    free(prompt);
    reads = message_decoder_free(reads);
    bare_tear_down();
}

/* The next generate that went out, which stands in `sent`; kind MESSAGE_NONE: none did. */
static struct message next_generate(void)
{
    struct message message = {.kind = MESSAGE_NONE};
    do {
        int n = zmq_recv(broker, sent, sizeof sent, ZMQ_DONTWAIT);
        if (n < 0)
            return (struct message){.kind = MESSAGE_NONE};
        sent_len = (size_t)n;
        ck_assert_int_eq(message_decode(reads, sent, sent_len, &message, NULL), 0);
    } while (message.kind != MESSAGE_GENERATE);
    return message;
}

static struct quern_request of_size(size_t bytes, const char *tenant)
{
    struct quern_request request;
    quern_request_init(&request);
    request.text = prompt + LARGE - bytes;
    request.tenant = tenant;
    return request;
}

static struct quern_id ask(size_t bytes, const char *tenant, struct told *told)
{
    const struct quern_request request = of_size(bytes, tenant);
    struct quern_id id;
    ck_assert_int_eq(quern_generate(client, &request, bare_output, told, &id, NULL), 0);
    return id;
}

static void accept(struct id128 id)
{
    struct message accepted = {.kind = MESSAGE_ACCEPTED};
    accepted.accepted.id = id;
    incoming_message(client, &accepted);
    sending_go_on(client);
}

/* Whose request goes out next, "" for none; it is accepted. */
static const char *next_tenant(void)
{
    static char tenant[PROTO_MAX_NAME_BYTES + 1];
    const struct message message = next_generate();
    snprintf(tenant, sizeof tenant, "%.*s", (int)message.generate.generation.tenant.len,
             (const char *)message.generate.generation.tenant.data);
    if (message.kind == MESSAGE_NONE)
        return "";
    accept(message.generate.id);
    return tenant;
}

START_TEST(requests_of_one_encoding_have_one_copy_and_a_seed_each)
{
    enum { N = 5 };
    struct told told = {0};
    struct quern_encoded *encoded;
    struct quern_request request = of_size(LARGE, NULL);
    struct quern_id ids[N];
    const struct request *one;
    request.has_seed = true;
    request.seed = 3;
    ck_assert_int_eq(quern_encode(client, &request, &encoded, NULL), 0);
    ck_assert_uint_eq(encoded->bytes.cap, encoded->bytes.len);
    for (uint64_t i = 0; i < N; i++)
        ck_assert_int_eq(
            quern_generate_encoded(client, encoded, i ? &i : NULL, bare_output, &told, &ids[i], NULL), 0);
    ck_assert_uint_eq(encoded->refs, N + 1);
    ck_assert_uint_eq(client->unaccepted, encoded->bytes.len + N * sizeof *one);
    quern_encoded_free(encoded);
    for (uint64_t i = 0; i < N; i++) {
        const struct message message = next_generate();
        ck_assert_mem_eq(&message.generate.id, &ids[i], sizeof ids[i]);
        ck_assert(message.generate.generation.has_seed);
        ck_assert_uint_eq(message.generate.generation.sampling.seed, i ? i : 3);
        ck_assert_uint_eq(message.generate.generation.prompt.text.len, LARGE);
        accept(message.generate.id);
    }
    ck_assert_int_eq(next_generate().kind, MESSAGE_NONE);
    ck_assert_uint_eq(client->unaccepted, 0);
    ck_assert_uint_eq(client->under_way, 0);
    ck_assert_ptr_null(client->senders);
    ck_assert_ptr_null(client->turns);
}
END_TEST

/* As when it moves from one pool of a fleet to another. */
START_TEST(one_encoding_counts_at_each_client_that_uses_it)
{
    struct told told = {0};
    struct quern *other;
    struct quern_encoded *encoded;
    struct quern_id ids[3];
    const struct quern_request request = of_size(LARGE, NULL);
    ck_assert_int_eq(quern_connect_begin("ipc:///nowhere/quern", NULL, NULL, &other, NULL), 0);
    ck_assert_int_eq(quern_encode(client, &request, &encoded, NULL), 0);
    const size_t one = encoded->bytes.len + sizeof(struct request);
    ck_assert_int_eq(quern_generate_encoded(client, encoded, NULL, bare_output, &told, &ids[0], NULL), 0);
    ck_assert_int_eq(quern_generate_encoded(other, encoded, NULL, bare_output, &told, &ids[1], NULL), 0);
    ck_assert_uint_eq(client->unaccepted, one);
    ck_assert_uint_eq(other->unaccepted, one);
    accept(next_generate().generate.id);
    ck_assert_uint_eq(client->unaccepted, 0);
    ck_assert_uint_eq(other->unaccepted, one);
    ck_assert_int_eq(quern_generate_encoded(client, encoded, NULL, bare_output, &told, &ids[2], NULL), 0);
    quern_free(other);
    ck_assert_uint_eq(client->unaccepted, one);
    accept(next_generate().generate.id);
    ck_assert_uint_eq(client->unaccepted, 0);
    quern_encoded_free(encoded);
}
END_TEST

/* One that could not be sent was counted by nobody. */
START_TEST(the_first_output_that_was_sent_is_the_one_that_counts)
{
    struct told told = {0};
    struct quern_encoded *encoded;
    struct quern_request request = of_size(10, "ada");
    request.rpm = 5;
    const uint64_t limit = client->limits.request_bytes;
    ck_assert_int_eq(quern_encode(client, &request, &encoded, NULL), 0);
    client->limits.request_bytes = 1; /* of another pool, that the session was opened with again */
    ck_assert_int_eq(quern_generate_encoded(client, encoded, NULL, bare_output, &told, NULL, NULL),
                     -EMSGSIZE);
    client->limits.request_bytes = limit;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(quern_generate_encoded(client, encoded, NULL, bare_output, &told, NULL, NULL), 0);
        ck_assert_int_eq(next_generate().generate.generation.part, i > 0);
    }
    quern_encoded_free(encoded);
}
END_TEST

START_TEST(a_seed_that_nobody_chose_is_another_each_time_and_the_same_when_sent_again)
{
    struct told told = {0};
    struct quern_encoded *encoded;
    const struct quern_request request = of_size(10, NULL);
    uint64_t seeds[2];
    static uint8_t first[1024];
    ck_assert_int_eq(quern_encode(client, &request, &encoded, NULL), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(quern_generate_encoded(client, encoded, NULL, bare_output, &told, NULL, NULL), 0);
        seeds[i] = next_generate().generate.generation.sampling.seed;
    }
    ck_assert_uint_ne(seeds[0], seeds[1]);
    quern_encoded_free(encoded);
    const size_t len = sent_len;
    memcpy(first, sent, len);
    client->heard_ns = client->now += CLOCK_NS_PER_S;
    client->heard_ns++;
    requests_timers(client);
    next_generate(); /* of the first */
    ck_assert_uint_eq(next_generate().generate.generation.sampling.seed, seeds[1]);
    ck_assert_uint_eq(sent_len, len);
    ck_assert_mem_eq(sent, first, len);
}
END_TEST

START_TEST(of_large_ones_few_are_on_their_way)
{
    enum { N = 10 };
    struct told told = {0};
    struct id128 ids[3];
    for (int i = 0; i < N; i++)
        ask(LARGE, NULL, &told);
    ck_assert_uint_le(client->piped, UNDER_WAY_MAX_BYTES);
    for (int i = 0; i < 2; i++)
        ids[i] = next_generate().generate.id;
    ck_assert_int_eq(next_generate().kind, MESSAGE_NONE);
    sending_go_on(client);
    ck_assert_int_eq(next_generate().kind, MESSAGE_NONE);
    accept(ids[0]);
    ids[2] = next_generate().generate.id;
    ck_assert_int_eq(next_generate().kind, MESSAGE_NONE);
    /* A refusal makes room as well. */
    struct message no = {.kind = MESSAGE_ERROR};
    no.error.has_id = true;
    no.error.id = ids[1];
    no.error.of = MESSAGE_GENERATE;
    no.error.error = PROTO_OVERLOADED;
    no.error.text = BYTES_LITERAL("full");
    incoming_message(client, &no);
    ck_assert_int_eq(told.ends, 1);
    told.ends = 0;
    sending_go_on(client);
    ck_assert_int_eq(next_generate().kind, MESSAGE_GENERATE);
    ck_assert_int_eq(next_generate().kind, MESSAGE_NONE);
}
END_TEST

START_TEST(tenants_give_one_each_in_turn)
{
    struct told told = {0};
    for (int i = 0; i < 6; i++)
        ask(LARGE, "ann", &told);
    for (int i = 0; i < 2; i++)
        ask(LARGE, "bob", &told);
    ask(LARGE, NULL, &told);
    static const char *const order[] = {"ann", "ann", "ann", "bob", "", "ann", "bob", "ann", "ann"};
    struct id128 first = next_generate().generate.id, second = next_generate().generate.id;
    accept(first);
    accept(second);
    for (int i = 2; i < 9; i++)
        ck_assert_str_eq(next_tenant(), order[i]);
    ck_assert_int_eq(next_generate().kind, MESSAGE_NONE);
    ck_assert_ptr_null(client->senders);
}
END_TEST

START_TEST(a_brief_one_waits_for_no_large_ones_of_others)
{
    struct told told = {0};
    for (int i = 0; i < 6; i++)
        ask(LARGE, "ann", &told);
    ask(100, "bob", &told);
    next_generate();
    next_generate();
    const struct message brief = next_generate();
    ck_assert(bytes_equal(brief.generate.generation.tenant, BYTES_LITERAL("bob")));
    ask(100, "ann", &told); /* behind those of the same tenant */
    ck_assert_int_eq(next_generate().kind, MESSAGE_NONE);
}
END_TEST

START_TEST(too_much_is_refused_and_another_tenant_still_finds_room)
{
    struct told told = {0};
    struct quern_error err = {.text = ""};
    const struct quern_request of_ann = of_size(LARGE, "ann");
    int n = 0, r = 0;
    while ((r = quern_generate(client, &of_ann, bare_output, &told, NULL, &err)) == 0)
        n++;
    ck_assert_int_eq(r, -EAGAIN);
    ck_assert_int_eq(n, 10); /* of 3 MiB each, half of 64 */
    ck_assert_msg(strstr(err.text, "too many unsent requests: 314") != NULL, "%s", err.text);
    ck_assert_uint_eq(quern_active(client), 10);
    ask(LARGE, "bob", &told);
    ck_assert(!sending_has_room_again(client));
    accept(next_generate().generate.id);
    ck_assert(sending_has_room_again(client));
    ck_assert(!sending_has_room_again(client)); /* told once */
    ck_assert_int_eq(quern_generate(client, &of_ann, bare_output, &told, NULL, &err), 0);
}
END_TEST

START_TEST(made_up_tenants_do_not_make_more_room)
{
    struct told told = {0};
    char name[16];
    size_t n = 0;
    for (unsigned i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "n%u", i);
        const struct quern_request request = of_size(LARGE, name);
        n += quern_generate(client, &request, bare_output, &told, NULL, NULL) == 0;
    }
    ck_assert_uint_eq(n, 20);
    ck_assert_uint_le(client->unaccepted, UNACCEPTED_MAX_BYTES);
}
END_TEST

START_TEST(a_session_that_opens_again_sends_large_ones_one_after_the_other)
{
    enum { N = 4 };
    struct told told = {0};
    for (int i = 0; i < N; i++)
        ask(LARGE, NULL, &told);
    next_generate();
    next_generate();
    client->state = SESSION_JOIN;
    sending_go_on(client);
    ck_assert_int_eq(next_generate().kind, MESSAGE_NONE);
    bare_open();
    for (int i = 0; i < N; i++) {
        const struct message message = next_generate();
        ck_assert_int_eq(message.kind, MESSAGE_GENERATE);
        ck_assert_uint_le(client->under_way, UNDER_WAY_MAX_BYTES);
        accept(message.generate.id);
    }
    ck_assert_int_eq(next_generate().kind, MESSAGE_NONE);
    ck_assert_uint_eq(client->unaccepted, 0);
}
END_TEST

START_TEST(a_large_one_is_not_sent_again_while_one_is_still_on_its_way)
{
    struct told told = {0};
    ask(LARGE, NULL, &told);
    ck_assert_uint_gt(client->piped, LARGE);
    for (int i = 0; i < 3; i++) {
        client->now += 2 * CLOCK_NS_PER_S;
        client->heard_ns = client->now - 1;
        requests_timers(client);
        ck_assert_uint_lt(client->piped, 2 * LARGE);
    }
    next_generate(); /* it has left */
    ck_assert_uint_eq(client->piped, 0);
    ck_assert_int_eq(next_generate().kind, MESSAGE_NONE);
    requests_timers(client);
    ck_assert_int_eq(next_generate().kind, MESSAGE_GENERATE);
}
END_TEST

static void take_frame(struct id128 id, uint64_t seq)
{
    static const int32_t ids[] = {7};
    const struct message made = {
        .kind = MESSAGE_FRAME,
        .frame = {.id = id, .seq = seq, .off = seq, .ids = {ids, 1}, .text = {"x", 1}}};
    struct message frame;
    const struct bytes wire = bare_encode(&made);
    ck_assert_int_eq(message_decode(client->frame_decoder, wire.data, wire.len, &frame, NULL), 0);
    request_frame(client, &frame.frame, wire.data, wire.len);
}

START_TEST(nothing_is_kept_of_a_prompt_whose_output_has_begun)
{
    struct told told = {0};
    struct id128 id;
    ask(LARGE, NULL, &told);
    id = next_generate().generate.id;
    const struct request *request = state_find_request(client, &id);
    accept(id);
    ck_assert_ptr_nonnull(request->encoded); /* a broker that forgets it is asked again */
    take_frame(id, 0);
    ck_assert_int_eq(told.calls, 1);
    ck_assert_ptr_null(request->encoded);
    take_frame(id, 1);
    ck_assert_int_eq(told.calls, 2);
}
END_TEST

START_TEST(a_frame_before_the_verdict_counts_as_one)
{
    struct told told = {0};
    struct id128 id;
    ask(LARGE, NULL, &told);
    id = next_generate().generate.id;
    take_frame(id, 0);
    ck_assert_uint_eq(client->unaccepted, 0);
    ck_assert_ptr_null(state_find_request(client, &id)->encoded);
    accept(id);
}
END_TEST

START_TEST(what_waits_is_given_back_with_the_client)
{
    struct told told = {0};
    for (int i = 0; i < 5; i++)
        ask(LARGE, i % 2 ? "ann" : NULL, &told);
    ck_assert_uint_eq(quern_active(client), 5);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, requests_of_one_encoding_have_one_copy_and_a_seed_each);
    tcase_add_test(tests, one_encoding_counts_at_each_client_that_uses_it);
    tcase_add_test(tests, the_first_output_that_was_sent_is_the_one_that_counts);
    tcase_add_test(tests, a_seed_that_nobody_chose_is_another_each_time_and_the_same_when_sent_again);
    tcase_add_test(tests, of_large_ones_few_are_on_their_way);
    tcase_add_test(tests, tenants_give_one_each_in_turn);
    tcase_add_test(tests, a_brief_one_waits_for_no_large_ones_of_others);
    tcase_add_test(tests, too_much_is_refused_and_another_tenant_still_finds_room);
    tcase_add_test(tests, made_up_tenants_do_not_make_more_room);
    tcase_add_test(tests, a_session_that_opens_again_sends_large_ones_one_after_the_other);
    tcase_add_test(tests, a_large_one_is_not_sent_again_while_one_is_still_on_its_way);
    tcase_add_test(tests, nothing_is_kept_of_a_prompt_whose_output_has_begun);
    tcase_add_test(tests, a_frame_before_the_verdict_counts_as_one);
    tcase_add_test(tests, what_waits_is_given_back_with_the_client);
}

int main(void)
{
    return run_tests("client sending", add);
}
