/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_SAMPLE_PARTS_H
#define CUDA_KERNELS_SAMPLE_PARTS_H

/* kernels_sample in two parts, for a host that inspects the ids in between. */

#include "cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Samples the ids, n_outputs ≥ 1; −1: nothing may be sampled. */
int kernels_sample_ids(struct device_stream *queue, const struct slots *slots,
                       const struct step_memory *memory, const struct sample_step *sample,
                       uint32_t n_outputs);

/* Where the device keeps the id of an output in between. */
int32_t *kernels_sampled_id(const struct sample_step *sample, uint32_t n_vocab, uint32_t output);

/* Everything that follows from the ids. */
int kernels_accept(struct device_stream *queue, const struct slots *slots, const struct step_memory *memory,
                   const struct sample_step *sample, uint32_t n_outputs);

#ifdef __cplusplus
}
#endif

#endif
