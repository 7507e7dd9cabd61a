/* SPDX-License-Identifier: MIT */
/* What a file says of how its weights were quantized decides only how large the blocks of scales are; that a
 * weight is in FP8, and what scale it has, its own type and the names beside it say. */

#include "model/huggingface/quantization.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"
#include "model/huggingface/json_values.h"
#include "gguf/format.h"

/* ---- quantization_config ---- */

static int read_blocks(const json_t *owner, const char *key, struct quantization *quantization,
                       struct error *err)
{
    const json_t *blocks = json_object_get(owner, key);
    uint32_t *const sizes[] = {&quantization->block_rows, &quantization->block_columns};
    if (!blocks || json_is_null(blocks))
        return 0;
    for (size_t i = 0; i < 2; i++) {
        const json_t *size = json_array_get(blocks, i);
        if (json_array_size(blocks) != 2 || !json_is_integer(size) || json_integer_value(size) < 1 ||
            json_integer_value(size) > 1 << 20)
            return error_set(err, -EINVAL, "%s is not a list of two sizes", key);
        *sizes[i] = (uint32_t)json_integer_value(size);
    }
    return 0;
}

/* compressed-tensors: groups of modules, each with its way; those that are quantized are in FP8, or the
 * format says something else. */
static int read_groups(const json_t *json, struct quantization *quantization, struct error *err)
{
    const char *format = "", *key;
    json_t *group;
    char shown[64];
    int r = json_read_text(json, "format", &format, err);
    if (r < 0)
        return r;
    if (strcmp(format, "float-quantized") != 0)
        return error_set(err, -EINVAL, "format \"%s\" is not supported (float-quantized is)",
                         utf8_printable(bytes_of_string(format), sizeof shown, shown));
    json_object_foreach(json_object_get(json, "config_groups"), key, group)
    {
        const json_t *weights = json_object_get(group, "weights");
        r = read_blocks(weights, "block_structure", quantization, err);
        if (r < 0)
            return error_prefix(err, r, "config_groups");
    }
    return 0;
}

int quantization_read(const json_t *json, struct quantization *ret_quantization, struct error *err)
{
    struct quantization quantization = {.kind = QUANTIZATION_NONE};
    const char *method = "";
    char shown[64];
    if (!json || json_is_null(json))
        return 0;
    int r = json_read_text(json, "quant_method", &method, err);
    if (r >= 0 && (strcmp(method, "fp8") == 0 || strcmp(method, "fbgemm_fp8") == 0)) {
        quantization.kind = QUANTIZATION_FP8;
        r = read_blocks(json, "weight_block_size", &quantization, err);
    } else if (r >= 0 && strcmp(method, "compressed-tensors") == 0) {
        quantization.kind = QUANTIZATION_FP8;
        r = read_groups(json, &quantization, err);
    } else if (r >= 0 && strcmp(method, "mxfp4") == 0) {
        quantization.kind = QUANTIZATION_MXFP4;
    } else if (r >= 0) {
        r = error_set(err, -EINVAL,
                      "quant_method \"%s\" is not supported (fp8, fbgemm_fp8, compressed-tensors "
                      "of format float-quantized and mxfp4 are); use the original weights or a GGUF file",
                      utf8_printable(bytes_of_string(method), sizeof shown, shown));
    }
    if (r < 0)
        return error_prefix(err, r, "quantization_config");
    *ret_quantization = quantization;
    return 0;
}

/* ---- names ---- */

bool quantization_is_companion(const char *name, size_t size, char *ret_weight)
{
    static const struct {
        const char *end, *instead; /* NULL: not needed */
    } ends[] = {{".weight_scale_inv", ".weight"},
                {".weight_scale", ".weight"},
                {"_proj_scale_inv", "_proj"}, /* of all experts in one tensor */
                {"_proj_scales", "_proj_blocks"},
                {".input_scale", NULL},
                {".activation_scale", NULL},
                {".k_scale", NULL},
                {".v_scale", NULL},
                {".input_scale_ub", NULL}};
    const size_t len = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const size_t end = strlen(ends[i].end);
        if (len < end || strcmp(name + len - end, ends[i].end) != 0)
            continue;
        snprintf(ret_weight, size, "%.*s%s", ends[i].instead ? (int)(len - end) : 0, name,
                 ends[i].instead ? ends[i].instead : "");
        return true;
    }
    return false;
}

/* ---- scales ---- */

