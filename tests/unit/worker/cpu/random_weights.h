/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_WORKER_CPU_RANDOM_WEIGHTS_H
#define TESTS_UNIT_WORKER_CPU_RANDOM_WEIGHTS_H

/* Random numbers that are the same in every run, and random weight rows in the file's formats. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/gguf/format.h"

static const enum format tested_formats[] = {FORMAT_F32,  FORMAT_F16,  FORMAT_BF16, FORMAT_Q8_0, FORMAT_Q4_0,
                                             FORMAT_Q5_0, FORMAT_Q4_K, FORMAT_Q5_K, FORMAT_Q6_K};
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

/* n elements, a multiple of the format's block: any bits, but for scales that are finite and of order one. */
static inline uint8_t *random_row(enum format format, size_t n)
{
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
        else if (format == FORMAT_BF16)
            memcpy(row + at, &bf16, 2);
        else
            memcpy(row + at + (format == FORMAT_Q6_K ? 208 : 0), &half, 2);
        if (format == FORMAT_Q4_K || format == FORMAT_Q5_K)
            memcpy(row + at + 2, &second, 2);
    }
    return row;
}

#endif
