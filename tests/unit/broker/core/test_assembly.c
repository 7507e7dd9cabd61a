/* SPDX-License-Identifier: MIT */
/* A generate that comes in parts: in order or not, whole or never, of one session beside another. */

#include "broker/core/assembly.h"
#include "tests/unit/broker/inside.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

#include "broker/core/lifecycle.h"
#include "broker/core/lifecycle_sessions.h"
#include "broker/core/upkeep.h"
#include "common/clock.h"

static struct buffer whole; /* the generate that is sent */

static void tear_down(void)
{
    buffer_deinit(&whole);
    inside_tear_down();
}

/* Makes `whole` a generate of that name, with so many bytes of text. */
static void make(uint8_t name, size_t bytes, const char *tenant)
{
    struct message message = {.kind = MESSAGE_GENERATE};
    char *text = malloc(bytes);
    memset(text, 'x', bytes);
    generation_defaults(&message.generate.generation);
    message.generate.id = inside_id(name);
    message.generate.generation.prompt.form = PROMPT_TEXT;
    message.generate.generation.prompt.text = (struct bytes){text, bytes};
    message.generate.generation.tenant = bytes_of_string(tenant);
    whole.len = 0;
    ck_assert_int_eq(message_encode(&message, &whole), 0);
    free(text);
}

static struct message part_of(uint8_t name, size_t at, size_t len)
{
    struct message part = {.kind = MESSAGE_GENERATE_PART};
    part.generate_part.id = inside_id(name);
    part.generate_part.total = (uint32_t)whole.len;
    part.generate_part.at = (uint32_t)at;
    part.generate_part.data = (struct bytes){whole.data + at, len};
    return part;
}

static void say(int client, uint8_t name, size_t at, size_t len)
{
    const struct message part = part_of(name, at, len);
    client_says(client, &part);
}

/* All of `whole`, so many bytes at a time. */
static void say_all(int client, uint8_t name, size_t step)
{
    for (size_t at = 0; at < whole.len; at += step)
        say(client, name, at, whole.len - at < step ? whole.len - at : step);
}

static void expect_nothing(int client)
{
    ck_assert_int_eq(client_hears(client).kind, MESSAGE_NONE);
}

static void expect_error_of(int client, enum message_kind of, uint8_t name, enum proto_error error,
                            const char *text)
{
    const struct message no = client_hears(client);
    ck_assert_str_eq(message_kind_name(no.kind), "error");
    ck_assert_str_eq(message_kind_name(no.error.of), message_kind_name(of));
    ck_assert_uint_eq(no.error.id.bytes[0], name);
    ck_assert_str_eq(proto_error_name(no.error.error), proto_error_name(error));
    ck_assert_msg(bytes_equal(no.error.text, bytes_of_string(text)), "%.*s", (int)no.error.text.len,
                  (const char *)no.error.text.data);
    expect_nothing(client);
}

static void expect_error(int client, uint8_t name, enum proto_error error, const char *text)
{
    expect_error_of(client, MESSAGE_GENERATE, name, error, text);
}

static void expect_accepted(int client, bool again)
{
    const struct message yes = client_hears(client);
    ck_assert_str_eq(message_kind_name(yes.kind), "accepted");
    ck_assert_int_eq(yes.accepted.again, again);
}

/* Nothing is held for anybody. */
static void expect_all_given_back(void)
{
    ck_assert_uint_eq(broker->admission.queued_bytes, 0);
    ck_assert_ptr_null(broker->admission.shares.by_id);
    ck_assert_ptr_null(broker->assemblies);
    ck_assert_uint_eq(vault_used(broker->journal.vault), 0);
}

