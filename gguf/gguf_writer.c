/* SPDX-License-Identifier: MIT */
/* Writing GGUF version 3.
 *
 * Metadata is kept as the bytes it will be; tensors as what announces them. Only gguf_writer_write touches
 * the disk: it knows the whole size by then, allocates the file at once (so that a full disk is an error and
 * not a SIGBUS), maps it, and lets every tensor be filled in place. common/files/output_file.h makes it
 * appear whole or not at all. */

#include "gguf/gguf_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/amount.h"
#include "common/files/output_file.h"
#include "gguf/gguf_internal.h"

struct planned_tensor {
    char *name;
    uint32_t n_dims;
    uint64_t dims[GGUF_MAX_DIMS];
    enum format format;
    size_t size;
    gguf_fill *fill;
    void *arg;
};

struct gguf_writer {
    struct buffer pairs;
    uint64_t n_pairs;
    struct planned_tensor *tensors;
    size_t n_tensors, cap;
};

int gguf_writer_new(struct gguf_writer **ret_writer)
{
    struct gguf_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return -ENOMEM;
    *ret_writer = writer;
    return 0;
}

struct gguf_writer *gguf_writer_free(struct gguf_writer *writer)
{
    if (!writer)
        return NULL;
    for (size_t i = 0; i < writer->n_tensors; i++)
        free(writer->tensors[i].name);
    free(writer->tensors);
    buffer_deinit(&writer->pairs);
    free(writer);
    return NULL;
}

static int put_string(struct buffer *out, struct bytes text)
{
    uint64_t len = text.len;
    int r = buffer_append(out, &len, sizeof len);
    return r < 0 ? r : buffer_append(out, text.data, text.len);
}

/* Begins a pair: key and type. The value follows; a pair that cannot be finished is taken back by `end_pair`.
 */
static int begin_pair(struct gguf_writer *writer, struct bytes key, enum gguf_type type)
{
    uint32_t number = type;
    int r = put_string(&writer->pairs, key);
    return r < 0 ? r : buffer_append(&writer->pairs, &number, sizeof number);
}

static int end_pair(struct gguf_writer *writer, size_t before, int r)
{
    if (r < 0)
        writer->pairs.len = before;
    else
        writer->n_pairs++;
    return r;
}

static int put_array_head(struct gguf_writer *writer, const char *key, enum gguf_type type, uint64_t n)
{
    uint32_t number = type;
    int r = begin_pair(writer, bytes_of_string(key), GGUF_ARRAY);
    if (r == 0)
        r = buffer_append(&writer->pairs, &number, sizeof number);
    return r < 0 ? r : buffer_append(&writer->pairs, &n, sizeof n);
}

static int put_scalar(struct gguf_writer *writer, struct bytes key, enum gguf_type type, const void *value)
{
    size_t before = writer->pairs.len;
    int r = begin_pair(writer, key, type);
    if (r == 0)
        r = buffer_append(&writer->pairs, value, gguf_type_size(type));
    return end_pair(writer, before, r);
}

int gguf_writer_u32(struct gguf_writer *writer, const char *key, uint32_t value)
{
    return put_scalar(writer, bytes_of_string(key), GGUF_U32, &value);
}

int gguf_writer_f32(struct gguf_writer *writer, const char *key, float value)
{
    return put_scalar(writer, bytes_of_string(key), GGUF_F32, &value);
}

int gguf_writer_bool(struct gguf_writer *writer, const char *key, bool value)
{
    uint8_t byte = value;
    return put_scalar(writer, bytes_of_string(key), GGUF_BOOL, &byte);
}

int gguf_writer_string(struct gguf_writer *writer, const char *key, const char *value)
{
    struct gguf_pair pair = {.key = bytes_of_string(key), .value.type = GGUF_STRING};
    pair.value.string = bytes_of_string(value);
    return gguf_writer_pair(writer, &pair);
}

int gguf_writer_pair(struct gguf_writer *writer, const struct gguf_pair *pair)
{
    const struct gguf_value *value = &pair->value;
    size_t before = writer->pairs.len;
    int r;
    if (bytes_equal(pair->key, BYTES_LITERAL("general.alignment")))
        return 0;
    switch (value->type) {
    case GGUF_STRING:
        r = begin_pair(writer, pair->key, GGUF_STRING);
        if (r == 0)
            r = put_string(&writer->pairs, value->string);
        return end_pair(writer, before, r);
    case GGUF_ARRAY: {
        uint32_t type = value->array.type;
        r = begin_pair(writer, pair->key, GGUF_ARRAY);
        if (r == 0)
            r = buffer_append(&writer->pairs, &type, sizeof type);
        if (r == 0)
            r = buffer_append(&writer->pairs, &value->array.n, sizeof value->array.n);
        if (r == 0)
            r = buffer_append(&writer->pairs, value->array.raw.data, value->array.raw.len);
        return end_pair(writer, before, r);
    }
    case GGUF_F32: {
        float real = (float)value->f;
        return put_scalar(writer, pair->key, GGUF_F32, &real);
    }
    default: /* integers are little-endian: the low bytes are the value; f64 as it is */
        return put_scalar(writer, pair->key, value->type, &value->u);
    }
}

int gguf_writer_strings(struct gguf_writer *writer, const char *key, const struct bytes *items, size_t n)
{
    size_t before = writer->pairs.len;
    int r = put_array_head(writer, key, GGUF_STRING, n);
    for (size_t i = 0; i < n && r == 0; i++)
        r = put_string(&writer->pairs, items[i]);
    return end_pair(writer, before, r);
}

