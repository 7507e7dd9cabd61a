/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_GENERATION_H
#define GATEWAY_GENERATION_H

/* What answers an exchange that asks for text: one request of the pool for each choice, told in the form of
 * the client's family.
 *
 * It lives until all its requests have ended, which may be after the exchange: a client that goes away ends
 * them, and their ends are waited for. A refusal by the pool is an HTTP error as long as nothing was said,
 * and an error in the stream afterwards. */

#include "gateway/exchange.h"
#include "gateway/logprobs.h"
#include "gateway/parameters.h"

struct generation;

struct choice {
    struct generation *generation;
    uint32_t index;
    struct quern_id id;
    bool running;
    enum quern_reason reason;
    struct buffer text;       /* all of it, where the answer is one body */
    struct logprobs logprobs; /* that are not told yet */
};

/* How a family tells. Each appends to `out`. */
struct dialect {
    const char *name;
    const char *stream_type; /* content type of a stream */
    /* A stream: what comes first; a piece of a choice's text (perhaps its last, and none where there are only
     * log probabilities to tell); the end of a choice; what comes last; an error that ends it. */
    void (*begin)(struct generation *generation, struct json_out *out);
    void (*piece)(struct choice *choice, struct bytes text, struct json_out *out);
    void (*end)(struct choice *choice, struct json_out *out);
    void (*finish)(struct generation *generation, struct json_out *out);
    void (*fail)(struct generation *generation, const struct refusal *refusal, struct json_out *out);
    /* One body. */
    void (*whole)(struct generation *generation, struct json_out *out);
};

struct generation {
    struct exchange *exchange; /* NULL: nobody is there any more */
    struct gateway *gateway;
    struct quern *client;
    const struct dialect *dialect;
    bool stream, begun, include_usage;
    char id[33];                                          /* hexadecimal */
    int64_t created;                                      /* seconds since 1970 */
    char *model;                                          /* its name */
    uint64_t begun_ns, first_ns;                          /* the first id; 0: not yet */
    uint32_t prompt_tokens, cached_tokens, output_tokens; /* the prompt counts once, output of all choices */
    double queue_ms, prefill_ms, decode_ms;               /* the longest of any choice */
    double prepare_ms, wait_ms, lookup_ms;                /* parts of that prefill_ms */
    struct json_out out;                                  /* of one callback; reused */
    struct key *key;                                      /* that it counts for */
    uint64_t asked_tokens;                                /* at most made by all choices */
    uint32_t running, n;
    struct choice choices[];
};

/* A handler's whole work: reads the body by the rows, and answers the exchange with what it asks for.
 * `missing` names the parameter without which there is nothing to do. `chat`: a family whose prompts are what
 * a user says, and which streams unless it is told not to. */
void generation_handle(struct exchange *exchange, const struct json_row *rows, const char *missing, bool chat,
                       const struct dialect *dialect);

#endif
