/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_LOGPROBS_H
#define GATEWAY_FORMS_LOGPROBS_H

/* Log probabilities of the tokens of a choice, in the form that OpenAI's clients expect: natural logarithms.
 * They are written as JSON as they arrive, which spreads the work of a long answer over its duration. */

#include <quern.h>

#include "gateway/json/json_out.h"

enum logprobs_form {
    LOGPROBS_CHAT,       /* of /v1/chat/completions: a list with an object for each token */
    LOGPROBS_COMPLETION, /* of /v1/completions: parallel lists */
};

#define LOGPROBS_LISTS 4

struct logprobs { /* zeroed except for the form: empty */
    enum logprobs_form form;
    bool likely;                           /* tokens come with their most likely alternatives */
    struct json_out lists[LOGPROBS_LISTS]; /* without brackets; chat uses the first */
    uint64_t characters;                   /* in all pieces so far, in UTF-8 */
};

/* Adds the log probabilities of an output. 0 or -ENOMEM. */
int logprobs_add(struct logprobs *logprobs, const struct quern_output *output);

static inline bool logprobs_any(const struct logprobs *logprobs)
{
    return logprobs->lists[0].buffer.len > 0;
}

/* Bytes held. */
static inline size_t logprobs_bytes(const struct logprobs *logprobs)
{
    size_t bytes = 0;
    for (int i = 0; i < LOGPROBS_LISTS; i++)
        bytes += logprobs->lists[i].buffer.len;
    return bytes;
}

/* Writes the value of "logprobs" in a choice: those added since the last call, which are then freed, or
 * "null" if there are none. */
void logprobs_write(struct logprobs *logprobs, struct json_out *out);

void logprobs_deinit(struct logprobs *logprobs);

#endif
