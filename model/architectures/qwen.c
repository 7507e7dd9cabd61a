/* SPDX-License-Identifier: MIT */
/* Qwen: as Llama, but a head's halves turn together. Version 2 has biases on queries, keys and values;
 * version 3 norms each head of queries and keys instead. Of its
 * rerankers the converter keeps two rows of the output matrix, "yes" and "no". */

#include "model/architecture.h"

const struct architecture architecture_qwen2 = {
    .name = "qwen2",
    .layer = {.norm = {.kind = NORM_RMS},
              .norm_place = NORM_BEFORE,
              .rotary = {.kind = ROTARY_HALVES},
              .activation = ACTIVATION_SILU,
              .gated = true},
    .biases = TENSOR_BIT(TENSOR_Q) | TENSOR_BIT(TENSOR_K) | TENSOR_BIT(TENSOR_V),
};

#define QWEN3_LAYER                                                                                          \
    {                                                                                                        \
        .norm = {.kind = NORM_RMS}, .norm_place = NORM_BEFORE, .rotary = {.kind = ROTARY_HALVES},            \
        .qk_norm = QK_NORM_HEADS, .activation = ACTIVATION_SILU, .gated = true                               \
    }

const struct architecture architecture_qwen3 = {
    .name = "qwen3", .layer = QWEN3_LAYER, .optional_biases = TENSOR_BIT(TENSOR_RANK_HEAD), .ranks = true};

const struct architecture architecture_qwen3moe = {
    .name = "qwen3moe", .layer = QWEN3_LAYER, .always_experts = true};
