/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CPU_RANDOM_WEIGHTS_H
#define TESTS_UNIT_CPU_RANDOM_WEIGHTS_H

/* Random numbers that are the same in every run, and random weight rows in the file's formats. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/format.h"

/* All formats that models may have. */
#define TESTED(name, id, number, elements, bytes) FORMAT_##name,
static const enum format tested_formats[] = {FORMATS(TESTED)};
#undef TESTED
#define N_TESTED_FORMATS (sizeof tested_formats / sizeof *tested_formats)

static uint64_t random_state = 88172645463325252ull;

static inline uint32_t random_u32(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}

/* Uniform in −1 … 1. */
static inline float random_float(void)
{
    return (float)random_u32() / 2147483648.0f - 1.0f;
}

/* Offsets of a block's binary16 scales; −1: none. */
struct scale_places {
    int first, second;
};

static inline struct scale_places scale_places(enum format format)
{
    switch (format) {
    case FORMAT_F32:
    case FORMAT_BF16:
    case FORMAT_MXFP4:
        return (struct scale_places){-1, -1};
    case FORMAT_Q4_1:
    case FORMAT_Q5_1:
    case FORMAT_Q4_K:
    case FORMAT_Q5_K:
        return (struct scale_places){0, 2};
    case FORMAT_Q2_K:
        return (struct scale_places){80, 82};
    case FORMAT_Q3_K:
        return (struct scale_places){108, -1};
    case FORMAT_Q6_K:
        return (struct scale_places){208, -1};
    default:
        return (struct scale_places){0, -1};
    }
}

/* n elements, a multiple of the format's block: random bits, except for scales, which are finite and of order
 * one. */
static inline uint8_t *random_row(enum format format, size_t n)
{
    const struct scale_places places = scale_places(format);
    size_t bytes = format_bytes(format, n), block = format_traits(format)->block_bytes;
    uint8_t *row = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        row[i] = (uint8_t)random_u32();
    for (size_t at = 0; at < bytes; at += block) {
        float value = random_float();
        uint16_t half = format_f32_to_f16(value), second = format_f32_to_f16(random_float());
        uint16_t bf16 = format_f32_to_bf16(value);
        if (format == FORMAT_F32)
            memcpy(row + at, &value, 4);
        if (format == FORMAT_BF16)
            memcpy(row + at, &bf16, 2);
        if (format == FORMAT_MXFP4)
            row[at] = (uint8_t)(118 + row[at] % 12); /* 2^−10 … 2 */
        if (places.first >= 0)
            memcpy(row + at + places.first, &half, 2);
        if (places.second >= 0)
            memcpy(row + at + places.second, &second, 2);
    }
    return row;
}

#endif
