/* SPDX-License-Identifier: MIT */
/* GPT-2: LayerNorm, learned positions instead of rotation, a plain GELU, biases everywhere but on the head.
 */

#include "model/architecture.h"

const struct architecture architecture_gpt2 = {
    .name = "gpt2",
    .layer = {.norm = {.kind = NORM_LAYER},
              .norm_place = NORM_BEFORE,
              .rotary = {.kind = ROTARY_NONE},
              .activation = ACTIVATION_GELU},
    .biases = TENSOR_BIT(TENSOR_ATTENTION_NORM) | TENSOR_BIT(TENSOR_Q) | TENSOR_BIT(TENSOR_K) |
              TENSOR_BIT(TENSOR_V) | TENSOR_BIT(TENSOR_ATTENTION_OUTPUT) | TENSOR_BIT(TENSOR_FFN_NORM) |
              TENSOR_BIT(TENSOR_UP) | TENSOR_BIT(TENSOR_DOWN) | TENSOR_BIT(TENSOR_OUTPUT_NORM),
    .fused = TENSOR_BIT(TENSOR_QKV),
    .positions = true,
};
