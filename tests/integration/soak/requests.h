/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_REQUESTS_H
#define TESTS_INTEGRATION_SOAK_REQUESTS_H

/* The requests of the soak: kinds that differ in what a worker must know of an answer's beginning to continue
 * it. This is only the prompt and a seed; counts of its tokens (penalties); the match so far of a stop string
 * or a grammar. Some report log probabilities, which must be the same to the last bit. One runs to the end of
 * the context, and its room in the journal grows with it; some have separate prefixes, or none; and one
 * counts for a tenant with a rate limit, which the pool refuses when the limit is used up. */

#include <stdbool.h>
#include <stdint.h>

#include <quern.h>

enum {
    SOAK_KINDS = 21,
    SOAK_STOPPING = 2, /* the last kinds: they stop at text from the answers of others */
    SOAK_RATED = SOAK_KINDS - SOAK_STOPPING - 1, /* a kind; only for clients in the run directory */
    SOAK_RPM = 3,                                /* of its tenant */
    SOAK_MOST_IDS = 1024,
    SOAK_MOST_TEXT = 16384
};

struct expected { /* the answer to a request */
    uint32_t n_ids, n_text;
    enum quern_reason reason;
    int32_t ids[SOAK_MOST_IDS];
    uint64_t logprobs; /* a hash of all of them, with the bytes of their ids */
    char text[SOAK_MOST_TEXT];
};

/* The request of a kind. `expected` [SOAK_KINDS] must have the answers to the kinds that do not stop if this
 * kind stops. `chat`: the model has a chat template. The request borrows memory that is valid until the next
 * call. */
struct quern_request soak_request(int kind, uint32_t tokens, bool chat, const struct expected *expected);

/* Extends the hash, which begins with 0, by an output's log probabilities; it does not depend on how outputs
 * are divided. */
uint64_t soak_hash_logprobs(uint64_t hash, const struct quern_output *output);

#endif
