/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_GGUF_RAW_GGUF_H
#define TESTS_UNIT_GGUF_RAW_GGUF_H

/* Writes a GGUF file value by value, valid or invalid as the test wants. */

#include <check.h>

#include "common/bytes.h"
#include "gguf/gguf.h"

static inline void raw(struct buffer *out, const void *data, size_t len)
{
    ck_assert_int_eq(buffer_append(out, data, len), 0);
}

static inline void raw_u32(struct buffer *out, uint32_t value)
{
    raw(out, &value, sizeof value);
}

static inline void raw_u64(struct buffer *out, uint64_t value)
{
    raw(out, &value, sizeof value);
}

static inline void raw_string(struct buffer *out, const char *text)
{
    raw_u64(out, strlen(text));
    raw(out, text, strlen(text));
}

static inline void raw_head(struct buffer *out, uint32_t version, uint64_t n_tensors, uint64_t n_pairs)
{
    raw(out, "GGUF", 4);
    raw_u32(out, version);
    raw_u64(out, n_tensors);
    raw_u64(out, n_pairs);
}

static inline void raw_pair_u32(struct buffer *out, const char *key, uint32_t value)
{
    raw_string(out, key);
    raw_u32(out, GGUF_U32);
    raw_u32(out, value);
}

static inline void raw_tensor(struct buffer *out, const char *name, uint32_t n_dims, const uint64_t *dims,
                              uint32_t format, uint64_t offset)
{
    raw_string(out, name);
    raw_u32(out, n_dims);
    for (uint32_t d = 0; d < n_dims; d++)
        raw_u64(out, dims[d]);
    raw_u32(out, format);
    raw_u64(out, offset);
}

/* Zeros up to a multiple of `alignment`. */
static inline void raw_pad(struct buffer *out, size_t alignment)
{
    while (out->len % alignment != 0)
        raw(out, "", 1);
}

static inline void raw_zeros(struct buffer *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        raw(out, "", 1);
}

#endif
