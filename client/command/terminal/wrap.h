/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_WRAP_H
#define CLIENT_COMMAND_TERMINAL_WRAP_H

/* Wraps text that arrives in pieces between words at the end of a terminal's lines. The beginning of a word
 * is shown at once; if the word turns out not to fit, it is erased and started again on the next line. */

#include <stddef.h>

#include "common/bytes.h"

struct wrap {           /* zeroed except for the columns: at the beginning of a line */
    size_t columns;     /* of the terminal; 0: no wrapping */
    size_t at;          /* columns written in this line */
    struct buffer word; /* bytes of the word that is being written */
    size_t word_columns;
};

void wrap_deinit(struct wrap *wrap);

/* The cursor is at the beginning of a line; the terminal has this many columns. */
void wrap_begin(struct wrap *wrap, size_t columns);

/* Appends to `out` the bytes that make the text appear. The text is whole characters; its only control
 * characters are newlines and tabs (utf8_append_shown). 0 or -ENOMEM. */
int wrap_append(struct wrap *wrap, struct bytes text, struct buffer *out);

#endif
