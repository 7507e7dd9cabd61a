/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_SAMPLING_SAMPLE_H
#define CUDA_KERNELS_SAMPLING_SAMPLE_H

/* The kernels that kernels_sample queues one after another, and the data that they pass on. */

#include "cuda/kernels/kernels.h"
#include "cuda/device/simt.h"

/* The remaining work for an output. */
enum sampled_path {
    SAMPLED_DONE, /* `id` holds */
    SAMPLED_DRAW, /* every id takes part, or is excluded by its own probability */
    SAMPLED_CUT   /* a filter needs more than one id at a time */
};

/* The progress of an output: the head of its part of kernels_sample's scratch. */
struct alignas(16) sampled {
    uint64_t best;            /* the largest key; 0 before a step */
    uint64_t total;           /* mass of all candidates, if a list leaves out some that count; else 0 */
    uint64_t n, sum, squares; /* of top-nσ */
    uint64_t sigma_key;       /* the smallest key that it leaves */
    int32_t id;               /* −1: nothing may be sampled, or no logit is finite */
    uint32_t path;            /* enum sampled_path */
    uint32_t arrived;         /* blocks of the running kernel that have arrived; 0 between kernels */
    uint32_t last_bin, n_list;
};

/* The outputs' parts, one after another: an output's place does not depend on the number of outputs in a
 * launch. */
struct sampled_outputs {
    uint8_t *memory;
    size_t stride;
};

static inline struct sampled_outputs sampled_outputs(void *scratch, uint32_t n_vocab)
{
    struct sampled_outputs outputs = {(uint8_t *)scratch, kernels_sample_scratch(n_vocab, 1)};
    return outputs;
}

__device__ static inline struct sampled *sampled_at(struct sampled_outputs outputs, uint32_t output)
{
    return (struct sampled *)(outputs.memory + output * outputs.stride);
}

int sample_logprobs(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                    const struct sample_step *sample, uint32_t n_outputs);
int sample_accept(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                  const struct sample_step *sample, uint32_t n_outputs);

#endif
