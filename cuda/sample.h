/* SPDX-License-Identifier: MIT */
#ifndef CUDA_SAMPLE_H
#define CUDA_SAMPLE_H

/* The kernels that kernels_sample queues one after the other, and what they leave for each other. */

#include "cuda/kernels.h"

/* Of each output, in kernels_sample's scratch. */
struct sampled {
    int32_t id; /* −1: nothing may be sampled, or no logit is finite */
};

int sample_ids(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
               const struct sample_step *sample, uint32_t n_outputs);
int sample_logprobs(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                    const struct sample_step *sample, uint32_t n_outputs);
int sample_accept(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                  const struct sample_step *sample);

#endif
