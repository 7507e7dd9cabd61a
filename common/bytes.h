/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BYTES_H
#define COMMON_BYTES_H

/* Byte views and growable byte buffers.
 *
 * A `struct bytes` borrows: it never owns what it points to, and the function that returns one documents its
 * lifetime. It is used for text too, which is then UTF-8 without a terminating zero. A `struct buffer` owns
 * its memory; a zeroed one is empty and ready. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const void *data;
    size_t len;
};

#define BYTES_LITERAL(s) ((struct bytes){(s), sizeof(s) - 1})

static inline struct bytes bytes_of_string(const char *s)
{
    return (struct bytes){s, strlen(s)};
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

struct buffer {
    uint8_t *data;
    size_t len; /* bytes in use */
    size_t cap; /* bytes allocated */
};

/* Makes room for `more` further bytes. 0, or -ENOMEM with the buffer unchanged. */
int buffer_grow(struct buffer *buffer, size_t more);
static inline int buffer_reserve(struct buffer *buffer, size_t more)
{
    return more <= buffer->cap - buffer->len ? 0 : buffer_grow(buffer, more);
}

/* Appends a copy of the bytes. 0, or -ENOMEM with the buffer unchanged. Inline, like ids_push: it is called
 * several times per token with a few bytes. */
static inline int buffer_append(struct buffer *buffer, const void *data, size_t len)
{
    if (len == 0)
        return 0;
    int r = buffer_reserve(buffer, len);
    if (r < 0)
        return r;
    memcpy(buffer->data + buffer->len, data, len);
    buffer->len += len;
    return 0;
}

/* Appends everything that a descriptor yields until its end. 0; -EFBIG as soon as the buffer has more than
 * `most` bytes; -ENOMEM; -errno. */
int buffer_read(struct buffer *buffer, int fd, size_t most);

/* Drops the first `len` bytes (at most all) and moves the rest to the front. */
void buffer_consume(struct buffer *buffer, size_t len);

/* Frees the memory; the buffer is empty and usable again. */
void buffer_deinit(struct buffer *buffer);

/* A growable list of token ids; a zeroed one is empty and ready. */
struct ids {
    int32_t *data;
    size_t len; /* ids in use */
    size_t cap; /* ids allocated */
};

/* Makes room for `more` further ids. 0, or -ENOMEM with the list unchanged. */
int ids_grow(struct ids *ids, size_t more);

/* Appends. 0, or -ENOMEM with the list unchanged. */
int ids_append(struct ids *ids, const int32_t *data, size_t n);
static inline int ids_push(struct ids *ids, int32_t id)
{
    int r = ids->len < ids->cap ? 0 : ids_grow(ids, 1);
    if (r == 0)
        ids->data[ids->len++] = id;
    return r;
}
void ids_deinit(struct ids *ids);

#endif
