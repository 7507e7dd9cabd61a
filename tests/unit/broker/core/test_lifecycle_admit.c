/* SPDX-License-Identifier: MIT */
/* The beginning of a request's life: who may enter, what is fixed then, and what is asked twice. */

#include "broker/core/lifecycle.h"
#include "tests/unit/broker/inside.h"
#include "tests/unit/run.h"

#include <string.h>

#include "common/clock.h"

static uint32_t max_tokens;
static struct bytes model;

static void ask_for(struct generation *generation)
{
    generation->max_tokens = max_tokens;
    generation->model = model;
}

static void ask_for_embedding(struct generation *generation)
{
    generation->embed = true;
    generation->max_tokens = 0;
    generation->model = model;
}

static void ask_for_score(struct generation *generation)
{
    ask_for_embedding(generation);
    generation->prompt.form = PROMPT_TEXT;
    generation->prompt.text = BYTES_LITERAL("q");
    generation->prompt.has_document = true;
    generation->prompt.document = BYTES_LITERAL("d");
}

static void set_up(void)
{
    inside_set_up();
    max_tokens = 100;
    model = (struct bytes){"", 0};
}

/* The refusal of the request 'x' with this reason; nothing of it stays. */
static struct message expect_refusal(void (*change)(struct generation *), enum proto_error error,
                                     const char *text)
{
    uint64_t rejected = broker->counters.rejected, used = broker->journal.used;
    struct message no = client_generates(0, 'x', change);
    ck_assert_int_eq(no.kind, MESSAGE_ERROR);
    ck_assert_str_eq(proto_error_name(no.error.error), proto_error_name(error));
    ck_assert_msg(bytes_equal(no.error.text, bytes_of_string(text)), "%.*s", (int)no.error.text.len,
                  (const char *)no.error.text.data);
    ck_assert_int_eq(no.error.of, MESSAGE_GENERATE);
    ck_assert(no.error.has_id);
    ck_assert_uint_eq(no.error.id.bytes[0], 'x');
    ck_assert_uint_eq(broker->counters.rejected, rejected + 1);
    ck_assert_uint_eq(broker->journal.used, used);
    ck_assert_ptr_null(inside_find(0, 'x'));
    return no;
}

START_TEST(what_is_admitted_is_complete)
{
    max_tokens = 33;
    model = BYTES_LITERAL("m");
    sessions[0]->client = (struct id128){{1}};
    broker->now += 5;
    struct message accepted = client_generates(0, 'r', ask_for);
    const struct request *request = inside_find(0, 'r');
    ck_assert_int_eq(accepted.kind, MESSAGE_ACCEPTED);
    ck_assert(!accepted.accepted.again);
    ck_assert_uint_eq(accepted.accepted.id.bytes[0], 'r');
    ck_assert_uint_eq(accepted.accepted.seed, request->seed);
    ck_assert_uint_eq(accepted.accepted.epoch.boot, INSIDE_BOOT);
    ck_assert_uint_eq(accepted.accepted.epoch.move, 0);
    ck_assert_int_eq(request->state, REQUEST_QUEUED);
    ck_assert_ptr_eq(request->session, sessions[0]);
    ck_assert_uint_eq(request->arrived_ns, broker->now);
    ck_assert_uint_eq(request->key, 0);
    ck_assert(bytes_equal(request->model, BYTES_LITERAL("m")));
    ck_assert(request->model.data > request->body.data); /* it outlives the message */
    ck_assert(!request->embed);
    ck_assert_ptr_nonnull(request->record);
    ck_assert_uint_eq(request->log.reserved, journal_start_bytes(request_overhead()));
    ck_assert_uint_eq(request->growth.most, 33);
    ck_assert_uint_eq(request->growth.credit, 0);
    ck_assert_uint_eq(broker->journal.used, request->log.reserved);
    ck_assert_uint_eq(broker->counters.admitted, 1);
    ck_assert_uint_eq(broker->queue.n, 1);
    ck_assert_uint_eq(broker->admission.queued, 1);
    ck_assert_uint_eq(broker->admission.queued_bytes, request->body.len);
}
END_TEST

static void ask_to_fit(struct generation *generation)
{
    generation->max_tokens = max_tokens;
    generation->fit_context = true;
}

