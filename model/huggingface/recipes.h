/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_RECIPES_H
#define MODEL_HUGGINGFACE_RECIPES_H

/* Converts the numbers of a published tensor to those of GGUF's (enum how). */

#include <stdbool.h>
#include <stddef.h>

#include "gguf/format.h"
#include "model/huggingface/names.h"
#include "model/huggingface/quantization.h"
#include "model/huggingface/safetensors.h"

struct recipe {
    struct place place;
    const struct safetensor *tensor;
    enum format format; /* of its numbers; for FP8 BF16, its result */
    bool is_fp8;
    struct scales scales;                           /* for FP8 */
    const struct safetensor *exponents;             /* for MXFP4 blocks */
    uint32_t n_key_heads, n_value_heads, value_dim; /* of delta nets */
};

/* The format of the result: F32 for vectors, else that of its numbers. */
enum format recipe_wanted(const struct recipe *recipe);
/* Whether its bytes can be used in place. */
bool recipe_is_copy(const struct recipe *recipe);
/* Rows of the result: of all matrices if it is stacked; 1 for a vector. */
uint64_t recipe_rows(const struct recipe *recipe);

/* Writes rows first … first + n − 1 of columns numbers each, in the wanted format. Thread-safe. -ENOMEM;
 * -EINVAL with a reason: a scale is not finite. */
int recipe_fill(const struct recipe *recipe, uint64_t first, uint64_t n, void *out, struct error *err);

#endif
