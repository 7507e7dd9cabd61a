/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_QUANTIZATION_H
#define MODEL_HUGGINGFACE_QUANTIZATION_H

/* quantization_config, and the scales of FP8 weights.
 *
 * Supports weights in E4M3 with one scale, one per row, or one per block (quant_method fp8, fbgemm_fp8, and
 * compressed-tensors of format float-quantized). They become BF16: number times scale. Settings for
 * activations are ignored. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "model/huggingface/safetensors.h"

enum quantization_kind { QUANTIZATION_NONE, QUANTIZATION_FP8, QUANTIZATION_MXFP4 };

struct quantization {
    enum quantization_kind kind;
    uint32_t block_rows, block_columns; /* per scale; 0: one scale per row, or one for all */
};

/* `json` is the object quantization_config; NULL: none. -EINVAL names the key: an unsupported method or
 * format. */
int quantization_read(const json_t *json, struct quantization *ret_quantization, struct error *err);

/* Scales of a weight: the scale of a number (matrix m, row r, column c) is at m · per_matrix + r ÷ rows ·
 * across + c ÷ columns. */
struct scales {
    const struct safetensor *tensor; /* NULL: none */
    uint64_t per_matrix, across, rows, columns;
};

/* Whether the name is that of scales, or of a tensor for activations. *ret_weight is the weight's name, with
 * ".weight" if the weight has it; "" if the tensor is not needed. */
bool quantization_is_companion(const char *name, size_t size, char *ret_weight);

/* The scales of a weight; -EINVAL with a reason: their dtype or shape does not fit. Does not check their
 * values. */
int quantization_scales(const struct quantization *quantization, const struct safetensor *weight,
                        const struct safetensor *scale, struct scales *ret_scales, struct error *err);

/* May be infinite or NaN. */
float quantization_scale(const struct scales *scales, uint64_t matrix, uint64_t row, uint64_t column);

/* The value of a byte in E4M3; NaN for 0x7f and 0xff. */
float quantization_e4m3(uint8_t byte);

#endif