START_TEST(the_pool_bounds_an_answer_where_it_is_asked_to)
{
    broker->options.max_tokens = 99;
    expect_refusal(ask_for, PROTO_TOO_LONG,
                   "max_tokens 100 is above what this pool allows, 99 (--max-tokens)");
    ck_assert_int_eq(client_generates(0, 'f', ask_to_fit).kind, MESSAGE_ACCEPTED);
    ck_assert_uint_eq(inside_find(0, 'f')->growth.most, 99);
    max_tokens = 99;
    ck_assert_int_eq(client_generates(0, 'a', ask_for).kind, MESSAGE_ACCEPTED);
    ck_assert_uint_eq(inside_find(0, 'a')->growth.most, 99);
    max_tokens = 0; /* not said */
    ck_assert_int_eq(client_generates(0, 'n', ask_for).kind, MESSAGE_ACCEPTED);
    ck_assert_uint_eq(inside_find(0, 'n')->growth.most, 99);
    broker->options.max_tokens = 0;
    max_tokens = 100;
    ck_assert_int_eq(client_generates(0, 'b', ask_for).kind, MESSAGE_ACCEPTED);
}
END_TEST

START_TEST(the_same_message_twice_is_one_request_and_another_under_its_id_is_none)
{
    struct message first = client_generates(0, 'r', ask_for);
    uint64_t seed = first.accepted.seed;
    struct message again = client_generates(0, 'r', ask_for);
    ck_assert_int_eq(again.kind, MESSAGE_ACCEPTED);
    ck_assert(again.accepted.again);
    ck_assert_uint_eq(again.accepted.seed, seed);
    ck_assert_uint_eq(broker->counters.admitted, 1);
    ck_assert_uint_eq(broker->queue.n, 1);
    max_tokens++;
    struct message no = client_generates(0, 'r', ask_for);
    ck_assert_int_eq(no.error.error, PROTO_CONFLICT);
    ck_assert(bytes_equal(no.error.text, BYTES_LITERAL("this id was used for another request")));
    broker->draining = true; /* what was known is answered */
    max_tokens--;
    ck_assert_int_eq(client_generates(0, 'r', ask_for).kind, MESSAGE_ACCEPTED);
    broker->draining = false;
    ck_assert(!client_generates(1, 'r', ask_for).accepted.again); /* another's is another */
}
END_TEST

static void ask_for_ann(struct generation *generation)
{
    generation->tenant = BYTES_LITERAL("ann");
}

START_TEST(a_tenant_stands_alone_if_its_client_is_near_and_has_no_key)
{
    sessions[0]->near = sessions[1]->near = true;
    const struct request *one = inside_admit(0, 'a', ask_for_ann), *other = inside_admit(1, 'b', ask_for_ann);
    ck_assert(one->tenancy.alone);
    ck_assert_ptr_eq(one->tenant_share, other->tenant_share); /* whichever session names it */
    ck_assert_ptr_ne(one->share, other->share);
    ck_assert_uint_eq(one->tenant_share->queued, 2);
    sessions[0]->near = false;
    const struct request *far = inside_admit(0, 'c', ask_for_ann);
    ck_assert(far->tenancy.named && !far->tenancy.alone);
    ck_assert_ptr_ne(far->tenant_share, one->tenant_share);
    ck_assert_uint_eq(far->share->queued, 2);
    ck_assert_ptr_null(inside_admit(1, 'd', NULL)->tenant_share);
}
END_TEST

START_TEST(a_request_that_ended_is_answered_with_its_end)
{
    struct request *request = inside_admit(0, 'r', NULL);
    lifecycle_cancel(broker, request);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_END);
    ck_assert(client_generates(0, 'r', NULL).accepted.again);
    struct message end = client_hears(0);
    ck_assert_int_eq(end.kind, MESSAGE_END);
    ck_assert_int_eq(end.end.end.reason, END_CANCELLED);
}
END_TEST