START_TEST(parts_are_one_request_however_they_are_cut)
{
    static const size_t steps[] = {1, 7, 1000, 100000};
    for (uint8_t i = 0; i < 4; i++) {
        make((uint8_t)('a' + i), i == 0 ? 50 : 5000, "");
        say_all(0, (uint8_t)('a' + i), steps[i]);
        expect_accepted(0, false);
        expect_nothing(0);
        const struct request *request = inside_find(0, (uint8_t)('a' + i));
        ck_assert_ptr_nonnull(request);
        ck_assert_uint_eq(request->body.len, whole.len);
        ck_assert_mem_eq(request->body.data, whole.data, whole.len);
        ck_assert_uint_eq(broker->admission.queued, 1);
        lifecycle_dispatch(broker);
        ck_assert_int_eq(request->state, REQUEST_RUNNING);
    }
    ck_assert_uint_eq(broker->admission.queued_bytes, 0);
    ck_assert_uint_eq(broker->counters.admitted, 4);
}
END_TEST

START_TEST(the_same_bytes_are_the_same_request_in_one_message_or_in_parts)
{
    make('r', 300, "");
    say_all(0, 'r', 100);
    expect_accepted(0, false);
    client_says_bytes(0, whole.data, whole.len);
    expect_accepted(0, true);
    const size_t used = vault_used(broker->journal.vault);
    say(0, 'r', 0, 100);
    ck_assert_uint_eq(vault_used(broker->journal.vault), used); /* they take no memory */
    say(0, 'r', 100, whole.len - 100);
    expect_accepted(0, true);
    expect_nothing(0);
    /* Other bytes, another length. */
    say(0, 'r', 0, 100);
    whole.data[150] ^= 1;
    say(0, 'r', 100, 100);
    expect_error(0, 'r', PROTO_CONFLICT, "this id was used for another request");
    say(0, 'r', 200, whole.len - 200);
    expect_nothing(0);
    make('r', 301, "");
    say(0, 'r', 0, 100);
    expect_error(0, 'r', PROTO_CONFLICT, "this id was used for another request");
    ck_assert_uint_eq(broker->counters.admitted, 1);
}
END_TEST

START_TEST(one_that_ended_is_told_again_with_its_end)
{
    make('r', 300, "");
    say_all(0, 'r', 100);
    expect_accepted(0, false);
    lifecycle_dispatch(broker);
    inside_produce(inside_find(0, 'r'), 1, END_STOP);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_END);
    say_all(0, 'r', 100);
    expect_accepted(0, true);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_END);
    /* Forgotten in the middle of that: what comes is of nobody, and whoever sent it begins anew. */
    say(0, 'r', 0, 100);
    inside_pass(100 * CLOCK_NS_PER_S);
    lifecycle_forget(broker);
    ck_assert_ptr_null(inside_find(0, 'r'));
    say(0, 'r', 100, 100);
    expect_error(0, 'r', PROTO_OVERLOADED, "the request expired while it was being sent again");
    say(0, 'r', 200, whole.len - 200);
    expect_nothing(0);
    say_all(0, 'r', 100);
    expect_accepted(0, false);
}
END_TEST

START_TEST(parts_that_do_not_follow_one_another_are_refused_once)
{
    make('r', 300, "");
    say(0, 'r', 100, 100);
    expect_error(0, 'r', PROTO_BAD_REQUEST,
                 "generate_part: at: 100, but the first part of this request has not been received");
    for (size_t wrong = 50; wrong <= 150; wrong += 100) { /* one twice, one is missing */
        say(0, 'r', 0, 100);
        say(0, 'r', wrong, 100);
        char text[100];
        snprintf(text, sizeof text, "generate_part: at: %zu, but 100 bytes have been received", wrong);
        expect_error(0, 'r', PROTO_BAD_REQUEST, text);
        expect_all_given_back();
        say(0, 'r', 100, 100);
        say(0, 'r', 200, 100);
        expect_nothing(0); /* and what follows is passed over */
    }
    say(0, 'r', 0, 100);
    struct message longer = part_of('r', 100, 100);
    longer.generate_part.total++;
    client_says(0, &longer);
    char text[100];
    snprintf(text, sizeof text, "generate_part: total: %zu, but earlier parts have %zu", whole.len + 1,
             whole.len);
    expect_error(0, 'r', PROTO_BAD_REQUEST, text);
    expect_all_given_back();
    say(0, 'r', 0, 100); /* of another request in between */
    say(0, 's', 100, 100);
    expect_error(0, 's', PROTO_BAD_REQUEST,
                 "generate_part: at: 100, but the first part of this request has not been received");
    say(0, 'r', 100, 100);
    expect_nothing(0);
    assembly_drop(broker, sessions[0]);
    expect_all_given_back();
}
END_TEST

