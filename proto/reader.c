/* SPDX-License-Identifier: MIT */
/* The msgpack cursor: one switch over the first byte of an item.
 *
 * Every count is compared with the bytes that are left before anyone sees it: an array of n items needs n
 * bytes at least, a map of n pairs 2n. So a loop over n is bounded by the input's length, whatever the input
 * says. */

#include "proto/reader.h"

#include <string.h>

static uint64_t big_endian(const uint8_t *at, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value = value << 8 | at[i];
    return value;
}

/* Reads an unsigned number of n bytes. */
static bool take(struct reader *reader, unsigned n, uint64_t *ret_value)
{
    if ((size_t)(reader->end - reader->at) < n)
        return false;
    *ret_value = big_endian(reader->at, n);
    reader->at += n;
    return true;
}

static bool take_bytes(struct reader *reader, enum item_type type, uint64_t n, struct item *ret_item)
{
    if ((uint64_t)(reader->end - reader->at) < n)
        return false;
    ret_item->type = type;
    ret_item->bytes = reader->at;
    ret_item->n = (size_t)n;
    reader->at += n;
    return true;
}

static bool take_container(struct reader *reader, enum item_type type, uint64_t n, struct item *ret_item)
{
    uint64_t least = type == ITEM_MAP ? 2 * n : n;
    if ((uint64_t)(reader->end - reader->at) < least)
        return false;
    ret_item->type = type;
    ret_item->n = (size_t)n;
    return true;
}

static bool take_signed(struct reader *reader, unsigned n, struct item *ret_item)
{
    uint64_t raw;
    if (!take(reader, n, &raw))
        return false;
    unsigned unused = 64 - 8 * n;
    int64_t value = (int64_t)(raw << unused) >> unused;
    if (value < 0) {
        ret_item->type = ITEM_NEGATIVE;
        ret_item->negative = value;
    } else {
        ret_item->type = ITEM_UNSIGNED;
        ret_item->number = (uint64_t)value;
    }
    return true;
}

static bool take_real(struct reader *reader, unsigned n, struct item *ret_item)
{
    uint64_t raw;
    if (!take(reader, n, &raw))
        return false;
    ret_item->type = ITEM_REAL;
    if (n == 4) {
        uint32_t raw32 = (uint32_t)raw;
        float value;
        memcpy(&value, &raw32, 4);
        ret_item->real = value;
    } else {
        memcpy(&ret_item->real, &raw, 8);
    }
    return true;
}

/* The heads with a length of 1, 2 or 4 bytes behind the first byte. */
static bool take_sized(struct reader *reader, enum item_type type, unsigned width, struct item *ret_item)
{
    uint64_t n;
    if (!take(reader, width, &n))
        return false;
    if (type == ITEM_ARRAY || type == ITEM_MAP)
        return take_container(reader, type, n, ret_item);
    return take_bytes(reader, type, type == ITEM_EXTENSION ? n + 1 : n, ret_item);
}

bool reader_next(struct reader *reader, struct item *ret_item)
{
    if (reader->at == reader->end)
        return false;
    uint8_t head = *reader->at++;
    if (head < 0x80 || head >= 0xe0) {
        ret_item->type = head < 0x80 ? ITEM_UNSIGNED : ITEM_NEGATIVE;
        ret_item->negative = (int8_t)head;
        return true;
    }
    if (head < 0x90)
        return take_container(reader, ITEM_MAP, head & 0x0f, ret_item);
    if (head < 0xa0)
        return take_container(reader, ITEM_ARRAY, head & 0x0f, ret_item);
    if (head < 0xc0)
        return take_bytes(reader, ITEM_TEXT, head & 0x1f, ret_item);
    switch (head) {
    case 0xc0:
        ret_item->type = ITEM_NIL;
        return true;
    case 0xc2:
    case 0xc3:
        ret_item->type = ITEM_BOOL;
        ret_item->boolean = head & 1;
        return true;
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return take_sized(reader, ITEM_BIN, 1u << (head - 0xc4), ret_item);
    case 0xc7:
    case 0xc8:
    case 0xc9:
        return take_sized(reader, ITEM_EXTENSION, 1u << (head - 0xc7), ret_item);
    case 0xca:
        return take_real(reader, 4, ret_item);
    case 0xcb:
        return take_real(reader, 8, ret_item);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        ret_item->type = ITEM_UNSIGNED;
        return take(reader, 1u << (head - 0xcc), &ret_item->number);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return take_signed(reader, 1u << (head - 0xd0), ret_item);
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        return take_bytes(reader, ITEM_EXTENSION, (1u << (head - 0xd4)) + 1, ret_item);
    case 0xd9:
    case 0xda:
    case 0xdb:
        return take_sized(reader, ITEM_TEXT, 1u << (head - 0xd9), ret_item);
    case 0xdc:
    case 0xdd:
        return take_sized(reader, ITEM_ARRAY, 2u << (head - 0xdc), ret_item);
    case 0xde:
    case 0xdf:
        return take_sized(reader, ITEM_MAP, 2u << (head - 0xde), ret_item);
    default: /* 0xc1: never used */
        return false;
    }
}

bool reader_skip(struct reader *reader, unsigned depth)
{
    /* left[d]: values still to come in the d-th open container; left[0] is the value itself. */
    size_t left[16] = {1};
    unsigned open = 0;
    if (depth > 15)
        return false;
    for (;;) {
        while (left[open] == 0) {
            if (open == 0)
                return true;
            open--;
        }
        struct item item;
        if (!reader_next(reader, &item))
            return false;
        left[open]--;
        if (item.type == ITEM_ARRAY || item.type == ITEM_MAP) {
            if (open == depth)
                return false;
            left[++open] = item.type == ITEM_MAP ? 2 * item.n : item.n;
        }
    }
}
