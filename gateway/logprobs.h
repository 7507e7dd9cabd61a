/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_LOGPROBS_H
#define GATEWAY_LOGPROBS_H

/* Log probabilities of the tokens of a choice, between the pool and an answer: gathered as outputs come,
 * written as OpenAI's clients expect them. Natural logarithms, as theirs. */

#include <quern.h>

#include "gateway/json_out.h"

struct logprobs {          /* zeroed: empty */
    uint32_t width;        /* entries of a token: its own, then the most likely ones, best first */
    struct buffer entries; /* of struct logprob_entry, [tokens][width] */
    struct buffer bytes;   /* of their pieces, one after another */
    uint64_t characters;   /* of all pieces that were written, in UTF-8 */
};

/* Adds what an output brings. 0 or -ENOMEM. */
int logprobs_add(struct logprobs *logprobs, const struct quern_output *output);

static inline bool logprobs_any(const struct logprobs *logprobs)
{
    return logprobs->entries.len > 0;
}

/* Bytes that are held. */
static inline size_t logprobs_bytes(const struct logprobs *logprobs)
{
    return logprobs->entries.len + logprobs->bytes.len;
}

/* The value of "logprobs" in a choice of /v1/chat/completions, and of /v1/completions; "null" where there are
 * none. What was written is not held any more. */
void logprobs_write_chat(struct logprobs *logprobs, struct json_out *out);
void logprobs_write_completion(struct logprobs *logprobs, struct json_out *out);

void logprobs_deinit(struct logprobs *logprobs);

#endif
