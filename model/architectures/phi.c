/* SPDX-License-Identifier: MIT */
/* Phi 2: LayerNorm, attention and feed-forward side by side, a head's leading dims turn only, biases
 * everywhere. Phi 3 is a Llama whose halves turn, with queries, keys and values in one tensor and gate and up
 * in another. */

#include "model/architecture.h"

const struct architecture architecture_phi2 = {
    .name = "phi2",
    .layer = {.norm = {.kind = NORM_LAYER},
              .norm_place = NORM_BEFORE,
              .parallel = true,
              .rotary = {.kind = ROTARY_HALVES},
              .activation = ACTIVATION_GELU},
    .biases = TENSOR_BIT(TENSOR_ATTENTION_NORM) | TENSOR_BIT(TENSOR_Q) | TENSOR_BIT(TENSOR_K) |
              TENSOR_BIT(TENSOR_V) | TENSOR_BIT(TENSOR_ATTENTION_OUTPUT) | TENSOR_BIT(TENSOR_UP) |
              TENSOR_BIT(TENSOR_DOWN) | TENSOR_BIT(TENSOR_OUTPUT_NORM) | TENSOR_BIT(TENSOR_OUTPUT),
    .fused = TENSOR_BIT(TENSOR_QKV),
};

const struct architecture architecture_phi3 = {
    .name = "phi3",
    .layer = {.norm = {.kind = NORM_RMS},
              .norm_place = NORM_BEFORE,
              .rotary = {.kind = ROTARY_HALVES},
              .activation = ACTIVATION_SILU,
              .gated = true},
    .fused = TENSOR_BIT(TENSOR_QKV) | TENSOR_BIT(TENSOR_GATE_UP),
};
