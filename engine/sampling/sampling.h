/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_SAMPLING_H
#define ENGINE_SAMPLING_SAMPLING_H

/* Sampling: a pure function of (logits, parameters, ids of prompt and output, seed, position).
 *
 * Order:
 *  1. Ids outside the masks and logits that are not finite are dropped.
 *  2. repetition_penalty, for ids in prompt or output: a positive logit is divided by it, a negative one
 *     multiplied (Keskar et al. 2019, arXiv:1909.05858). It comes first because it scales, and is defined on
 *     the model's own score.
 *  3. presence_penalty is subtracted from the logits of ids in the output, and frequency_penalty once for
 *     each occurrence. The prompt does not count. With repeat_last_n, only that many last ids of prompt and
 *     output count, for 2 and 3.
 *  4. DRY is subtracted for ids that would continue a repetition (dry.h).
 *  5. logit_bias is added last, so it can ban or force an id whatever the penalties are. Ids that would
 *     complete a bad word are dropped, and so are barred ids: those that may not end the output yet.
 *  6. The result is cut to the range of float: no legal value gives an infinity that drops an id.
 *  7. top-nσ; top-k; temperature, if dynamic by the entropy of the remaining ids; typical-p; top-p and then
 *     min-p over the remaining ids, min-p relative to the most likely one; XTC, if the generator says so with
 *     its probability: word 0 of Philox4x32-10(seed, (position, block 0 of another counter)). Ties keep the
 *     lower id (filters.h has the sources). At least one id is left.
 *  8. The argmax of logit + Gumbel noise. The noise is a function of Philox4x32-10(seed, position, id)
 *     (Salmon et al. 2011), so nothing depends on the batch, the step or the device. If temperature as a
 *     float is 0 or top_k is 1, sampling is greedy: the argmax after step 6.
 *
 * Arithmetic on logits is in float. This plain C code is the reference for every backend. */

#include <stdbool.h>
#include <stdint.h>

#include "common/sampling.h"

/* How often an id was used, for penalties. */
struct token_use {
    uint32_t in_prompt : 1;
    uint32_t in_output : 20; /* number of times, up to TOKEN_USE_MOST */
    uint32_t repeat : 11; /* on a device: length of the repetition that it would continue, for DRY; else 0 */
};
#define TOKEN_USE_MOST ((1u << 20) - 1)

static inline void token_use_count(struct token_use *use)
{
    use->in_output += use->in_output < TOKEN_USE_MOST;
}

/* Whether sampling needs the uses of all ids, which the backend then keeps: [n_vocab] for each sequence. */
bool sampling_needs_uses(const struct sampling *sampling);

/* Whether it needs the ids themselves, in order. Such a sequence is sampled one id per step: its drafts are
 * not verified. */
bool sampling_needs_history(const struct sampling *sampling);

struct logprob {
    int32_t id;
    float logprob; /* natural logarithm of softmax over all logits, before penalties and filters */
};

/* Scratch of one sampler: memory reused between calls. */
struct sampler;
int sampler_new(uint32_t n_vocab, struct sampler **ret_sampler); /* -ENOMEM */
struct sampler *sampler_free(struct sampler *sampler);

/* The input for one sampled id. */
struct sampler_row {
    const float *logits;          /* [n_vocab], unchanged */
    uint64_t position;            /* the new id's index in the sequence */
    const struct token_use *uses; /* [n_vocab]; NULL if sampling_needs_uses is false */
    const int32_t *history;       /* [n_history] prompt and output; NULL if sampling_needs_history is false */
    uint32_t n_history, n_prompt; /* the first n_prompt are the prompt's */
    const uint32_t *mask;         /* [(n_vocab + 31) / 32]: set bits may be sampled; NULL: all */
    const uint32_t *allowed;      /* the same, of a grammar */
    const int32_t *barred;        /* [n_barred] ids that may not be sampled */
    uint32_t n_barred;
};

/* Samples one id; -1: nothing may be sampled, or no logit is finite. */
int32_t sampler_sample(struct sampler *sampler, const struct sampling *sampling,
                       const struct sampler_row *row);

/* Writes the sampled id's log probability and then those of the `n` most likely ids: n + 1 entries. */
void sampler_logprobs(struct sampler *sampler, const float *logits, int32_t sampled, uint32_t n,
                      struct logprob *ret_logprobs);

/* Philox4x32-10: the counter (position, id) and the key (seed) give 128 random bits. Exposed for tests and
 * kernels. */
void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t ret_random[4]);

#endif
