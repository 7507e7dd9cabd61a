/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_BLANK_H
#define TEXT_DIALECT_BLANK_H

#include <stdbool.h>

/* White space, as JSON has it: a template's may differ from what its model writes. Takes a char or a byte. */
static inline bool is_blank(int byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

#endif