START_TEST(a_first_part_begins_anew)
{
    make('r', 300, "");
    say(0, 'r', 0, 100);
    say(0, 'r', 100, 100);
    say(0, 'r', 0, 150);
    ck_assert_uint_eq(broker->admission.queued_bytes, whole.len);
    make('s', 200, "");
    say(0, 's', 0, 50); /* a session sends one at a time */
    ck_assert_uint_eq(broker->admission.queued_bytes, whole.len);
    say(0, 's', 50, whole.len - 50);
    expect_accepted(0, false);
    expect_nothing(0);
    ck_assert_ptr_null(inside_find(0, 'r'));
    ck_assert_ptr_nonnull(inside_find(0, 's'));
}
END_TEST

START_TEST(what_is_no_generate_of_that_id_and_tenant_is_refused)
{
    make('r', 300, "");
    say(0, 's', 0, whole.len);
    expect_error(0, 's', PROTO_BAD_REQUEST, "generate_part: the parts are not a generate of this id");
    whole.data[whole.len - 1] = 0xc1;
    say_all(0, 'r', 100);
    const struct message no = client_hears(0);
    ck_assert_int_eq(no.error.error, PROTO_BAD_REQUEST);
    ck_assert_int_eq(no.error.of, MESSAGE_GENERATE);
    whole.len = 0;
    ck_assert_int_eq(message_encode(&(struct message){.kind = MESSAGE_BYE}, &whole), 0);
    say(0, 'r', 0, whole.len);
    expect_error(0, 'r', PROTO_BAD_REQUEST, "generate_part: the parts are not a generate of this id");
    make('r', 300, "ann");
    say(0, 'r', 0, whole.len);
    expect_error(0, 'r', PROTO_BAD_REQUEST, "generate_part: tenant: not that of the generate");
    expect_all_given_back();
    struct message part = part_of('r', 0, whole.len);
    part.generate_part.tenant = BYTES_LITERAL("bob");
    client_says(0, &part);
    expect_error(0, 'r', PROTO_BAD_REQUEST, "generate_part: tenant: not that of the generate");
    expect_all_given_back();
    part.generate_part.tenant = BYTES_LITERAL("ann");
    client_says(0, &part);
    expect_accepted(0, false);
    ck_assert(inside_find(0, 'r')->tenancy.named);
}
END_TEST

/* As its generate would be in one message: for a worker that is not there, or a request that needs more. */
START_TEST(a_whole_one_is_refused_like_any_other)
{
    struct message message = {.kind = MESSAGE_GENERATE};
    generation_defaults(&message.generate.generation);
    message.generate.id = inside_id('r');
    message.generate.generation.prompt.text = BYTES_LITERAL("Hi");
    message.generate.generation.model = BYTES_LITERAL("other");
    ck_assert_int_eq(message_encode(&message, &whole), 0);
    say_all(0, 'r', 10);
    expect_error(0, 'r', PROTO_NO_WORKER, "no worker serves the model \"other\"");
    expect_all_given_back();
    ck_assert_uint_eq(broker->counters.rejected, 1);
}
END_TEST

START_TEST(what_is_longer_than_the_pool_takes_is_refused_by_its_first_part)
{
    make('r', 300, "");
    struct message part = part_of('r', 0, 100);
    part.generate_part.total = (4 << 20) + 1; /* what small contexts have */
    client_says(0, &part);
    expect_error(0, 'r', PROTO_TOO_LONG, "the request has 4.00 MiB; the pool accepts 4 MiB");
    broker->workers[1].context = 1 << 20;
    client_says(0, &part);
    expect_nothing(0);
    part.generate_part.total = (8 << 20) + 1;
    client_says(0, &part);
    expect_error(
        0, 'r', PROTO_TOO_LONG,
        "the request has 8.00 MiB; the pool accepts 8 MiB, 8 for each token of its context of 1048576");
    broker->workers[1].context = UINT32_MAX;
    part.generate_part.total = UINT32_MAX;
    client_says(0, &part);
    expect_error(0, 'r', PROTO_TOO_LONG, "the request has 4.00 GiB; the pool accepts 32 MiB");
    expect_all_given_back();
}
END_TEST

