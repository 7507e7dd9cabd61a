/* SPDX-License-Identifier: MIT */
#ifndef COMMON_HEX_H
#define COMMON_HEX_H

#include <stddef.h>

/* Writes n bytes as 2 n lowercase hexadecimal digits, followed by a zero. */
void hex_write(const void *data, size_t n, char *ret_text);

#endif
