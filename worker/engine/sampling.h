/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ENGINE_SAMPLING_H
#define WORKER_ENGINE_SAMPLING_H

/* Sampling: a pure function of (logits, parameters, penalty counts, seed, position).
 *
 * Order: ids outside the mask drop out; repetition penalty over prompt and output (a positive logit is
 * divided by it, a negative one multiplied; Keskar et al. 2019, arXiv:1909.05858); temperature; top-k; top-p
 * over what is left; min-p relative to the most likely; ties keep the lower id. Then the argmax of logit +
 * Gumbel noise, the noise a function of Philox4x32-10(seed, position, id) (Salmon et al. 2011), so that
 * nothing depends on the batch, the step or the device. Greedy iff temperature = 0 or top_k = 1. This is the
 * plain C that every backend is compared with. */

#include <stdbool.h>
#include <stdint.h>

struct sampling {
    float temperature;        /* ≥ 0 */
    uint32_t top_k;           /* 0 = off */
    float top_p;              /* (0, 1]; 1 = off */
    float min_p;              /* [0, 1]; 0 = off */
    float repetition_penalty; /* > 0; 1 = off */
    uint64_t seed;
};

struct logprob {
    int32_t id;
    float logprob; /* natural logarithm of softmax over all logits, before penalties and filters */
};

/* Scratch of one sampler: memory reused between calls. */
struct sampler;
int sampler_new(uint32_t n_vocab, struct sampler **ret_sampler); /* -ENOMEM */
struct sampler *sampler_free(struct sampler *sampler);

/* Samples one id. `logits` [n_vocab], unchanged. `counts` [n_vocab]: how often each id stands in prompt and
 * output, or NULL when the penalty is off. `mask` [(n_vocab + 31) / 32]: set bits may be sampled; `allowed`
 * the same, or NULL (a grammar). `position` is the index in the sequence that the new id will have. -1 when
 * nothing may be sampled or no logit is finite. */
int32_t sampler_sample(struct sampler *sampler, const float *logits, const struct sampling *sampling,
                       const uint16_t *counts, const uint32_t *mask, const uint32_t *allowed,
                       uint64_t position);

/* Writes the sampled id's log probability and then those of the `n` most likely ids: n + 1 entries. */
void sampler_logprobs(struct sampler *sampler, const float *logits, int32_t sampled, uint32_t n,
                      struct logprob *ret_logprobs);

/* Philox4x32-10: the counter (position, id) and the key (seed) give 128 random bits. Exposed for tests and
 * kernels. */
void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t ret_random[4]);

#endif
