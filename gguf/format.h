/* SPDX-License-Identifier: MIT */
#ifndef GGUF_FORMAT_H
#define GGUF_FORMAT_H

/* Number formats of GGUF tensors: their blocks, and plain C conversions to and from float.
 *
 * Every kernel is tested against these conversions. Layouts (gguf/blocks.h) follow
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and the public block definitions. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gguf/formats.h"

/* The file's own numbers, of the formats that models may have (formats.h): FORMAT_F32, FORMAT_Q4_K, … */
enum format {
#define NUMBER(name, id, number, elements, bytes) FORMAT_##name = (number),
    FORMATS(NUMBER)
#undef NUMBER
        FORMAT_LIMIT = 64 /* above all numbers */
};

struct format_traits {
    const char *name;        /* "Q4_K"; NULL: not a known format */
    uint32_t block_elements; /* elements of a block */
    uint32_t block_bytes;
    /* n is a multiple of block_elements. Both are NULL for a format of which only the size is known: no model
     * may have it. from_float takes any input: in block formats, values that are not finite count as 0. */
    void (*to_float)(const void *blocks, float *out, size_t n);
    void (*from_float)(const float *in, void *blocks, size_t n);
};

/* Traits of a format number; `name` is NULL for an unknown one (any number is allowed). */
const struct format_traits *format_traits(uint32_t number);

/* By name, upper or lower case; -EINVAL. */
int format_by_name(const char *name, enum format *ret_format);

/* Bytes of n elements; n is a multiple of block_elements. */
size_t format_bytes(enum format format, size_t n);

/* IEEE 754 binary16 and bfloat16, round to nearest even; subnormals and infinities are kept, a NaN becomes
 * quiet: the same bits as with F16C instructions. Inline, because kernels convert a scale per block. */
static inline float format_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t format_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float format_f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t magnitude = half & 0x7fff;
    uint32_t bits = (magnitude << 13) + (112u << 23); /* exponent bias 15 → 127 */
    if (magnitude >= 0x7c00)                          /* infinity and NaN: exponent 31 → 255 */
        bits += 112u << 23;
    if (magnitude > 0x7c00)
        bits |= 1u << 22;
    if (magnitude < 0x400) /* subnormal: a count of 2^-24, exact in float */
        bits = format_bits_of_float((float)magnitude * 0x1p-24f);
    return format_float_of_bits(sign | bits);
}

static inline uint16_t format_f32_to_f16(float value)
{
    uint32_t bits = format_bits_of_float(value);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) { /* below 2^-14: adding 0.5 lets the addition round to a count of 2^-24 */
        uint32_t sum = format_bits_of_float(format_float_of_bits(magnitude) + 0.5f);
        return (uint16_t)(sign | (sum - 0x3f000000));
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (rounded - (112u << 23)) >> 13);
}

static inline float format_bf16_to_f32(uint16_t bf16)
{
    return format_float_of_bits((uint32_t)bf16 << 16);
}

static inline uint16_t format_f32_to_bf16(float value)
{
    uint32_t bits = format_bits_of_float(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
