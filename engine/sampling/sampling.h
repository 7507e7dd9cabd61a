/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_SAMPLING_H
#define ENGINE_SAMPLING_SAMPLING_H

/* Sampling: a pure function of (logits, parameters, counts of what was used, seed, position).
 *
 * Order:
 *   1. Ids outside the masks and logits that are not finite drop out.
 *   2. repetition_penalty, for ids that stand in prompt or output: a positive logit is divided by it, a
 * negative one multiplied (Keskar et al. 2019, arXiv:1909.05858). It comes first because it scales, and what
 * it is defined on is the model's own score.
 *   3. presence_penalty is subtracted from the logits of ids that stand in the output, frequency_penalty once
 *      for each time they do. The prompt does not count.
 *   4. logit_bias is added: last, so that a ban or a choice holds whatever the penalties say.
 *   5. The result is cut to the range of float: no legal value makes an infinity that drops an id.
 *   6. temperature; top-k; top-p over what is left; min-p relative to the most likely; ties keep the lower
 * id.
 *   7. The argmax of logit + Gumbel noise, the noise a function of Philox4x32-10(seed, position, id) (Salmon
 * et al. 2011), so that nothing depends on the batch, the step or the device. Greedy, the argmax after 5, iff
 * temperature as a float is 0 or top_k is 1. All arithmetic up to 6 is in float. This is the plain C that
 * every backend is compared with. */

#include <stdbool.h>
#include <stdint.h>

#include "common/sampling.h"

/* How often an id was used: what penalties look at. */
struct token_use {
    uint32_t in_prompt : 1;
    uint32_t in_output : 31; /* times */
};

/* Whether sampling looks at uses at all: the backend then keeps them, [n_vocab] for each sequence. */
bool sampling_needs_uses(const struct sampling *sampling);

struct logprob {
    int32_t id;
    float logprob; /* natural logarithm of softmax over all logits, before penalties and filters */
};

/* Scratch of one sampler: memory reused between calls. */
struct sampler;
int sampler_new(uint32_t n_vocab, struct sampler **ret_sampler); /* -ENOMEM */
struct sampler *sampler_free(struct sampler *sampler);

/* What one id is sampled from. */
struct sampler_row {
    const float *logits;          /* [n_vocab], unchanged */
    uint64_t position;            /* the index in the sequence that the new id will have */
    const struct token_use *uses; /* [n_vocab], or NULL when sampling_needs_uses says no */
    const uint32_t *mask;         /* [(n_vocab + 31) / 32]: set bits may be sampled; NULL: all */
    const uint32_t *allowed;      /* the same, of a grammar */
};

/* Samples one id; -1 when nothing may be sampled or no logit is finite. */
int32_t sampler_sample(struct sampler *sampler, const struct sampling *sampling,
                       const struct sampler_row *row);

/* Writes the sampled id's log probability and then those of the `n` most likely ids: n + 1 entries. */
void sampler_logprobs(struct sampler *sampler, const float *logits, int32_t sampled, uint32_t n,
                      struct logprob *ret_logprobs);

/* Philox4x32-10: the counter (position, id) and the key (seed) give 128 random bits. Exposed for tests and
 * kernels. */
void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t ret_random[4]);

#endif
