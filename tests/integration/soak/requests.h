/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_REQUESTS_H
#define TESTS_INTEGRATION_SOAK_REQUESTS_H

/* What the soak asks for: kinds of requests that differ in what a worker has to know of an answer's beginning
 * to go on with it. The prompt and a seed alone; what was counted of it (penalties); what was matched of a
 * stop string, or of a grammar; and those that tell log probabilities, which must be the same to the last
 * bit. One goes on to the end of the context, whose room in the journal grows with it; some have prefixes of
 * their own, or none; and one counts for a tenant with a rate, which the pool refuses when it is used up. */

#include <stdbool.h>
#include <stdint.h>

#include <quern.h>

enum {
    SOAK_KINDS = 21,
    SOAK_STOPPING = 2, /* the last so many: they stop at something that stands in the answers of others */
    SOAK_RATED = SOAK_KINDS - SOAK_STOPPING - 1, /* kind; only for clients in the run directory */
    SOAK_RPM = 3,                                /* of its tenant */
    SOAK_MOST_IDS = 1024,
    SOAK_MOST_TEXT = 16384
};

struct expected { /* what a request is answered with */
    uint32_t n_ids, n_text;
    enum quern_reason reason;
    int32_t ids[SOAK_MOST_IDS];
    uint64_t logprobs; /* a hash of all, with the bytes of their ids */
    char text[SOAK_MOST_TEXT];
};

/* The request of a kind. `expected` [SOAK_KINDS] has the answers to those that do not stop, when one is asked
 * for that does. `chat`: the model has a template. What it points at lives until the next call. */
struct quern_request soak_request(int kind, uint32_t tokens, bool chat, const struct expected *expected);

/* The hash with what an output tells: outputs may be cut in another way. It begins with 0. */
uint64_t soak_hash_logprobs(uint64_t hash, const struct quern_output *output);

#endif