static float number_at(const struct safetensor *tensor, uint64_t i)
{
    const uint8_t *at = tensor->data + i * tensor->element_size;
    uint32_t bits = 0;
    float value;
    memcpy(&bits, at, tensor->element_size);
    if (strcmp(tensor->dtype, "F16") == 0)
        return format_f16_to_f32((uint16_t)bits);
    if (strcmp(tensor->dtype, "BF16") == 0)
        bits <<= 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int check_dtype(const struct safetensor *scale, struct error *err)
{
    if (strcmp(scale->dtype, "F32") == 0 || strcmp(scale->dtype, "F16") == 0 ||
        strcmp(scale->dtype, "BF16") == 0)
        return 0;
    return error_set(err, -EINVAL, "tensor %s: dtype %s is not supported (F32, F16 and BF16 are)",
                     scale->name, scale->dtype);
}

static uint64_t parts_of(uint64_t n, uint64_t size)
{
    return (n + size - 1) / size;
}

/* Whether the scale's dims, behind those of matrices, are these; 1 may be left out at the end. */
static bool has_dims(const struct safetensor *scale, uint64_t matrices, uint64_t rows, uint64_t columns)
{
    uint64_t total = 1;
    for (uint32_t i = 0; i < scale->n_dims; i++)
        total *= scale->dims[i];
    if (total != matrices * rows * columns)
        return false;
    const uint64_t wanted[] = {matrices, rows, columns};
    uint32_t at = 0;
    for (uint32_t i = 0; i < 3; i++) { /* in their order, ones wherever they like */
        while (at < scale->n_dims && scale->dims[at] == 1 && wanted[i] != 1)
            at++;
        if (wanted[i] != 1 && (at >= scale->n_dims || scale->dims[at++] != wanted[i]))
            return false;
    }
    return true;
}

static const char *dims_text(const struct safetensor *tensor, size_t size, char *ret_text)
{
    size_t n = (size_t)snprintf(ret_text, size, "[");
    for (uint32_t i = 0; i < tensor->n_dims && n < size; i++)
        n += (size_t)snprintf(ret_text + n, size - n, "%s%" PRIu64, i ? ", " : "", tensor->dims[i]);
    snprintf(ret_text + (n < size ? n : size - 2), 2, "]");
    return ret_text;
}

int quantization_scales(const struct quantization *quantization, const struct safetensor *weight,
                        const struct safetensor *scale, struct scales *ret_scales, struct error *err)
{
    const uint32_t n = weight->n_dims;
    const uint64_t rows = n > 1 ? weight->dims[n - 2] : 1, columns = weight->dims[n - 1],
                   matrices = n > 2 ? weight->dims[0] : 1;
    char shape[96], of[96];
    struct scales scales = {.tensor = scale};
    int r = check_dtype(scale, err);
    if (r < 0)
        return r;
    if (rows == 0 || columns == 0)
        return error_set(err, -EINVAL, "tensor %s of shape %s has no elements", weight->name,
                         dims_text(weight, sizeof of, of));
    if (quantization->block_rows > 0) {
        scales.rows = quantization->block_rows;
        scales.columns = quantization->block_columns;
    } else {
        scales.rows = has_dims(scale, 1, 1, 1) || has_dims(scale, matrices, 1, 1) ? rows : 1;
        scales.columns = columns;
    }
    scales.across = parts_of(columns, scales.columns);
    scales.per_matrix = parts_of(rows, scales.rows) * scales.across;
    if (quantization->block_rows == 0 && has_dims(scale, 1, 1, 1))
        scales.per_matrix = 0;
    else if (!has_dims(scale, matrices, parts_of(rows, scales.rows), scales.across))
        return error_set(err, -EINVAL,
                         "tensor %s of shape %s does not fit %s of shape %s, in blocks of %" PRIu64
                         " rows and %" PRIu64 " columns (quantization_config)",
                         scale->name, dims_text(scale, sizeof shape, shape), weight->name,
                         dims_text(weight, sizeof of, of), scales.rows, scales.columns);
    *ret_scales = scales;
    return 0;
}

float quantization_scale(const struct scales *scales, uint64_t matrix, uint64_t row, uint64_t column)
{
    return number_at(scales->tensor, matrix * scales->per_matrix + row / scales->rows * scales->across +
                                         column / scales->columns);
}

/* Sign, four bits of exponent with a bias of 7, three of the fraction; no infinity. */
float quantization_e4m3(uint8_t byte)
{
    const int exponent = byte >> 3 & 15, fraction = byte & 7;
    float value = exponent > 0 ? ldexpf(8 + (float)fraction, exponent - 10) : ldexpf((float)fraction, -9);
    if ((byte & 0x7f) == 0x7f)
        value = NAN;
    return byte & 0x80 ? -value : value;
}
