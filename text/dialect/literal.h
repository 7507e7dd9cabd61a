/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_LITERAL_H
#define TEXT_DIALECT_LITERAL_H

/* Values of parameters as models write them, into JSON: JSON itself, Python's True, None and 'texts', keys
 * without quotes, and texts between marks of the template's own. */

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

/* Reads the text, which is one value and nothing else, and appends it as JSON. `quote_open` and `quote_close`
 * stand around texts besides quotes; "": nothing does. The value's kind; 0: it is no value; -ENOMEM. Nested
 * at most 64 deep. */
int literal_read(struct bytes text, const char *quote_open, const char *quote_close, struct buffer *json);

/* Appends a text as a JSON string; what is no UTF-8 in it becomes U+FFFD. 0 or -ENOMEM. */
int literal_append_text(struct bytes text, struct buffer *json);

#endif