START_TEST(what_no_worker_could_ever_do_is_refused_at_the_door)
{
    model = BYTES_LITERAL("other");
    expect_refusal(ask_for, PROTO_NO_WORKER, "no worker serves the model \"other\"");
    expect_refusal(ask_for_embedding, PROTO_NO_WORKER, "no worker serves the model \"other\"");
    model = (struct bytes){"", 0};
    expect_refusal(ask_for_embedding, PROTO_UNSUPPORTED, LIFECYCLE_NO_EMBEDDINGS);
    broker->workers[0].embedding = 64;
    expect_refusal(ask_for_score, PROTO_UNSUPPORTED, LIFECYCLE_NO_RANKING);
    broker->workers[0].ranks = true;
    inside_admit(0, 'p', ask_for_score);
    broker->workers[0].embedding = 0;
    max_tokens = 4097;
    expect_refusal(ask_for, PROTO_TOO_LONG, "max_tokens 4097 is above the context length 4096");
    broker->workers[1].context = 5000; /* the largest counts */
    inside_admit(0, 'r', ask_for);
    broker->workers[0].context = broker->workers[1].context = 0; /* none has registered: who knows */
    inside_admit(0, 's', ask_for);
    broker->draining = true;
    expect_refusal(ask_for, PROTO_DRAINING, "the pool is shutting down");
    broker->draining = false;
    broker->workers[0].state = broker->workers[1].state = WORKER_FAILED;
    expect_refusal(ask_for, PROTO_NO_WORKER, "no worker is left");
}
END_TEST

START_TEST(as_many_tokens_as_the_context_has_may_be_asked_for)
{
    max_tokens = 4096;
    inside_admit(0, 'r', ask_for);
}
END_TEST

START_TEST(an_embedding_needs_room_for_the_largest_that_there_may_be)
{
    broker->workers[0].embedding = 16;
    broker->workers[1].embedding = 64;
    struct request *request = inside_admit(0, 'r', ask_for_embedding);
    ck_assert(request->embed);
    ck_assert_uint_eq(request->log.reserved, journal_start_bytes(request_overhead()));
    ck_assert_uint_eq(request->growth.most, 1);
    ck_assert_uint_eq(request->growth.token_bytes, 64 * sizeof(float));
    broker->workers[0].embedding = broker->workers[1].embedding = 0;
    broker->workers[0].state = WORKER_STARTING; /* it may make any */
    broker->workers[0].model[0] = 0;
    request = inside_admit(0, 's', ask_for_embedding);
    ck_assert_uint_eq(request->growth.token_bytes, PROTO_MAX_EMBEDDING * sizeof(float));
}
END_TEST

static void ask_for_logprobs(struct generation *generation)
{
    generation->max_tokens = 10;
    generation->logprobs = 5;
    generation->pieces = true;
}

START_TEST(what_frames_tell_beside_tokens_is_reckoned_too)
{
    struct request *request = inside_admit(0, 'r', ask_for_logprobs);
    ck_assert_uint_eq(request->growth.most, 10);
    ck_assert_uint_eq(request->growth.token_bytes, journal_token_bytes(5, true));
}
END_TEST

START_TEST(a_limit_that_is_not_said_is_the_largest_context_or_what_the_journal_holds)
{
    max_tokens = 0;
    broker->workers[0].context = broker->workers[1].context = 0; /* not known yet */
    struct request *request = inside_admit(0, 'q', ask_for);
    ck_assert_uint_eq(request->growth.most, broker->journal.limit * 3 / 4 / journal_token_bytes(0, false));
    broker->workers[1].context = 5000;
    request = inside_admit(0, 'r', ask_for);
    ck_assert_uint_eq(request->growth.most, 5000);
    broker->journal.limit = (uint64_t)1 << 20;
    request = inside_admit(0, 's', ask_for);
    ck_assert_uint_eq(request->growth.most, (3 << 18) / journal_token_bytes(0, false));
}
END_TEST

static void ask_for_what_fits(struct generation *generation)
{
    generation->max_tokens = INT32_MAX;
    generation->fit_context = true;
}

START_TEST(more_than_the_context_may_be_asked_for_where_the_worker_lowers_it)
{
    broker->workers[0].context = broker->workers[1].context = 4096;
    struct request *request = inside_admit(0, 'r', ask_for_what_fits);
    ck_assert_uint_eq(request->growth.most, 4096);
}
END_TEST