static int put_array(struct gguf_writer *writer, const char *key, enum gguf_type type, const void *items,
                     size_t n)
{
    size_t before = writer->pairs.len;
    int r = put_array_head(writer, key, type, n);
    if (r == 0)
        r = buffer_append(&writer->pairs, items, n * gguf_type_size(type));
    return end_pair(writer, before, r);
}

_Static_assert(sizeof(bool) == 1, "as files have them");

int gguf_writer_bools(struct gguf_writer *writer, const char *key, const bool *items, size_t n)
{
    return put_array(writer, key, GGUF_BOOL, items, n);
}

int gguf_writer_i32s(struct gguf_writer *writer, const char *key, const int32_t *items, size_t n)
{
    return put_array(writer, key, GGUF_I32, items, n);
}

int gguf_writer_f32s(struct gguf_writer *writer, const char *key, const float *items, size_t n)
{
    return put_array(writer, key, GGUF_F32, items, n);
}

int gguf_writer_tensor(struct gguf_writer *writer, const char *name, uint32_t n_dims, const uint64_t *dims,
                       enum format format, gguf_fill *fill, void *arg)
{
    if (writer->n_tensors == writer->cap) {
        size_t cap = writer->cap ? writer->cap * 2 : 64;
        struct planned_tensor *tensors = reallocarray(writer->tensors, cap, sizeof *tensors);
        if (!tensors)
            return -ENOMEM;
        writer->tensors = tensors;
        writer->cap = cap;
    }
    struct planned_tensor tensor = {
        .name = strdup(name), .n_dims = n_dims, .format = format, .fill = fill, .arg = arg};
    if (!tensor.name)
        return -ENOMEM;
    size_t n = 1;
    for (uint32_t d = 0; d < n_dims; d++) {
        tensor.dims[d] = dims[d];
        n *= dims[d];
    }
    tensor.size = format_bytes(format, n);
    writer->tensors[writer->n_tensors++] = tensor;
    return 0;
}

static size_t aligned(size_t size)
{
    return (size + GGUF_DEFAULT_ALIGNMENT - 1) / GGUF_DEFAULT_ALIGNMENT * GGUF_DEFAULT_ALIGNMENT;
}

int gguf_writer_head(const struct gguf_writer *writer, struct buffer *out)
{
    uint32_t version = 3;
    uint64_t n_tensors = writer->n_tensors, offset = 0;
    int r = buffer_append(out, GGUF_MAGIC, 4);
    if (r == 0)
        r = buffer_append(out, &version, sizeof version);
    if (r == 0)
        r = buffer_append(out, &n_tensors, sizeof n_tensors);
    if (r == 0)
        r = buffer_append(out, &writer->n_pairs, sizeof writer->n_pairs);
    if (r == 0)
        r = buffer_append(out, writer->pairs.data, writer->pairs.len);
    for (size_t i = 0; i < writer->n_tensors && r == 0; i++) {
        const struct planned_tensor *tensor = &writer->tensors[i];
        uint32_t format = tensor->format;
        r = put_string(out, bytes_of_string(tensor->name));
        if (r == 0)
            r = buffer_append(out, &tensor->n_dims, sizeof tensor->n_dims);
        if (r == 0)
            r = buffer_append(out, tensor->dims, tensor->n_dims * sizeof tensor->dims[0]);
        if (r == 0)
            r = buffer_append(out, &format, sizeof format);
        if (r == 0)
            r = buffer_append(out, &offset, sizeof offset);
        offset += aligned(tensor->size);
    }
    static const uint8_t zeros[GGUF_DEFAULT_ALIGNMENT];
    return r < 0 ? r : buffer_append(out, zeros, aligned(out->len) - out->len);
}

static int fill_file(const struct gguf_writer *writer, const struct buffer *head, int fd, size_t size,
                     struct error *err)
{
    int r = -posix_fallocate(fd, 0, (off_t)size);
    if (r < 0)
        return error_set(err, r, "allocating %s: %s", amount_of_bytes(size).text, strerror(-r));
    uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return error_set(err, -errno, "mapping %s: %s", amount_of_bytes(size).text, strerror(errno));
    memcpy(memory, head->data, head->len);
    size_t offset = head->len;
    for (size_t i = 0; i < writer->n_tensors && r == 0; i++) {
        const struct planned_tensor *tensor = &writer->tensors[i];
        r = tensor->fill(tensor->arg, memory + offset, tensor->size);
        if (r < 0)
            error_set(err, r, "creating tensor %s: %s", tensor->name, strerror(-r));
        offset += aligned(tensor->size);
    }
    munmap(memory, size);
    return r;
}

static int write_file(const struct gguf_writer *writer, const struct buffer *head, const char *path,
                      struct error *err)
{
    struct output_file file;
    int r = output_file_open_regular(&file, path, err);
    if (r < 0)
        return r;
    size_t size = head->len;
    for (size_t i = 0; i < writer->n_tensors; i++)
        size += aligned(writer->tensors[i].size);
    r = fill_file(writer, head, file.fd, size, err);
    if (r < 0)
        return error_prefix(err, output_file_discard(&file, r), "%s", path);
    return output_file_commit(&file, err);
}

int gguf_writer_write(struct gguf_writer *writer, const char *path, struct error *err)
{
    struct buffer head = {0};
    int r = gguf_writer_head(writer, &head);
    if (r == 0)
        r = write_file(writer, &head, path, err);
    buffer_deinit(&head);
    return r;
}
