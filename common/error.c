/* SPDX-License-Identifier: MIT */
/* One line of error text beside a return code. See error.h for the contract. */

#include "common/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

int error_set(struct error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    utf8_clean(err->text); /* it may quote a name from a file or a message */
    return code;
}

int error_out_of_range(struct error *err, int code, const char *what, int64_t value, int64_t least,
                       int64_t most)
{
    return error_set(err, code, "%s%s%" PRId64 " is out of range %" PRId64 "..%" PRId64, what,
                     what[0] ? " " : "", value, least, most);
}

int error_out_of_range_unsigned(struct error *err, int code, const char *what, uint64_t value, uint64_t least,
                                uint64_t most)
{
    return error_set(err, code, "%s%s%" PRIu64 " is out of range %" PRIu64 "..%" PRIu64, what,
                     what[0] ? " " : "", value, least, most);
}

int error_out_of_range_real(struct error *err, int code, const char *what, double value, double least,
                            double most)
{
    return error_set(err, code, "%s%s%g is out of range %g..%g", what, what[0] ? " " : "", value, least,
                     most);
}

int error_prefix(struct error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    char old[sizeof err->text];
    if (!err->text[0] && code < 0) /* nobody had a better word than the code's own */
        snprintf(err->text, sizeof err->text, "%s", strerror(-code));
    memcpy(old, err->text, sizeof old);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n + 2 < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %.*s", (int)(sizeof old - (size_t)n - 3),
                 old);
    utf8_clean(err->text); /* it may quote a name from a file or a message */
    return code;
}
