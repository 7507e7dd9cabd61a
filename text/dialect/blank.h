/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_BLANK_H
#define TEXT_DIALECT_BLANK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/bytes.h"

/* White space as in JSON: a template's may differ from its model's. Takes a char or a byte. */
static inline bool is_blank(int byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* A text without the blanks around it. */
static inline struct bytes without_blanks(const char *text)
{
    size_t len = strlen(text);
    for (; is_blank((uint8_t)*text); text++)
        len--;
    while (len > 0 && is_blank((uint8_t)text[len - 1]))
        len--;
    return (struct bytes){text, len};
}

#endif
