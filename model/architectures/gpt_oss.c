/* SPDX-License-Identifier: MIT */
/* gpt-oss: experts in every layer, with biases everywhere; attention sinks; every other layer, the first one
 * included, sees a window only. The gate of its activation is clamped, and 1 is added to what it gates. */

#include "model/architecture.h"

static void describe(const struct model_params *params, uint32_t i, struct layer_traits *layer)
{
    (void)params;
    if (i % 2 == 1)
        layer->window = 0;
}

const struct architecture architecture_gpt_oss = {
    .name = "gpt-oss",
    .layer = {.norm = {.kind = NORM_RMS},
              .norm_place = NORM_BEFORE,
              .rotary = {.kind = ROTARY_HALVES},
              .sinks = true,
              .activation = ACTIVATION_SWIGLU_CLAMPED,
              .gated = true},
    .biases = TENSOR_BIT(TENSOR_Q) | TENSOR_BIT(TENSOR_K) | TENSOR_BIT(TENSOR_V) |
              TENSOR_BIT(TENSOR_ATTENTION_OUTPUT) | TENSOR_BIT(TENSOR_ROUTER) |
              TENSOR_BIT(TENSOR_EXPERT_GATES) | TENSOR_BIT(TENSOR_EXPERT_UPS) |
              TENSOR_BIT(TENSOR_EXPERT_DOWNS),
    .always_experts = true,
    .fused = TENSOR_BIT(TENSOR_NAMED_POST_NORM),
    .describe = describe,
};
