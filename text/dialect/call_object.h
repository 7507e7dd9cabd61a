/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_CALL_OBJECT_H
#define TEXT_DIALECT_CALL_OBJECT_H

/* One call as a model writes it, a JSON object, read while it is written:
 *
 *     {"name": "rain", "arguments": {"town": "Ulm"}}
 *
 * The name is known before the object ends, and arguments are handed on as they come. Members may stand in
 * any order; those that are neither are passed over. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"

enum call_object_state {
    CALL_OBJECT_OPEN, /* goes on */
    CALL_OBJECT_WHOLE,
    CALL_OBJECT_BAD /* it is no object, or out of memory */
};

struct call_object { /* zeroed but for the keys: before its first byte, which is a brace */
    const char *name_key, *arguments_key; /* what the two members are called */
    enum call_object_state state;
    int place;                /* inside it: call_object.c's */
    int member;               /* what the value belongs to */
    uint32_t depth;           /* of containers inside the value */
    bool in_string, escaped;  /* inside the value or the key */
    struct buffer key, value; /* the last key; a value that is not handed on */
    struct buffer name;       /* zero-terminated once it is known */
    struct buffer arguments;  /* to be passed on; the one that does so empties it */
    bool has_name, has_arguments;
};

/* Reads bytes up to its end; how many were taken. */
size_t call_object_push(struct call_object *object, const uint8_t *data, size_t len);

void call_object_deinit(struct call_object *object);

#endif
