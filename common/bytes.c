/* SPDX-License-Identifier: MIT */
/* Growable arrays of bytes and of token ids.
 *
 * Both grow by half again, never shrink, and leave their content untouched when memory runs out, so that a
 * caller may report the failure and go on. */

#include "common/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_BYTES 65536 /* at once */

/* Grows *data to hold at least `need` elements of `size` bytes. */
static int grow(void **data, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return 0;
    size_t larger = *cap + *cap / 2 + 64 / size;
    if (larger < need)
        larger = need;
    if (larger > SIZE_MAX / size)
        return -ENOMEM;
    void *moved = realloc(*data, larger * size);
    if (!moved)
        return -ENOMEM;
    *data = moved;
    *cap = larger;
    return 0;
}

int buffer_grow(struct buffer *buffer, size_t more)
{
    if (more > SIZE_MAX - buffer->len)
        return -ENOMEM;
    void *data = buffer->data;
    int r = grow(&data, &buffer->cap, buffer->len + more, 1);
    buffer->data = data;
    return r;
}

int buffer_read(struct buffer *buffer, int fd, size_t most)
{
    while (buffer->len <= most) {
        int r = buffer_reserve(buffer, READ_BYTES);
        if (r < 0)
            return r;
        ssize_t n = read(fd, buffer->data + buffer->len, READ_BYTES);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
        buffer->len += n > 0 ? (size_t)n : 0;
    }
    return -EFBIG;
}

void buffer_consume(struct buffer *buffer, size_t len)
{
    if (len >= buffer->len) {
        buffer->len = 0;
        return;
    }
    memmove(buffer->data, buffer->data + len, buffer->len - len);
    buffer->len -= len;
}

void buffer_deinit(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){0};
}

int ids_grow(struct ids *ids, size_t more)
{
    if (more > SIZE_MAX - ids->len)
        return -ENOMEM;
    void *data = ids->data;
    int r = grow(&data, &ids->cap, ids->len + more, sizeof *ids->data);
    ids->data = data;
    return r;
}

int ids_append(struct ids *ids, const int32_t *data, size_t n)
{
    if (n == 0)
        return 0;
    int r = ids_grow(ids, n);
    if (r < 0)
        return r;
    memcpy(ids->data + ids->len, data, n * sizeof *data);
    ids->len += n;
    return 0;
}

void ids_deinit(struct ids *ids)
{
    free(ids->data);
    *ids = (struct ids){0};
}
