/* SPDX-License-Identifier: MIT */
#ifndef PROTO_READER_H
#define PROTO_READER_H

/* Private to proto/: walks msgpack (https://github.com/msgpack/msgpack/blob/master/spec.md) item by item
 * without building anything, so that hostile bytes can cost no memory. msgpack-c's unpacker would make 24
 * bytes of objects from each byte of a deep or wide message before anybody could look at it. */

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
    size_t n; /* bytes, items or pairs; never more than the rest of the input could hold */
};

/* Reads the next item's head, and the bytes of a text, bin or extension. False, with the reader anywhere, at
 * the end of the input, at a byte that is not msgpack, or when a count is larger than what is left. */
bool reader_next(struct reader *reader, struct item *ret_item);

/* Skips one whole value with at most `depth` containers inside one another. */
bool reader_skip(struct reader *reader, unsigned depth);

#endif
