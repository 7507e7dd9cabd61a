/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_BROKER_RUNNING_H
#define TESTS_UNIT_BROKER_RUNNING_H

/* Requests that run in a broker inside the test, and how they end. */

#include "broker/core/lifecycle.h"
#include "tests/unit/broker/inside.h"

#define ck_assert_text(bytes, text)                                                                          \
    ck_assert_msg(bytes_equal(bytes, bytes_of_string(text)), "%.*s", (int)(bytes).len,                       \
                  (const char *)(bytes).data)

/* Expects the end once on the stream, as the last frame with this seq, and once as a message. */
static inline struct message expect_end(int client, uint64_t seq, enum end_reason reason)
{
    struct message frame = client_listens(client);
    ck_assert_int_eq(frame.kind, MESSAGE_FRAME);
    ck_assert(frame.frame.has_end);
    ck_assert_uint_eq(frame.frame.seq, seq);
    ck_assert_uint_eq(frame.frame.off, seq); /* one byte per token */
    ck_assert_int_eq(frame.frame.end.reason, reason);
    ck_assert_int_eq(client_listens(client).kind, MESSAGE_NONE);
    struct message end = client_hears(client);
    ck_assert_int_eq(end.kind, MESSAGE_END);
    ck_assert_uint_eq(end.end.count, seq);
    ck_assert_int_eq(end.end.end.reason, reason);
    ck_assert_uint_eq(end.end.end.usage.output_tokens, seq);
    return end;
}

static inline void expect_failure(int client, uint64_t seq, enum proto_error error, const char *text)
{
    struct message end = expect_end(client, seq, END_ERROR);
    ck_assert_str_eq(proto_error_name(end.end.end.error), proto_error_name(error));
    ck_assert_text(end.end.end.text, text);
}

/* Admits a request and assigns it to worker 0, which receives the assign. */
static inline struct request *run_on_first(uint8_t name, void (*change)(struct generation *))
{
    enum worker_state before = broker->workers[1].state;
    struct request *request = inside_admit(0, name, change);
    broker->workers[1].state = WORKER_DRAINING;
    lifecycle_dispatch(broker);
    broker->workers[1].state = before;
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
    ck_assert_ptr_eq(request->worker, &broker->workers[0]);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_ASSIGN);
    return request;
}

/* Expects that nothing was sent to the worker. */
static inline void expect_nothing(int worker)
{
    ck_assert_str_eq(message_kind_name(worker_hears(worker).kind), message_kind_name(MESSAGE_NONE));
}

/* Generates `n` tokens, which the client gets. */
static inline void make(const struct request *request, unsigned n)
{
    inside_produce(request, n, END_REASON_COUNT);
    ck_assert_uint_eq(client_listens(0).frame.ids.n, n);
}

#endif
