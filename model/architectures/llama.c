/* SPDX-License-Identifier: MIT */
/* Llama 1 to 3, Mistral, TinyLlama, SmolLM and the many that share their layers; with experts Mixtral. The
 * plainest row: RMS norms before, neighbouring pairs turn, SiLU gate. Some offspring have biases. */

#include "model/architecture.h"

const struct architecture architecture_llama = {
    .name = "llama",
    .layer = LLAMA_LAYER,
    .optional_biases = LLAMA_BIASES,
};
