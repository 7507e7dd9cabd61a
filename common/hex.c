/* SPDX-License-Identifier: MIT */
#include "common/hex.h"

#include <stdint.h>

void hex_write(const void *data, size_t n, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *bytes = data;
    for (size_t i = 0; i < n; i++) {
        *ret_text++ = digits[bytes[i] >> 4];
        *ret_text++ = digits[bytes[i] & 15];
    }
    *ret_text = 0;
}
