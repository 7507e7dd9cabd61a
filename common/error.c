/* SPDX-License-Identifier: MIT */
/* One line of error text beside a return code. See error.h for the contract. */

#include "common/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Texts quote names from files and messages: whatever those hold, the reason stays one line and leaves the
 * terminal alone. */
static void replace_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

int error_set(struct error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    replace_controls(err->text);
    return code;
}

int error_prefix(struct error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n + 2 < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %.*s", (int)(sizeof old - (size_t)n - 3),
                 old);
    replace_controls(err->text);
    return code;
}
