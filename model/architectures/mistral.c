/* SPDX-License-Identifier: MIT */
/* Mistral Small 3, Ministral 3, Devstral 2: a Llama with YaRN, whose queries grow with their position beyond
 * the length that YaRN starts from. */

#include "model/architecture.h"

const struct architecture architecture_mistral3 = {
    .name = "mistral3",
    .layer = LLAMA_LAYER,
    .optional_biases = LLAMA_BIASES,
    .query_growth = true,
};
