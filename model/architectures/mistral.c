/* SPDX-License-Identifier: MIT */
/* Mistral Small 3, Ministral 3, Devstral 2: a Llama with YaRN, whose queries grow with their position beyond
 * the length that YaRN starts from. */

#include "model/architecture.h"

const struct architecture architecture_mistral3 = {
    .name = "mistral3",
    .layer = {.norm = {.kind = NORM_RMS},
              .norm_place = NORM_BEFORE,
              .rotary = {.kind = ROTARY_PAIRS},
              .activation = ACTIVATION_SILU,
              .gated = true},
    .optional_biases = TENSOR_BIT(TENSOR_Q) | TENSOR_BIT(TENSOR_K) | TENSOR_BIT(TENSOR_V) |
                       TENSOR_BIT(TENSOR_ATTENTION_OUTPUT) | TENSOR_BIT(TENSOR_GATE) | TENSOR_BIT(TENSOR_UP) |
                       TENSOR_BIT(TENSOR_DOWN),
    .query_growth = true,
};
