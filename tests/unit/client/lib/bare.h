/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CLIENT_LIB_BARE_H
#define TESTS_UNIT_CLIENT_LIB_BARE_H

/* A client without a network and with a clock that the test sets: the test reads what it sends, and hands it
 * messages as structs. So every timer is tested to the nanosecond, and every state with every message of the
 * broker. */

#include "client/lib/core/state.h"

#include <check.h>

extern struct quern *client;
extern void *broker; /* the other end of its DEALER */

/* Checked fixtures. The clock is at a thousand seconds; hello was sent and read. */
void bare_set_up(void);
void bare_tear_down(void);

/* Takes messages from both sockets, as the client's loop does when their descriptors are readable. */
void bare_take(void);

/* Opens the session, as of now. */
void bare_open(void);

/* The next message that the client sent, valid until the next call; its kind is MESSAGE_NONE if there is
 * none. */
struct message bare_next(void);
#define ck_assert_says(what)  ck_assert_str_eq(message_kind_name(bare_next().kind), message_kind_name(what))
#define ck_assert_says_none() ck_assert_says(MESSAGE_NONE)

/* The encoded message, valid until the next call. */
struct bytes bare_encode(const struct message *message);

/* The last arguments of a request's callbacks, and the number of calls. */
struct told {
    int calls, ends, admissions, readings;
    struct quern_admitted admitted;
    struct quern_progress progress;
    uint64_t index;
    size_t n_ids, text_len, n_logprobs;
    int32_t ids[8];
    char text[64];
    struct quern_logprob logprobs[16];
    const struct quern_piece *pieces;
    uint8_t prompt_digest[16];
    struct quern_end end; /* its texts are copies */
    char error[64], error_text[256];
};
void bare_output(void *arg, const struct quern_output *output); /* `arg`: a struct told */

/* A request in this state, with BARE_WIRE as its generate, sent and last heard of now. */
struct request *bare_request(enum request_state state, struct told *told);
#define BARE_WIRE "the bytes of a generate"
/* Whether the next message is that generate. */
bool bare_next_is_generate(void);

#endif
