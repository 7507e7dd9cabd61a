/* SPDX-License-Identifier: MIT */
/* Seed-OSS: a Llama whose halves turn, with biases on queries, keys and values. */

#include "model/architecture.h"

const struct architecture architecture_seed_oss = {
    .name = "seed_oss",
    .layer = {.norm = {.kind = NORM_RMS},
              .norm_place = NORM_BEFORE,
              .rotary = {.kind = ROTARY_HALVES},
              .activation = ACTIVATION_SILU,
              .gated = true},
    .biases = TENSOR_BIT(TENSOR_Q) | TENSOR_BIT(TENSOR_K) | TENSOR_BIT(TENSOR_V),
    .fused = TENSOR_BIT(TENSOR_NAMED_POST_NORM),
};
