/* SPDX-License-Identifier: MIT */
/* Llama 1 to 3, Mistral, TinyLlama, SmolLM and the many that share their layers; with experts Mixtral. The
 * plainest row: RMS norms before, neighbouring pairs turn, SiLU gate. Some offspring have biases. */

#include "model/architecture.h"

const struct architecture architecture_llama = {
    .name = "llama",
    .layer = {.norm = {.kind = NORM_RMS},
              .norm_place = NORM_BEFORE,
              .rotary = {.kind = ROTARY_PAIRS},
              .activation = ACTIVATION_SILU,
              .gated = true},
    .optional_biases = TENSOR_BIT(TENSOR_Q) | TENSOR_BIT(TENSOR_K) | TENSOR_BIT(TENSOR_V) |
                       TENSOR_BIT(TENSOR_ATTENTION_OUTPUT) | TENSOR_BIT(TENSOR_GATE) | TENSOR_BIT(TENSOR_UP) |
                       TENSOR_BIT(TENSOR_DOWN),
};
