/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_RECIPES_H
#define MODEL_HUGGINGFACE_RECIPES_H

/* How the numbers of a published tensor become those of GGUF's (enum how). */

#include <stdbool.h>
#include <stddef.h>

#include "gguf/format.h"
#include "model/huggingface/names.h"
#include "model/huggingface/quantization.h"
#include "model/huggingface/safetensors.h"

struct recipe {
    struct place place;
    const struct safetensor *tensor;
    enum format format; /* of its numbers; of FP8 BF16, what they become */
    bool is_fp8;
    struct scales scales;                           /* of FP8 */
    const struct safetensor *exponents;             /* of MXFP4 blocks */
    uint32_t n_key_heads, n_value_heads, value_dim; /* of delta nets */
};

/* The format that it becomes: F32 for vectors, else the one of its numbers. */
enum format recipe_wanted(const struct recipe *recipe);

/* May its bytes be used where they lie? */
bool recipe_is_copy(const struct recipe *recipe);

/* Rows of the result: of all matrices if it is stacked; a vector is one. */
uint64_t recipe_rows(const struct recipe *recipe);

/* Writes rows first … first + n − 1 of columns numbers each, in the wanted format. Any threads may call it at
 * once. -ENOMEM; -EINVAL with a reason: a scale is not finite. */
int recipe_fill(const struct recipe *recipe, uint64_t first, uint64_t n, void *out, struct error *err);

#endif
