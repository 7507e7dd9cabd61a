/* SPDX-License-Identifier: MIT */
/* See describe.h. */

#include "cuda/device/describe.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void device_driver_version(const char *text, char *ret_version, size_t size)
{
    const char *end = text + strcspn(text, "\n");
    ret_version[0] = 0;
    while (text < end) {
        const size_t blanks = strspn(text, " \t"), word = strcspn(text + blanks, " \t\n");
        const char *begin = text + blanks;
        if (word > 0 && isdigit((unsigned char)begin[0]) && strspn(begin, "0123456789.") == word &&
            memchr(begin, '.', word)) {
            snprintf(ret_version, size, "%.*s", (int)word, begin);
            return;
        }
        text = begin + word;
    }
}
