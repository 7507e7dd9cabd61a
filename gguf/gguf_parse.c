/* SPDX-License-Identifier: MIT */
/* The bytes of one GGUF file → pairs and tensors.
 *
 * A reader walks the bytes once from the front. It alone moves the position, and never beyond the end: every
 * count and length is compared with what is left before anything is allocated or skipped, so memory is
 * bounded by the file and by two fixed limits, and time is linear. What comes out points into the bytes.
 *
 * Layout: magic, version, tensor count, pair count; the pairs (key, type, value); the tensors (name, dims,
 * format, offset); padding up to the alignment; the data. */

#include "gguf/gguf_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

/* No known model comes near; a file that says more is hostile or broken. */
#define MAX_PAIRS   65536
#define MAX_TENSORS 65536
#define MAX_NAME    65535

/* The least bytes that an entry takes: a name's length, a byte of it, a type, a value or an offset. */
#define LEAST_PAIR_BYTES   (8 + 1 + 4 + 1)
#define LEAST_TENSOR_BYTES (8 + 1 + 4 + 8 + 4 + 8)

struct reader {
    const uint8_t *data;
    size_t len, position;
    struct error *err;
};

size_t gguf_type_size(enum gguf_type type)
{
    static const uint8_t sizes[GGUF_TYPE_COUNT] = {
        [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
        [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8};
    return (unsigned)type < GGUF_TYPE_COUNT ? sizes[type] : 0;
}

static size_t left(const struct reader *reader)
{
    return reader->len - reader->position;
}

static int take(struct reader *reader, uint64_t n, const char *what, const uint8_t **ret_data)
{
    if (n > left(reader)) {
        error_set(reader->err, -EINVAL, "truncated at byte %zu: %s needs %" PRIu64 " bytes, %zu are left",
                  reader->len, what, n, left(reader));
        return -EINVAL;
    }
    *ret_data = reader->data + reader->position;
    reader->position += n;
    return 0;
}

static int take_u32(struct reader *reader, const char *what, uint32_t *ret_value)
{
    const uint8_t *data;
    int r = take(reader, sizeof *ret_value, what, &data);
    if (r == 0)
        memcpy(ret_value, data, sizeof *ret_value);
    return r;
}

static int take_u64(struct reader *reader, const char *what, uint64_t *ret_value)
{
    const uint8_t *data;
    int r = take(reader, sizeof *ret_value, what, &data);
    if (r == 0)
        memcpy(ret_value, data, sizeof *ret_value);
    return r;
}

static int take_string(struct reader *reader, const char *what, struct bytes *ret_string)
{
    uint64_t len;
    const uint8_t *data;
    int r = take_u64(reader, what, &len);
    if (r == 0)
        r = take(reader, len, what, &data);
    if (r == 0)
        *ret_string = (struct bytes){data, len};
    return r;
}

static int take_name(struct reader *reader, const char *what, struct bytes *ret_name)
{
    struct bytes name;
    int r = take_string(reader, what, &name);
    if (r < 0)
        return r;
    if (name.len == 0 || name.len > MAX_NAME)
        return error_set(reader->err, -EINVAL, "%s has %zu bytes; 1 to %d are allowed", what, name.len,
                         MAX_NAME);
    *ret_name = name;
    return 0;
}

static int take_scalar(struct reader *reader, const char *what, struct gguf_value *value)
{
    const uint8_t *data;
    size_t size = gguf_type_size(value->type);
    int r = take(reader, size, what, &data);
    if (r < 0)
        return r;
    union {
        uint64_t bits;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        float f32;
        double f64;
    } raw = {0};
    memcpy(&raw, data, size);
    switch (value->type) {
    case GGUF_I8:
        value->i = raw.i8;
        break;
    case GGUF_I16:
        value->i = raw.i16;
        break;
    case GGUF_I32:
        value->i = raw.i32;
        break;
    case GGUF_F32:
        value->f = (double)raw.f32;
        break;
    case GGUF_F64:
        value->f = raw.f64;
        break;
    case GGUF_BOOL:
        if (raw.bits > 1)
            return error_set(reader->err, -EINVAL, "%s has the invalid boolean value %" PRIu64, what,
                             raw.bits);
        value->u = raw.bits;
        break;
    default: /* unsigned integers; GGUF_I64 has the same bits */
        value->u = raw.bits;
    }
    return 0;
}

static int take_array(struct reader *reader, const char *what, struct gguf_value *value)
{
    uint32_t type;
    uint64_t n;
    int r = take_u32(reader, what, &type);
    if (r == 0)
        r = take_u64(reader, what, &n);
    if (r < 0)
        return r;
    size_t start = reader->position;
    if (type == GGUF_STRING) {
        struct bytes item;
        /* Each string takes 8 bytes at least, so a false count ends at the end of the file. */
        for (uint64_t i = 0; i < n && r == 0; i++)
            r = take_string(reader, what, &item);
    } else {
        size_t size = gguf_type_size((enum gguf_type)type);
        const uint8_t *data;
        if (size == 0)
            return error_set(reader->err, -EINVAL,
                             "%s is an array of type %" PRIu32 ", which is not supported", what, type);
        /* Saturates instead of overflowing: what is too long stays too long. */
        r = take(reader, n > SIZE_MAX / size ? SIZE_MAX : n * size, what, &data);
    }
    if (r < 0)
        return r;
    value->array.type = (enum gguf_type)type;
    value->array.n = n;
    value->array.raw = (struct bytes){reader->data + start, reader->position - start};
    return 0;
}

static int take_pair(struct reader *reader, size_t i, struct gguf_pair *pair)
{
    char name[64], what[96];
    uint32_t type;
    snprintf(what, sizeof what, "the name of metadata pair %zu", i);
    int r = take_name(reader, what, &pair->key);
    if (r < 0)
        return r;
    snprintf(what, sizeof what, "metadata %s", utf8_printable(pair->key, sizeof name, name));
    r = take_u32(reader, what, &type);
    if (r < 0)
        return r;
    if (type >= GGUF_TYPE_COUNT)
        return error_set(reader->err, -EINVAL, "%s has unknown type %" PRIu32, what, type);
    pair->value.type = (enum gguf_type)type;
    switch (type) {
    case GGUF_STRING:
        return take_string(reader, what, &pair->value.string);
    case GGUF_ARRAY:
        return take_array(reader, what, &pair->value);
    default:
        return take_scalar(reader, what, &pair->value);
    }
}

/* Dims and format → the size in bytes, without overflow. */
static int size_tensor(struct gguf_tensor *tensor, const char *what, struct error *err)
{
    const struct format_traits *traits = format_traits(tensor->format);
    uint64_t n = 1, bytes;
    for (uint32_t d = 0; d < tensor->n_dims; d++) {
        if (tensor->dims[d] == 0)
            return error_set(err, -EINVAL, "%s: dimension %" PRIu32 " is 0", what, d);
        if (__builtin_mul_overflow(n, tensor->dims[d], &n) || n > INT64_MAX)
            return error_set(err, -EINVAL, "%s: its dimensions overflow", what);
    }
    if (tensor->dims[0] % traits->block_elements != 0)
        return error_set(err, -EINVAL,
                         "%s: rows of %" PRIu64 " elements are not a multiple of the %s block size %u", what,
                         tensor->dims[0], traits->name, traits->block_elements);
    if (__builtin_mul_overflow(n / traits->block_elements, (uint64_t)traits->block_bytes, &bytes))
        return error_set(err, -EINVAL, "%s: its size overflows", what);
    tensor->size = bytes;
    return 0;
}

/* Leaves the offset, relative to the data section, in `ret_offset`. */
static int take_tensor(struct reader *reader, size_t i, struct gguf_tensor *tensor, uint64_t *ret_offset)
{
    char name[64], what[96];
    uint32_t format;
    snprintf(what, sizeof what, "the name of tensor %zu", i);
    int r = take_name(reader, what, &tensor->name);
    if (r < 0)
        return r;
    snprintf(what, sizeof what, "tensor %s", utf8_printable(tensor->name, sizeof name, name));
    r = take_u32(reader, what, &tensor->n_dims);
    if (r < 0)
        return r;
    if (tensor->n_dims == 0 || tensor->n_dims > GGUF_MAX_DIMS)
        return error_set(reader->err, -EINVAL, "%s has %" PRIu32 " dimensions; 1 to %d are supported", what,
                         tensor->n_dims, GGUF_MAX_DIMS);
    for (uint32_t d = 0; d < GGUF_MAX_DIMS; d++)
        tensor->dims[d] = 1;
    for (uint32_t d = 0; d < tensor->n_dims && r == 0; d++)
        r = take_u64(reader, what, &tensor->dims[d]);
    if (r == 0)
        r = take_u32(reader, what, &format);
    if (r == 0)
        r = take_u64(reader, what, ret_offset);
    if (r < 0)
        return r;
    if (!format_traits(format)->name)
        return error_set(reader->err, -EINVAL, "%s has unknown format %" PRIu32, what, format);
    tensor->format = (enum format)format;
    return size_tensor(tensor, what, reader->err);
}

static int find_alignment(const struct gguf *part, uint64_t *ret_alignment, struct error *err)
{
    *ret_alignment = GGUF_DEFAULT_ALIGNMENT;
    for (size_t i = 0; i < part->n_pairs; i++) {
        const struct gguf_pair *pair = &part->pairs[i];
        if (!bytes_equal(pair->key, BYTES_LITERAL("general.alignment")))
            continue;
        uint64_t a = pair->value.u;
        if (pair->value.type != GGUF_U32 || a < 8 || (a & (a - 1)) != 0)
            return error_set(err, -EINVAL, "general.alignment must be a power of two of at least 8");
        *ret_alignment = a;
    }
    return 0;
}

static int compare_places(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *y = *(const struct gguf_tensor *const *)b;
    return (x->data > y->data) - (x->data < y->data);
}

/* Bytes that belong to one tensor alone keep what is made of the tensors in proportion to the file. */
static int refuse_overlap(const struct gguf *part, struct error *err)
{
    const struct gguf_tensor **placed = calloc(part->n_tensors + 1, sizeof *placed);
    int r = placed ? 0 : -ENOMEM;
    for (size_t i = 0; i < part->n_tensors && r == 0; i++)
        placed[i] = &part->tensors[i];
    if (r == 0)
        qsort(placed, part->n_tensors, sizeof *placed, compare_places);
    for (size_t i = 1; i < part->n_tensors && r == 0; i++) {
        const struct gguf_tensor *before = placed[i - 1], *after = placed[i];
        char name[64], other[64];
        if ((size_t)((const uint8_t *)after->data - (const uint8_t *)before->data) < before->size)
            r = error_set(err, -EINVAL, "tensors %s and %s overlap",
                          utf8_printable(before->name, sizeof name, name),
                          utf8_printable(after->name, sizeof other, other));
    }
    free(placed);
    return r;
}

static int place_tensors(struct reader *reader, struct gguf *part, const uint64_t *offsets)
{
    uint64_t alignment;
    int r = find_alignment(part, &alignment, reader->err);
    if (r < 0)
        return r;
    uint64_t start = (reader->position + alignment - 1) & ~(alignment - 1);
    for (size_t i = 0; i < part->n_tensors; i++) {
        struct gguf_tensor *tensor = &part->tensors[i];
        char name[64];
        utf8_printable(tensor->name, sizeof name, name);
        if (offsets[i] % alignment != 0)
            return error_set(reader->err, -EINVAL,
                             "tensor %s lies at offset %" PRIu64
                             ", which is not a multiple of the alignment %" PRIu64,
                             name, offsets[i], alignment);
        if (start > reader->len || offsets[i] > reader->len - start ||
            tensor->size > reader->len - start - offsets[i])
            return error_set(reader->err, -EINVAL,
                             "truncated at byte %zu: tensor %s lies at %" PRIu64 " + %" PRIu64
                             " and has %zu bytes",
                             reader->len, name, start, offsets[i], tensor->size);
        tensor->data = reader->data + start + offsets[i];
    }
    return refuse_overlap(part, reader->err);
}

static int take_header(struct reader *reader, uint32_t *ret_version, uint64_t *ret_tensors,
                       uint64_t *ret_pairs)
{
    const uint8_t *magic;
    int r = take(reader, 4, "the magic", &magic);
    if (r < 0)
        return r;
    if (memcmp(magic, GGUF_MAGIC, 4) != 0)
        return error_set(reader->err, -EINVAL, "not a GGUF file (it begins with %02x %02x %02x %02x)",
                         magic[0], magic[1], magic[2], magic[3]);
    r = take_u32(reader, "the version", ret_version);
    if (r < 0)
        return r;
    if (*ret_version != 2 && *ret_version != 3) {
        if (*ret_version != 0 && (*ret_version & 0xffff) == 0)
            return error_set(reader->err, -EINVAL, "big-endian GGUF files are not supported");
        return error_set(reader->err, -EINVAL, "GGUF version %" PRIu32 " is not supported (2 and 3 are)",
                         *ret_version);
    }
    r = take_u64(reader, "the tensor count", ret_tensors);
    if (r == 0)
        r = take_u64(reader, "the metadata count", ret_pairs);
    if (r < 0)
        return r;
    if (*ret_pairs > MAX_PAIRS || *ret_tensors > MAX_TENSORS)
        return error_set(reader->err, -EINVAL,
                         "%" PRIu64 " metadata pairs and %" PRIu64
                         " tensors: at most %d and %d are supported",
                         *ret_pairs, *ret_tensors, MAX_PAIRS, MAX_TENSORS);
    if (*ret_pairs * LEAST_PAIR_BYTES + *ret_tensors * LEAST_TENSOR_BYTES > left(reader))
        return error_set(reader->err, -EINVAL,
                         "truncated at byte %zu: %" PRIu64 " metadata pairs and %" PRIu64
                         " tensors do not fit",
                         reader->len, *ret_pairs, *ret_tensors);
    return 0;
}

static int parse(struct bytes file, bool with_data, struct gguf *part, struct error *err)
{
    struct reader reader = {.data = file.data, .len = file.len, .err = err};
    uint64_t n_tensors = 0, n_pairs = 0, *offsets = NULL;
    int r = take_header(&reader, &part->version, &n_tensors, &n_pairs);
    if (r < 0)
        return r;
    part->pairs = calloc(n_pairs + 1, sizeof *part->pairs);
    part->tensors = calloc(n_tensors + 1, sizeof *part->tensors);
    offsets = calloc(n_tensors + 1, sizeof *offsets);
    if (!part->pairs || !part->tensors || !offsets)
        r = -ENOMEM;
    size_t start = reader.position;
    for (; r == 0 && part->n_pairs < n_pairs; part->n_pairs++)
        r = take_pair(&reader, part->n_pairs, &part->pairs[part->n_pairs]);
    part->metadata = (struct bytes){reader.data + start, reader.position - start};
    for (; r == 0 && part->n_tensors < n_tensors; part->n_tensors++)
        r = take_tensor(&reader, part->n_tensors, &part->tensors[part->n_tensors], &offsets[part->n_tensors]);
    if (r == 0 && with_data)
        r = place_tensors(&reader, part, offsets);
    free(offsets);
    return r;
}

int gguf_parse_file(struct bytes file, struct gguf *part, struct error *err)
{
    return parse(file, true, part, err);
}

int gguf_parse_head(struct bytes head, struct gguf *part, struct error *err)
{
    return parse(head, false, part, err);
}
