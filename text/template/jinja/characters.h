/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_CHARACTERS_H
#define TEXT_TEMPLATE_JINJA_CHARACTERS_H

/* Characters of strings, which are UTF-8. */

#include "text/template/jinja/value.h"

/* Bytes of the character at `at`; malformed ones count as one byte. */
size_t jinja_character_len(const struct jinja_string *string, size_t at);
/* Byte offset of character `index`; the string's length beyond the end. */
size_t jinja_offset_of(const struct jinja_string *string, int64_t index);

#endif
