/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_WRAP_H
#define CLIENT_COMMAND_TERMINAL_WRAP_H

/* Text that comes in pieces, broken at the end of a terminal's lines between words. What has come of a word
 * is shown at once; when it turns out not to fit, it is taken away and begun anew on the next line. */

#include <stddef.h>

#include "common/bytes.h"

struct wrap {           /* zeroed but for the columns: at the beginning of a line */
    size_t columns;     /* of the terminal; 0: nothing is broken */
    size_t at;          /* columns written in this line */
    struct buffer word; /* bytes of the word that is being written */
    size_t word_columns;
};

void wrap_deinit(struct wrap *wrap);

/* The terminal stands at the beginning of a line, and has so many columns. */
void wrap_begin(struct wrap *wrap, size_t columns);

/* Appends what has to be written so that the text, whole characters that a terminal obeys only where they are
 * newlines and tabs (utf8_append_shown), appears. 0 or -ENOMEM. */
int wrap_append(struct wrap *wrap, struct bytes text, struct buffer *out);

#endif
