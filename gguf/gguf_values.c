/* SPDX-License-Identifier: MIT */
/* Typed reads of metadata.
 *
 * Writers disagree about widths: the same key is a u32 in one file and a u64 or i32 in another, so integers
 * are taken by value, not by type. Array elements stand unaligned in the file and are copied out one by one.
 */

#include "gguf/gguf_values.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "gguf/gguf_internal.h"

static const char *type_name(enum gguf_type type)
{
    static const char *const names[GGUF_TYPE_COUNT] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                       "bool", "string", "array", "u64", "i64", "f64"};
    return names[type];
}

static bool is_unsigned(enum gguf_type type)
{
    return type == GGUF_U8 || type == GGUF_U16 || type == GGUF_U32 || type == GGUF_U64;
}

static bool is_signed(enum gguf_type type)
{
    return type == GGUF_I8 || type == GGUF_I16 || type == GGUF_I32 || type == GGUF_I64;
}

static int wrong_type(const char *key, const struct gguf_value *value, const char *wanted, struct error *err)
{
    return error_set(err, -EINVAL, "metadata %s has type %s, expected %s", key, type_name(value->type),
                     wanted);
}

int gguf_u32(const struct gguf *gguf, const char *key, uint32_t *ret_value, struct error *err)
{
    const struct gguf_value *value = gguf_find(gguf, key);
    if (!value)
        return GGUF_E_MISSING;
    if (!is_unsigned(value->type) && !is_signed(value->type))
        return wrong_type(key, value, "an integer", err);
    if (is_signed(value->type) && value->i < 0)
        return error_set(err, -EINVAL, "metadata %s is negative (%lld)", key, (long long)value->i);
    if (value->u > UINT32_MAX)
        return error_set(err, -EINVAL, "metadata %s is too large (%llu)", key, (unsigned long long)value->u);
    *ret_value = (uint32_t)value->u;
    return 0;
}

int gguf_f32(const struct gguf *gguf, const char *key, float *ret_value, struct error *err)
{
    const struct gguf_value *value = gguf_find(gguf, key);
    if (!value)
        return GGUF_E_MISSING;
    if (value->type == GGUF_F32 || value->type == GGUF_F64)
        *ret_value = (float)value->f;
    else if (is_unsigned(value->type))
        *ret_value = (float)value->u;
    else if (is_signed(value->type))
        *ret_value = (float)value->i;
    else
        return wrong_type(key, value, "a number", err);
    return 0;
}

int gguf_bool(const struct gguf *gguf, const char *key, bool *ret_value, struct error *err)
{
    const struct gguf_value *value = gguf_find(gguf, key);
    if (!value)
        return GGUF_E_MISSING;
    if (value->type != GGUF_BOOL)
        return wrong_type(key, value, "bool", err);
    *ret_value = value->u != 0;
    return 0;
}

int gguf_string(const struct gguf *gguf, const char *key, struct bytes *ret_value, struct error *err)
{
    const struct gguf_value *value = gguf_find(gguf, key);
    if (!value)
        return GGUF_E_MISSING;
    if (value->type != GGUF_STRING)
        return wrong_type(key, value, "string", err);
    *ret_value = value->string;
    return 0;
}

int64_t gguf_array_int(const struct gguf_value *array, uint64_t i)
{
    size_t size = gguf_type_size(array->array.type);
    union {
        uint64_t bits;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
    } raw = {0};
    memcpy(&raw, (const uint8_t *)array->array.raw.data + i * size, size);
    switch (array->array.type) {
    case GGUF_I8:
        return raw.i8;
    case GGUF_I16:
        return raw.i16;
    case GGUF_I32:
        return raw.i32;
    default:
        return raw.i64;
    }
}

double gguf_array_real(const struct gguf_value *array, uint64_t i)
{
    const uint8_t *raw = array->array.raw.data;
    if (array->array.type == GGUF_F32) {
        float value;
        memcpy(&value, raw + i * sizeof value, sizeof value);
        return (double)value;
    }
    if (array->array.type == GGUF_F64) {
        double value;
        memcpy(&value, raw + i * sizeof value, sizeof value);
        return value;
    }
    return (double)gguf_array_int(array, i);
}

struct bytes gguf_array_next_string(const struct gguf_value *array, size_t *cursor)
{
    const uint8_t *at = (const uint8_t *)array->array.raw.data + *cursor;
    uint64_t len;
    memcpy(&len, at, sizeof len);
    *cursor += sizeof len + len;
    return (struct bytes){at + sizeof len, len};
}
