/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_QUANTIZATION_H
#define MODEL_HUGGINGFACE_QUANTIZATION_H

/* quantization_config, and the scales of weights in FP8.
 *
 * Known are weights in E4M3 with one scale, one for each row, or one for each block (quant_method fp8,
 * fbgemm_fp8, and compressed-tensors of format float-quantized), which become BF16: number times scale. What
 * such files say of activations is not needed. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "model/huggingface/safetensors.h"

enum quantization_kind { QUANTIZATION_NONE, QUANTIZATION_FP8, QUANTIZATION_MXFP4 };

struct quantization {
    enum quantization_kind kind;
    uint32_t block_rows, block_columns; /* of a scale; 0: one for each row, or one for all */
};

/* `json` is the object quantization_config; NULL: none. -EINVAL names the key: another method or format. */
int quantization_read(const json_t *json, struct quantization *ret_quantization, struct error *err);

/* Scales of a weight: of number (matrix m, row r, column c) the one at m · per_matrix + r ÷ rows · across +
 * c ÷ columns. */
struct scales {
    const struct safetensor *tensor; /* NULL: none */
    uint64_t per_matrix, across, rows, columns;
};

/* Is the name one of scales, or of what belongs to activations? *ret_weight is its part before that, with
 * ".weight" where the weight has it; "" if the tensor is not needed. */
bool quantization_is_companion(const char *name, size_t size, char *ret_weight);

/* The scales of a weight; -EINVAL with a reason: their dtype or their shape does not fit. Their numbers are
 * not looked at. */
int quantization_scales(const struct quantization *quantization, const struct safetensor *weight,
                        const struct safetensor *scale, struct scales *ret_scales, struct error *err);

/* May be infinite or NaN. */
float quantization_scale(const struct scales *scales, uint64_t matrix, uint64_t row, uint64_t column);

/* The value of a byte in E4M3; of 0x7f and 0xff NaN. */
float quantization_e4m3(uint8_t byte);

#endif
