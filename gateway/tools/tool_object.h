/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_TOOLS_TOOL_OBJECT_H
#define GATEWAY_TOOLS_TOOL_OBJECT_H

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

enum tool_object_state {
    TOOL_OBJECT_OPEN, /* goes on */
    TOOL_OBJECT_WHOLE,
    TOOL_OBJECT_BAD /* it is no object, or out of memory */
};

struct tool_object { /* zeroed: before its first byte, which is a brace */
    enum tool_object_state state;
    int place;                /* inside it: tool_object.c's */
    int member;               /* what the value belongs to */
    uint32_t depth;           /* of containers inside the value */
    bool in_string, escaped;  /* inside the value or the key */
    struct buffer key, value; /* the last key; a value that is not handed on */
    struct buffer name;       /* zero-terminated once it is known */
    struct buffer arguments;  /* to be passed on; the one that does so empties it */
    bool has_name, has_arguments;
};

/* Reads bytes up to its end; how many were taken. */
size_t tool_object_push(struct tool_object *object, const uint8_t *data, size_t len);

void tool_object_deinit(struct tool_object *object);

#endif