/* The rule of shares: one session has half of what is left, and another still finds room. */
START_TEST(unfinished_ones_take_from_the_share_of_their_session)
{
    broker->admission.max_queued_bytes = 4000;
    make('r', 1900, "");
    say(0, 'r', 0, 100);
    expect_nothing(0);
    ck_assert_uint_eq(broker->admission.queued_bytes, whole.len);
    make('s', 1200, "");
    client_says_bytes(0, whole.data, whole.len);
    struct message no = client_hears(0);
    ck_assert_int_eq(no.error.error, PROTO_OVERLOADED);
    ck_assert_uint_gt(no.error.retry_after_ms, 0);
    make('t', 900, "");
    client_says_bytes(1, whole.data, whole.len);
    expect_accepted(1, false);
    /* A first part for which there is no room is told so, once. */
    make('u', 2100, "");
    say_all(1, 'u', 500);
    no = client_hears(1);
    ck_assert_int_eq(no.error.error, PROTO_OVERLOADED);
    ck_assert_uint_gt(no.error.retry_after_ms, 0);
    ck_assert_uint_eq(no.error.id.bytes[0], 'u');
    expect_nothing(1);
}
END_TEST

/* Tenants of one session have shares of their own. */
START_TEST(unfinished_ones_count_for_their_tenant)
{
    broker->admission.max_queued_bytes = 10000;
    make('r', 4000, "ann");
    struct message part = part_of('r', 0, 100);
    part.generate_part.tenant = BYTES_LITERAL("ann");
    client_says(0, &part);
    expect_nothing(0);
    ck_assert_uint_eq(HASH_CNT(hh, broker->admission.shares.by_id), 2); /* the session's, and the tenant's */
    struct share *share, *next;
    HASH_ITER(hh, broker->admission.shares.by_id, share, next)
    {
        ck_assert_uint_eq(share->queued_bytes, whole.len);
    }
    assembly_drop(broker, sessions[0]);
    expect_all_given_back();
}
END_TEST

START_TEST(without_memory_it_is_to_be_tried_again)
{
    broker->workers[0].context = 1 << 22;
    make('r', 300, "");
    struct message part = part_of('r', 0, 100);
    part.generate_part.total = 20 << 20; /* more than the vault of this test has */
    client_says(0, &part);
    expect_error(0, 'r', PROTO_OVERLOADED, "no memory for a request of 20 MiB");
    expect_all_given_back();
}
END_TEST

START_TEST(a_cancel_in_between_gives_it_back)
{
    make('r', 300, "");
    say(0, 'r', 0, 100);
    struct message cancel = {.kind = MESSAGE_CANCEL};
    cancel.cancel.id = inside_id('s');
    client_says(0, &cancel);
    expect_error_of(0, MESSAGE_CANCEL, 's', PROTO_UNKNOWN_REQUEST, "unknown request, or it ended long ago");
    ck_assert_uint_eq(broker->admission.queued_bytes, whole.len);
    cancel.cancel.id = inside_id('r');
    client_says(0, &cancel);
    expect_error_of(0, MESSAGE_CANCEL, 'r', PROTO_UNKNOWN_REQUEST, "unknown request, or it ended long ago");
    expect_all_given_back();
    say(0, 'r', 100, 100);
    expect_nothing(0);
    say_all(0, 'r', 100);
    expect_accepted(0, false);
}
END_TEST

