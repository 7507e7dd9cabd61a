/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_GGUF_SMALL_GGUF_H
#define TESTS_UNIT_GGUF_SMALL_GGUF_H

/* A small valid file. */

#include "tests/unit/gguf/raw_gguf.h"

/* A valid file with every type of value, two tensors, and no padding after the last byte. */
static inline struct buffer small_gguf(uint32_t version)
{
    struct buffer b = {0};
    uint64_t n = 3;
    raw_head(&b, version, 2, 15);
    raw_string(&b, "u8"), raw_u32(&b, GGUF_U8), raw(&b, "\xfe", 1);
    raw_string(&b, "i8"), raw_u32(&b, GGUF_I8), raw(&b, "\xfe", 1);
    raw_string(&b, "u16"), raw_u32(&b, GGUF_U16), raw(&b, "\xfe\xff", 2);
    raw_string(&b, "i16"), raw_u32(&b, GGUF_I16), raw(&b, "\xfe\xff", 2);
    raw_pair_u32(&b, "u32", 4000000000u);
    raw_string(&b, "i32"), raw_u32(&b, GGUF_I32), raw_u32(&b, (uint32_t)-2);
    raw_string(&b, "f32"), raw_u32(&b, GGUF_F32), raw(&b, &(float){1.5f}, 4);
    raw_string(&b, "bool"), raw_u32(&b, GGUF_BOOL), raw(&b, "\1", 1);
    raw_string(&b, "string"), raw_u32(&b, GGUF_STRING), raw_string(&b, "grind");
    raw_string(&b, "u64"), raw_u32(&b, GGUF_U64), raw_u64(&b, 1ull << 40);
    raw_string(&b, "i64"), raw_u32(&b, GGUF_I64), raw_u64(&b, (uint64_t)-5);
    raw_string(&b, "f64"), raw_u32(&b, GGUF_F64), raw(&b, &(double){0.1}, 8);
    raw_string(&b, "i16s"), raw_u32(&b, GGUF_ARRAY), raw_u32(&b, GGUF_I16), raw_u64(&b, n);
    raw(&b, (int16_t[]){-1, 2, -300}, 6);
    raw_string(&b, "strings"), raw_u32(&b, GGUF_ARRAY), raw_u32(&b, GGUF_STRING), raw_u64(&b, n);
    raw_string(&b, "a"), raw_string(&b, ""), raw_string(&b, "ccc");
    raw_string(&b, "f64s"), raw_u32(&b, GGUF_ARRAY), raw_u32(&b, GGUF_F64), raw_u64(&b, 1);
    raw(&b, &(double){2.5}, 8);
    raw_tensor(&b, "first", 2, (uint64_t[]){32, 2}, FORMAT_Q8_0, 0);
    raw_tensor(&b, "second", 1, (uint64_t[]){8}, FORMAT_F32, 96);
    raw_pad(&b, 32);
    raw_zeros(&b, 96);
    for (int i = 0; i < 8; i++)
        raw(&b, &(float){(float)i}, 4);
    return b;
}

/* Parses the bytes, which must be a GGUF file. They are borrowed. */
static inline struct gguf *parse_gguf(const struct buffer *file)
{
    struct gguf *gguf = NULL;
    struct error err = {0};
    int r = gguf_parse(file->data, file->len, &gguf, &err);
    ck_assert_msg(r == 0, "%s", err.text);
    return gguf;
}

#endif
