/* SPDX-License-Identifier: MIT */
/* Granite 3 and 4: a Llama with factors of its own for embeddings, residuals, scores and logits; with experts
 * granitemoe, which may have a shared one. */

#include "model/architecture.h"

#define GRANITE_LAYER                                                                                        \
    {                                                                                                        \
        .norm = {.kind = NORM_RMS}, .norm_place = NORM_BEFORE, .rotary = {.kind = ROTARY_PAIRS},             \
        .activation = ACTIVATION_SILU, .gated = true                                                         \
    }

#define GRANITE_BIASES                                                                                       \
    TENSOR_BIT(TENSOR_Q) | TENSOR_BIT(TENSOR_K) | TENSOR_BIT(TENSOR_V) |                                     \
        TENSOR_BIT(TENSOR_ATTENTION_OUTPUT) | TENSOR_BIT(TENSOR_GATE) | TENSOR_BIT(TENSOR_UP) |              \
        TENSOR_BIT(TENSOR_DOWN)

const struct architecture architecture_granite = {
    .name = "granite",
    .layer = GRANITE_LAYER,
    .optional_biases = GRANITE_BIASES,
    .logits_divided = true,
    .rope_switch = true,
};

const struct architecture architecture_granitemoe = {
    .name = "granitemoe",
    .layer = GRANITE_LAYER,
    .optional_biases = GRANITE_BIASES,
    .always_experts = true,
    .logits_divided = true,
};