START_TEST(what_does_not_come_whole_in_time_is_given_back)
{
    make('r', 300, "");
    say(0, 'r', 0, 100);
    inside_pass(20 * CLOCK_NS_PER_S);
    say(0, 'r', 100, 100);
    inside_pass(10 * CLOCK_NS_PER_S - 1);
    assembly_expire(broker);
    expect_nothing(0);
    assembly_stood_still(broker, 5 * CLOCK_NS_PER_S); /* nothing could come */
    inside_pass(5 * CLOCK_NS_PER_S);
    assembly_expire(broker);
    expect_nothing(0);
    inside_pass(1);
    assembly_expire(broker);
    expect_error(0, 'r', PROTO_DEADLINE, "its parts took too long: 200 bytes of 343 bytes received");
    expect_all_given_back();
    assembly_expire(broker);
    say(0, 'r', 200, whole.len - 200);
    expect_nothing(0);
    /* What is larger has longer. */
    make('r', 300, "");
    struct message part = part_of('r', 0, 100);
    part.generate_part.total = 1 << 20;
    client_says(0, &part);
    inside_pass(46 * CLOCK_NS_PER_S - 1);
    assembly_expire(broker);
    expect_nothing(0);
    inside_pass(1);
    assembly_expire(broker);
    ck_assert_int_eq(client_hears(0).error.error, PROTO_DEADLINE);
}
END_TEST

START_TEST(a_session_that_closes_leaves_nothing)
{
    make('r', 300, "");
    say(0, 'r', 0, 100);
    ck_assert_uint_eq(broker->admission.queued_bytes, whole.len);
    session_doom(&broker->sessions, sessions[0]);
    broker_upkeep(broker);
    sessions[0] = NULL;
    expect_all_given_back();
}
END_TEST

START_TEST(a_pool_that_drains_takes_no_more)
{
    make('r', 300, "");
    say(0, 'r', 0, 100);
    broker->draining = true;
    say(0, 'r', 100, 100);
    expect_error(0, 'r', PROTO_DRAINING, "the pool is shutting down");
    expect_all_given_back();
    say(0, 'r', 0, 100);
    expect_error(0, 'r', PROTO_DRAINING, "the pool is shutting down");
}
END_TEST

/* Who has said no hello is nobody, and his parts are nobody's. */
START_TEST(parts_of_a_stranger_are_refused)
{
    assembly_drop(broker, sessions[0]);
    session_close(&broker->sessions, sessions[0]);
    sessions[0] = NULL;
    make('r', 300, "");
    say(0, 'r', 0, 100);
    ck_assert_int_eq(client_hears(0).error.error, PROTO_HELLO_REQUIRED);
    expect_all_given_back();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, inside_set_up, tear_down);
    tcase_add_test(tests, parts_are_one_request_however_they_are_cut);
    tcase_add_test(tests, the_same_bytes_are_the_same_request_in_one_message_or_in_parts);
    tcase_add_test(tests, one_that_ended_is_told_again_with_its_end);
    tcase_add_test(tests, parts_that_do_not_follow_one_another_are_refused_once);
    tcase_add_test(tests, a_first_part_begins_anew);
    tcase_add_test(tests, what_is_no_generate_of_that_id_and_tenant_is_refused);
    tcase_add_test(tests, a_whole_one_is_refused_like_any_other);
    tcase_add_test(tests, what_is_longer_than_the_pool_takes_is_refused_by_its_first_part);
    tcase_add_test(tests, unfinished_ones_take_from_the_share_of_their_session);
    tcase_add_test(tests, unfinished_ones_count_for_their_tenant);
    tcase_add_test(tests, without_memory_it_is_to_be_tried_again);
    tcase_add_test(tests, a_cancel_in_between_gives_it_back);
    tcase_add_test(tests, what_does_not_come_whole_in_time_is_given_back);
    tcase_add_test(tests, a_session_that_closes_leaves_nothing);
    tcase_add_test(tests, a_pool_that_drains_takes_no_more);
    tcase_add_test(tests, parts_of_a_stranger_are_refused);
}

int main(void)
{
    return run_tests("broker/assembly", add);
}
