/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_CALL_OBJECT_H
#define TEXT_DIALECT_CALL_OBJECT_H

/* Reads a call that is a JSON object while the model writes it:
 *
 *     {"name": "rain", "arguments": {"town": "Ulm"}}
 *
 * The name is known before the object ends, and arguments are reported as they come. Members may come in any
 * order; other members are ignored. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"

enum call_object_state {
    CALL_OBJECT_OPEN, /* incomplete */
    CALL_OBJECT_WHOLE,
    CALL_OBJECT_BAD /* not an object, or out of memory */
};

struct call_object { /* zeroed except for the keys: before its first byte, which is a brace */
    const char *name_key, *arguments_key; /* the names of the two members */
    enum call_object_state state;
    int place;                /* inside it: one of call_object.c */
    int member;               /* to which the value belongs */
    uint32_t depth;           /* of containers inside the value */
    bool in_string, escaped;  /* inside the value or the key */
    struct buffer key, value; /* the last key; a value that is not reported */
    struct buffer name;       /* zero-terminated once it is known */
    struct buffer arguments;  /* to be reported; the caller empties it */
    bool has_name, has_arguments;
};

/* Reads bytes up to the object's end; returns how many it consumed. */
size_t call_object_push(struct call_object *object, const uint8_t *data, size_t len);

void call_object_deinit(struct call_object *object);

#endif
