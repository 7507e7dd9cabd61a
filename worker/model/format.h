/* SPDX-License-Identifier: MIT */
#ifndef WORKER_MODEL_FORMAT_H
#define WORKER_MODEL_FORMAT_H

/* Number formats of GGUF tensors: their blocks, and plain C conversions from and to float.
 *
 * The conversions are the reference that every kernel is tested against. Layouts follow
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and the public block definitions. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum format { /* the file's own numbers */
              FORMAT_F32 = 0,
              FORMAT_F16 = 1,
              FORMAT_Q4_0 = 2,
              FORMAT_Q4_1 = 3,
              FORMAT_Q5_0 = 6,
              FORMAT_Q5_1 = 7,
              FORMAT_Q8_0 = 8,
              FORMAT_Q2_K = 10,
              FORMAT_Q3_K = 11,
              FORMAT_Q4_K = 12,
              FORMAT_Q5_K = 13,
              FORMAT_Q6_K = 14,
              FORMAT_IQ4_NL = 20,
              FORMAT_IQ4_XS = 23,
              FORMAT_BF16 = 30,
              FORMAT_LIMIT = 64 /* numbers are below */
};

struct format_traits {
    const char *name;        /* "Q4_K"; NULL for a number that is no known format */
    uint32_t block_elements; /* elements of a block */
    uint32_t block_bytes;
    /* n is a multiple of block_elements. NULL where the format is known but its conversion is not supported.
     */
    void (*to_float)(const void *blocks, float *out, size_t n);
    void (*from_float)(const float *in, void *blocks, size_t n);
};

/* Traits of a format number; name is NULL for an unknown one (any number may be asked for). */
const struct format_traits *format_traits(uint32_t number);

/* By name, upper or lower case; -EINVAL. */
int format_by_name(const char *name, enum format *ret_format);

/* Bytes of n elements; n is a multiple of block_elements. */
size_t format_bytes(enum format format, size_t n);

/* IEEE 754 binary16 and bfloat16, round to nearest even; subnormals, infinities and NaN kept. */
float format_f16_to_f32(uint16_t half);
uint16_t format_f32_to_f16(float value);
float format_bf16_to_f32(uint16_t bf16);
uint16_t format_f32_to_bf16(float value);

#endif
