/* SPDX-License-Identifier: MIT */
/* Granite 3 and 4: a Llama with factors of its own for embeddings, residuals, scores and logits; with experts
 * granitemoe, which may have a shared one. */

#include "model/architecture.h"

const struct architecture architecture_granite = {
    .name = "granite",
    .layer = LLAMA_LAYER,
    .optional_biases = LLAMA_BIASES,
    .logits_divided = true,
    .rope_switch = true,
};

const struct architecture architecture_granitemoe = {
    .name = "granitemoe",
    .layer = LLAMA_LAYER,
    .optional_biases = LLAMA_BIASES,
    .always_experts = true,
    .logits_divided = true,
};
