/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_LITERAL_H
#define TEXT_DIALECT_LITERAL_H

/* Converts parameter values as models write them to JSON: JSON itself, Python's True, None and 'texts', keys
 * without quotes, and texts between marks of the template. */

#include <stdbool.h>

#include "common/bytes.h"

/* JSON types, as a set. */
enum {
    KIND_TEXT = 1,
    KIND_NUMBER = 2,
    KIND_FLAG = 4,
    KIND_NULL = 8,
    KIND_OBJECT = 16,
    KIND_ARRAY = 32,
    KIND_ANY = 63
};

/* Reads a text that is exactly one value, and appends it as JSON. `quote_open` and `quote_close` are marks
 * around texts, in addition to quotes; "": none. Returns the value's kind; 0: not a value; -ENOMEM. At
 * most 64 levels of nesting. */
int literal_read(struct bytes text, const char *quote_open, const char *quote_close, struct buffer *json);

/* Appends a text as a JSON string; invalid UTF-8 becomes U+FFFD. 0 or -ENOMEM. */
int literal_append_text(struct bytes text, struct buffer *json);

#endif
