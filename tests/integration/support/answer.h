/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SUPPORT_ANSWER_H
#define TESTS_INTEGRATION_SUPPORT_ANSWER_H

/* Collects the output of a request and checks the promises of the stream as it arrives: ids contiguous from
 * 0, one end, nothing after it, and the end's count equal to the ids seen. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quern.h>
#include "common/bytes.h"

struct answer {
    struct ids ids;
    struct buffer text;
    unsigned ends;
    enum quern_reason reason;
    char error[64];
    char error_text[512];
    uint32_t retry_after_ms;
    uint32_t prompt_tokens, cached_tokens, output_tokens, drafted_tokens, accepted_tokens;
    uint64_t seed;
    unsigned outputs; /* callbacks */
};

/* A quern_output_fn; `arg` is a zeroed struct answer. A broken promise fails the running Check test. */
void answer_collect(void *arg, const struct quern_output *output);

void answer_deinit(struct answer *answer);

/* Connects to a pool; fails the test on an error. */
struct quern *connect_to(const char *endpoint);

/* Dispatches until all answers have ended; fails the test after timeout_s. */
void await_answers(struct quern *client, struct answer *answers, size_t n, int timeout_s);

/* A request sampled with a fixed seed: repeatable, and unlike a random model's greedy answer, which repeats a
 * single id and would hide mistakes. It may end before max_tokens, by an end id. */
struct quern_request seeded(const char *prompt, uint32_t max_tokens);

/* A greedy request: with the tiny model it never ends before max_tokens. */
struct quern_request endless(const char *prompt, uint32_t max_tokens);

/* Sends a request and returns at once; fails the test if it is not accepted. */
struct quern_id send_request(struct quern *client, const struct quern_request *request,
                             struct answer *answer);

/* send_request with a seeded request. */
struct quern_id ask(struct quern *client, const char *prompt, uint32_t max_tokens, struct answer *answer);

/* Dispatches until the answer has at least n ids; fails the test after timeout_s. */
void await_ids(struct quern *client, struct answer *answer, size_t n, int timeout_s);

#endif
