/* SPDX-License-Identifier: MIT */
/* SmolLM 3: a Llama in which every fourth layer has no rotary positions. Files do not say which. */

#include "model/architecture.h"

static void describe(const struct model_params *params, uint32_t i, struct layer_traits *layer)
{
    (void)params;
    if (i % 4 == 3)
        layer->rotary = (struct rotary){.kind = ROTARY_NONE};
}

const struct architecture architecture_smollm3 = {
    .name = "smollm3",
    .layer = {.norm = {.kind = NORM_RMS},
              .norm_place = NORM_BEFORE,
              .rotary = {.kind = ROTARY_PAIRS},
              .activation = ACTIVATION_SILU,
              .gated = true},
    .optional_biases = TENSOR_BIT(TENSOR_Q) | TENSOR_BIT(TENSOR_K) | TENSOR_BIT(TENSOR_V) |
                       TENSOR_BIT(TENSOR_ATTENTION_OUTPUT) | TENSOR_BIT(TENSOR_GATE) | TENSOR_BIT(TENSOR_UP) |
                       TENSOR_BIT(TENSOR_DOWN),
    .describe = describe,
};
