/* SPDX-License-Identifier: MIT */
#ifndef PROTO_READER_H
#define PROTO_READER_H

/* Private to proto/: reads msgpack (https://github.com/msgpack/msgpack/blob/master/spec.md) item by item
 * without allocating, so hostile input costs no memory. msgpack-c's unpacker would allocate 24 bytes of
 * objects for each byte of a deep or wide message before the message could be checked. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
    const uint8_t *at, *end;
};

enum item_type {
    ITEM_NIL,
    ITEM_BOOL,
    ITEM_UNSIGNED,
    ITEM_NEGATIVE, /* an integer below zero */
    ITEM_REAL,
    ITEM_TEXT,
    ITEM_BIN,
    ITEM_ARRAY, /* n items follow */
    ITEM_MAP,   /* n pairs follow */
    ITEM_EXTENSION
};

struct item {
    enum item_type type;
    union {
        bool boolean;
        uint64_t number;   /* ITEM_UNSIGNED */
        int64_t negative;  /* ITEM_NEGATIVE */
        double real;       /* ITEM_REAL */
        const void *bytes; /* ITEM_TEXT, ITEM_BIN: [n], inside the input */
    };
    size_t n; /* bytes, items or pairs; at most what the rest of the input can hold */
};

/* Reads the head of the next item, and the bytes of a text, bin or extension. False at the end of the input,
 * at a byte that is not msgpack, or if a count exceeds the rest of the input; the reader's position is then
 * undefined. */
bool reader_next(struct reader *reader, struct item *ret_item);

/* Reads an id: an integer from 0 to 2³¹ − 1 in one, three or five bytes. Inline, because most items are ids.
 * False if the next item is anything else; the reader then does not move. */
static inline bool reader_id(struct reader *reader, int32_t *ret_id)
{
    const uint8_t *at = reader->at;
    size_t left = (size_t)(reader->end - at);
    if (left >= 1 && at[0] < 0x80) {
        *ret_id = at[0];
        reader->at += 1;
    } else if (left >= 3 && at[0] == 0xcd) {
        *ret_id = at[1] << 8 | at[2];
        reader->at += 3;
    } else if (left >= 5 && at[0] == 0xce && at[1] < 0x80) {
        *ret_id = at[1] << 24 | at[2] << 16 | at[3] << 8 | at[4];
        reader->at += 5;
    } else {
        return false;
    }
    return true;
}

/* Skips one value that nests containers at most `depth` deep. */
bool reader_skip(struct reader *reader, unsigned depth);

#endif
