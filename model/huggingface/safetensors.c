/* SPDX-License-Identifier: MIT */
/* The bytes of a SafeTensors file → tensors.
 *
 * The header's length is the first thing that is checked, then JSON bounds what follows: a tensor is an
 * object of that header, so there are no more of them than it has bytes. Holes between tensors are no matter.
 */

#include "model/huggingface/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "model/huggingface/json_values.h"

/* Far above any published file, whose headers have 150 bytes for each tensor. */
#define MOST_HEADER ((size_t)16 << 20)

static const struct dtype {
    const char *name;
    uint32_t size;
} dtypes[] = {{"F32", 4},  {"F16", 2},     {"BF16", 2},    {"F64", 8},    {"I64", 8}, {"U64", 8},
              {"I32", 4},  {"U32", 4},     {"I16", 2},     {"U16", 2},    {"I8", 1},  {"U8", 1},
              {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}};

static int fail(struct error *err, const char *name, const char *what)
{
    char text[96];
    return error_set(err, -EINVAL, "tensor %s: %s", utf8_printable(bytes_of_string(name), sizeof text, text),
                     what);
}

static int read_dtype(const json_t *entry, struct safetensor *tensor, struct error *err)
{
    const json_t *dtype = json_object_get(entry, "dtype");
    char shown[32], what[96];
    if (!json_is_string(dtype))
        return fail(err, tensor->name, "dtype is not a string");
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, json_string_value(dtype)) == 0) {
            tensor->dtype = dtypes[i].name;
            tensor->element_size = dtypes[i].size;
            return 0;
        }
    snprintf(what, sizeof what, "unknown dtype \"%s\"",
             utf8_printable(bytes_of_string(json_string_value(dtype)), sizeof shown, shown));
    return fail(err, tensor->name, what);
}

static int read_shape(const json_t *entry, struct safetensor *tensor, struct error *err)
{
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > SAFETENSORS_MAX_DIMS)
        return fail(err, tensor->name, "shape is not an array of at most 8 numbers");
    tensor->n_dims = (uint32_t)json_array_size(shape);
    uint64_t size = tensor->element_size;
    for (uint32_t d = 0; d < tensor->n_dims; d++) {
        const json_t *dim = json_array_get(shape, d);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return fail(err, tensor->name, "shape has an invalid number of elements");
        tensor->dims[d] = (uint64_t)json_integer_value(dim);
        if (__builtin_mul_overflow(size, tensor->dims[d], &size))
            return fail(err, tensor->name, "shape has too many elements");
    }
    tensor->size = size;
    return 0;
}

static int read_place(const json_t *entry, struct bytes data, struct safetensor *tensor, struct error *err)
{
    const json_t *place = json_object_get(entry, "data_offsets");
    const json_t *from = json_array_get(place, 0), *to = json_array_get(place, 1);
    char what[160];
    if (json_array_size(place) != 2 || !json_is_integer(from) || !json_is_integer(to))
        return fail(err, tensor->name, "data_offsets are not two integers");
    json_int_t begin = json_integer_value(from), end = json_integer_value(to);
    if (begin < 0 || end < begin || (uint64_t)end > data.len) {
        snprintf(what, sizeof what, "data_offsets %lld to %lld lie outside of the file's %zu bytes of data",
                 (long long)begin, (long long)end, data.len);
        return fail(err, tensor->name, what);
    }
    if ((uint64_t)(end - begin) != tensor->size) {
        snprintf(what, sizeof what, "data_offsets hold %lld bytes, its shape and dtype %zu",
                 (long long)(end - begin), tensor->size);
        return fail(err, tensor->name, what);
    }
    tensor->data = (const uint8_t *)data.data + begin;
    return 0;
}

static int read_tensor(const char *name, const json_t *entry, struct bytes data, struct safetensor *tensor,
                       struct error *err)
{
    tensor->name = name;
    if (!json_is_object(entry))
        return fail(err, name, "its entry in the header is not an object");
    int r = read_dtype(entry, tensor, err);
    if (r == 0)
        r = read_shape(entry, tensor, err);
    return r < 0 ? r : read_place(entry, data, tensor, err);
}

static int compare_places(const void *a, const void *b)
{
    const struct safetensor *x = a, *y = b;
    return x->data != y->data ? (x->data > y->data) - (x->data < y->data)
                              : (x->size > y->size) - (x->size < y->size);
}

static int refuse_overlap(const struct safetensors *file, struct error *err)
{
    for (size_t i = 1; i < file->n; i++) {
        const struct safetensor *before = &file->tensors[i - 1];
        if (before->data + before->size > file->tensors[i].data) {
            char what[128], other[64];
            snprintf(what, sizeof what, "it overlaps tensor %s",
                     utf8_printable(bytes_of_string(before->name), sizeof other, other));
            return fail(err, file->tensors[i].name, what);
        }
    }
    return 0;
}

static int read_tensors(struct safetensors *file, struct bytes data, struct error *err)
{
    const char *name;
    json_t *entry;
    file->tensors = calloc(json_object_size(file->header) + 1, sizeof *file->tensors);
    if (!file->tensors)
        return -ENOMEM;
    json_object_foreach(file->header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        int r = read_tensor(name, entry, data, &file->tensors[file->n], err);
        if (r < 0)
            return r;
        file->n++;
    }
    qsort(file->tensors, file->n, sizeof *file->tensors, compare_places);
    return refuse_overlap(file, err);
}

int safetensors_parse(struct bytes file, struct safetensors *ret_file, struct error *err)
{
    const uint8_t *bytes = file.data;
    struct safetensors found = {0};
    uint64_t len = 0;
    if (file.len < 8)
        return error_set(err, -EINVAL, "not a SafeTensors file: it has %zu bytes", file.len);
    for (int i = 7; i >= 0; i--)
        len = len << 8 | bytes[i];
    if (len > file.len - 8 || len > MOST_HEADER)
        return error_set(err, -EINVAL,
                         "not a SafeTensors file, or truncated: a header of %" PRIu64
                         " bytes in a file of %zu (at most %zu are read)",
                         len, file.len, MOST_HEADER);
    int r = json_object_parse((struct bytes){bytes + 8, len}, MOST_HEADER, &found.header, err);
    if (r < 0)
        return error_prefix(err, r, "header");
    r = read_tensors(&found, (struct bytes){bytes + 8 + len, file.len - 8 - len}, err);
    if (r < 0) {
        safetensors_deinit(&found);
        return r;
    }
    *ret_file = found;
    return 0;
}

void safetensors_deinit(struct safetensors *file)
{
    json_decref(file->header);
    free(file->tensors);
    *file = (struct safetensors){0};
}
