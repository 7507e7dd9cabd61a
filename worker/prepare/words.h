/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_WORDS_H
#define WORKER_PREPARE_WORDS_H

/* Converts the parts of a request that affect sampling and need the tokenizer to token ids: logit_bias_text,
 * bad_words, dry_sequence_breakers, ignore_eos.
 *
 * A text stands for its ids alone, after a space and after a newline, because a word inside a text usually
 * begins with its space. A bias applies to each id of the text alone. A bad word is never completed: its last
 * id is not sampled after the others. A breaker matches each id whose text contains it, and the sequence of
 * its own ids. */

#include "common/sampling.h"
#include "worker/prepare/prompt.h"

struct words {
    struct logit_bias
        *biases; /* [n_biases] for the request's ids, for its texts, and for ids that must not end it */
    size_t n_biases;
    struct ids bad, sequences; /* struct id_sequences: [n_bad], [n_sequences] */
    size_t n_bad, n_sequences;
    uint32_t *mask; /* [n_words] of dry_breakers; NULL: DRY is off */
    size_t n_words;
};

/* Whether DRY is on for the request. `usual`: the multiplier if the request has none. */
bool words_with_dry(const struct generation *generation, double usual);

/* Whether the request has anything to convert. */
bool words_are_wanted(const struct generation *generation, bool dry);

/* Converts it. False with the reason: not UTF-8, too many ids, no memory. Call words_deinit in either case;
 * it takes a zeroed struct too. */
bool words_find(const struct tokenizer *tokenizer, const struct generation *generation, bool dry,
                struct words *ret_words, struct refusal *ret_refusal);
void words_deinit(struct words *words);

/* Lets a sampling borrow them. */
void words_lend(const struct words *words, struct sampling *sampling);

#endif
