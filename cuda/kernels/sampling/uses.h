/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_SAMPLING_USES_H
#define CUDA_KERNELS_SAMPLING_USES_H

/* The word of struct token_use, for kernels that change part of it while others read it: DRY's repeats are
 * in its highest bits. */

#include "cuda/device/simt.h"
#include "cuda/kernels/kernels.h"

#define USE_REPEAT_SHIFT 21 /* in_prompt and in_output are below */

__device__ static inline void use_forget_repeat(struct token_use *use)
{
    simt_atomic_and((uint32_t *)use, (1u << USE_REPEAT_SHIFT) - 1);
}

/* Keeps the longest noted repeat; the lower bits must not change meanwhile. */
__device__ static inline void use_note_repeat(struct token_use *use, uint32_t length)
{
    const uint32_t word = simt_atomic_max((uint32_t *)use, 0u), below = word << (32 - USE_REPEAT_SHIFT);
    simt_atomic_max((uint32_t *)use, length << USE_REPEAT_SHIFT | below >> (32 - USE_REPEAT_SHIFT));
}

#endif
