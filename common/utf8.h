/* SPDX-License-Identifier: MIT */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

/* Text from elsewhere: whether it is UTF-8, and how to show it.
 *
 * Text shown to a person has neither invalid UTF-8 nor control characters (U+0000 to U+001F, U+007F to
 * U+009F); each becomes a question mark. A terminal would obey them: a name in a model file, the last line of
 * a process or a model's answer could colour it, rename its window or type for the user. */

#include <stddef.h>

#include "common/bytes.h"

/* The number of ASCII bytes at the front, usually all. Inline, because it is called for every token. */
static inline size_t utf8_ascii(struct bytes text)
{
    const uint8_t *bytes = text.data;
    size_t n = 0;
    for (uint64_t eight; text.len - n >= sizeof eight; n += sizeof eight) {
        memcpy(&eight, bytes + n, sizeof eight);
        if (eight & 0x8080808080808080ull)
            break;
    }
    while (n < text.len && bytes[n] < 0x80)
        n++;
    return n;
}

/* The number of bytes before the first that is not UTF-8 (overlong forms, surrogates and code points above
 * U+10FFFF are not); text.len if all are. */
size_t utf8_valid(struct bytes text);

/* Makes a zero-terminated text printable on one line, in place. Returns it. */
char *utf8_clean(char *text);

/* A copy that is printable on one line, zero-terminated; ends in dots if `size` (at least 4) cuts it, which
 * never splits a character. Returns ret_text. */
char *utf8_printable(struct bytes text, size_t size, char *ret_text);

/* Appends the text with U+FFFD for each byte that is not UTF-8. 0, or -ENOMEM with the buffer unchanged. */
int utf8_append_replaced(struct buffer *out, struct bytes text);

/* Appends the text in a form safe for terminals: newlines and tabs are kept, carriage returns are omitted. 0
 * or -ENOMEM. */
int utf8_append_shown(struct buffer *out, struct bytes text);

#endif
