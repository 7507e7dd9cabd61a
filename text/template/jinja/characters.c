/* SPDX-License-Identifier: MIT */
/* Characters of strings: where they begin, and how long they are. A byte that continues no character counts
 * with the one before it, so malformed text is walked through like any other. */

#include "text/template/jinja/characters.h"

size_t jinja_character_len(const struct jinja_string *string, size_t at)
{
    size_t len = 1;
    while (at + len < string->len && ((uint8_t)string->data[at + len] & 0xc0) == 0x80)
        len++;
    return len;
}

size_t jinja_offset_of(const struct jinja_string *string, int64_t index)
{
    size_t at = 0;
    while (index-- > 0 && at < string->len)
        at += jinja_character_len(string, at);
    return at;
}
