/* SPDX-License-Identifier: MIT */
/* Texts that come from outside the protocol (a process's last words, a reason cut to fit) and go into it,
 * where only UTF-8 may stand. */

#include "broker/text.h"

#include <string.h>

#include <utf8proc.h>

char *text_clean(char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len;) {
        utf8proc_int32_t codepoint;
        utf8proc_ssize_t n =
            utf8proc_iterate((const utf8proc_uint8_t *)text + i, (utf8proc_ssize_t)(len - i), &codepoint);
        if (n <= 0 || codepoint < 0x20 || codepoint == 0x7f) {
            text[i] = '?';
            n = 1;
        }
        i += (size_t)n;
    }
    return text;
}
