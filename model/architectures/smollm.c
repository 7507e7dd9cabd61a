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
    .layer = LLAMA_LAYER,
    .optional_biases = LLAMA_BIASES,
    .describe = describe,
};
