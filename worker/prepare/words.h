/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_WORDS_H
#define WORKER_PREPARE_WORDS_H

/* What of a request bears on sampling and needs the tokenizer → token ids: logit_bias_text, bad_words,
 * dry_sequence_breakers, ignore_eos.
 *
 * A text stands for the ids that the tokenizer makes of it, alone, behind a space and behind a newline: a
 * word in the middle of a text mostly begins with its space. A bias goes to each id of the text alone. A bad
 * word is never completed: its last id is not sampled behind the others. A breaker is met at each id whose
 * text contains it, and behind the ids that it takes. */

#include "common/sampling.h"
#include "worker/prepare/prompt.h"

struct words {
    struct logit_bias
        *biases; /* [n_biases] the request's own, those of texts, and of ids that are not to end it */
    size_t n_biases;
    struct ids bad, sequences; /* struct id_sequences: [n_bad], [n_sequences] */
    size_t n_bad, n_sequences;
    uint32_t *mask; /* [n_words] of dry_breakers; NULL: DRY is off */
    size_t n_words;
};

/* Whether DRY is on for the request. `usual`: its multiplier where the request leaves it out. */
bool words_with_dry(const struct generation *generation, double usual);

/* Whether there is anything to find for the request. */
bool words_are_wanted(const struct generation *generation, bool dry);

/* Finds it. False with the reason: not UTF-8, more ids than there may be, without memory. words_deinit frees
 * what there is either way; zeroed is fine. */
bool words_find(const struct tokenizer *tokenizer, const struct generation *generation, bool dry,
                struct words *ret_words, struct refusal *ret_refusal);
void words_deinit(struct words *words);

/* Lends it to a sampling. */
void words_lend(const struct words *words, struct sampling *sampling);

#endif