START_TEST(who_is_refused_for_want_of_room_is_told_when_to_come_back)
{
    broker->admission.max_client_requests = 1;
    inside_admit(0, 'r', NULL);
    struct message no =
        expect_refusal(NULL, PROTO_OVERLOADED,
                       "this client has 1 request unfinished; at most 1 are allowed (client-requests)");
    ck_assert_uint_eq(no.error.retry_after_ms, 1000);
    broker->admission.max_client_requests = 0;
    broker->journal.limit = 1000;
    no = client_generates(0, 'x', NULL);
    ck_assert_int_eq(no.error.error, PROTO_TOO_LONG);
    ck_assert_uint_eq(no.error.retry_after_ms, 0); /* never */
}
END_TEST

START_TEST(who_has_had_his_tokens_is_told_when_there_are_more)
{
    static struct client_key key;
    key = (struct client_key){.number = 5};
    HASH_ADD(by_number, broker->client_keys.by_number, number, sizeof key.number, &key);
    sessions[0]->key = 5;
    sessions[0]->client = (struct id128){{77}};
    broker->allowance.tokens = 60;
    struct request *request = inside_admit(0, 'r', NULL);
    ck_assert_uint_eq(request->key, 5);
    ck_assert_mem_eq(&request->client, &sessions[0]->client, sizeof request->client);
    allowance_charge(&broker->allowance, &key, 60, broker->now);
    struct message no =
        expect_refusal(NULL, PROTO_OVERLOADED,
                       "this client's key has used its 60 tokens a minute (client-tokens): more in 2 s");
    ck_assert_uint_eq(no.error.retry_after_ms, 1001);
    ck_assert_int_eq(client_generates(1, 'r', NULL).kind, MESSAGE_ACCEPTED);
    HASH_CLEAR(by_number, broker->client_keys.by_number);
}
END_TEST

/* What ended and was read makes room for what comes, as far as it takes. */
START_TEST(room_is_made_of_what_was_read)
{
    enum { READ = 12 };
    max_tokens = 1;
    const uint64_t needed = journal_start_bytes(request_overhead());
    for (uint8_t i = 0; i < READ; i++) {
        lifecycle_cancel(broker, inside_admit(0, i, NULL));
        ck_assert_int_eq(client_hears(0).kind, MESSAGE_END);
        lifecycle_taken(broker, sessions[0], inside_id(i));
    }
    struct journal_log others = {0}; /* which take all the rest */
    struct journal *journal = &broker->journal;
    ck_assert_int_eq(journal_reserve(journal, &others, journal->limit - journal->used - needed), 0);
    inside_admit(1, 's', ask_for);
    ck_assert_uint_eq(broker->ledger.n, READ + 1);
    journal_extend(journal, &others, others.reserved - needed + 1);
    inside_admit(1, 't', ask_for);
    ck_assert_ptr_null(inside_find(0, 0)); /* the oldest */
    ck_assert_uint_eq(broker->ledger.n, READ + 1);
    journal_release(journal, &others);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, inside_tear_down);
    tcase_add_test(tests, what_is_admitted_is_complete);
    tcase_add_test(tests, the_pool_bounds_an_answer_where_it_is_asked_to);
    tcase_add_test(tests, the_same_message_twice_is_one_request_and_another_under_its_id_is_none);
    tcase_add_test(tests, a_request_that_ended_is_answered_with_its_end);
    tcase_add_test(tests, a_tenant_stands_alone_if_its_client_is_near_and_has_no_key);
    tcase_add_test(tests, what_no_worker_could_ever_do_is_refused_at_the_door);
    tcase_add_test(tests, more_than_the_context_may_be_asked_for_where_the_worker_lowers_it);
    tcase_add_test(tests, as_many_tokens_as_the_context_has_may_be_asked_for);
    tcase_add_test(tests, an_embedding_needs_room_for_the_largest_that_there_may_be);
    tcase_add_test(tests, what_frames_tell_beside_tokens_is_reckoned_too);
    tcase_add_test(tests, a_limit_that_is_not_said_is_the_largest_context_or_what_the_journal_holds);
    tcase_add_test(tests, who_is_refused_for_want_of_room_is_told_when_to_come_back);
    tcase_add_test(tests, who_has_had_his_tokens_is_told_when_there_are_more);
    tcase_add_test(tests, room_is_made_of_what_was_read);
}

int main(void)
{
    return run_tests("broker/lifecycle_admit", add);
}
