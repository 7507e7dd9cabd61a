/* SPDX-License-Identifier: MIT */
/* Strict numbers: what may stand in them is checked before the C library reads them, because it skips spaces,
 * wraps signs round, and knows hexadecimal and infinities. */

#include "common/number.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* As error_out_of_range() says it, but with the text as it was written: the number may not fit any type. */
#define OUT_OF_RANGE " is out of range "

/* Digits and nothing else, at least one. */
static bool is_whole(const char *text)
{
    return text[0] && text[strspn(text, "0123456789")] == 0;
}

int number_read(const char *text, uint64_t least, uint64_t most, uint64_t *ret_number, struct error *err)
{
    errno = 0;
    uint64_t number = is_whole(text) ? strtoull(text, NULL, 10) : 0;
    if (!is_whole(text + (text[0] == '-')))
        return error_set(err, -EINVAL, "\"%.80s\" is not a number from %" PRIu64 " to %" PRIu64, text, least,
                         most);
    if (text[0] == '-' || errno || number < least || number > most)
        return error_set(err, -EINVAL, "%.80s" OUT_OF_RANGE "%" PRIu64 "..%" PRIu64, text, least, most);
    *ret_number = number;
    return 0;
}

int number_read_u32(const char *text, uint32_t least, uint32_t most, uint32_t *ret_number, struct error *err)
{
    uint64_t number;
    int r = number_read(text, least, most, &number, err);
    if (r == 0)
        *ret_number = (uint32_t)number;
    return r;
}

int number_read_signed(const char *text, int64_t least, int64_t most, int64_t *ret_number, struct error *err)
{
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    errno = 0;
    int64_t number = is_whole(digits) ? strtoll(text, NULL, 10) : 0;
    if (!is_whole(digits))
        return error_set(err, -EINVAL, "\"%.80s\" is not a number from %" PRId64 " to %" PRId64, text, least,
                         most);
    if (errno || number < least || number > most)
        return error_set(err, -EINVAL, "%.80s" OUT_OF_RANGE "%" PRId64 "..%" PRId64, text, least, most);
    *ret_number = number;
    return 0;
}

int number_read_real(const char *text, double least, double most, double *ret_number, struct error *err)
{
    /* A program that has set its locale may expect a comma from strtod. */
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", NULL);
    char *end = NULL;
    bool plausible = text[0] && text[strspn(text, "0123456789+-.eE")] == 0;
    double number = plausible && c ? strtod_l(text, &end, c) : 0;
    if (c)
        freelocale(c);
    if (!end || end == text || *end || isnan(number))
        return error_set(err, -EINVAL, "\"%.80s\" is not a number from %g to %g", text, least, most);
    if (number < least || number > most)
        return error_set(err, -EINVAL, "%.80s" OUT_OF_RANGE "%g..%g", text, least, most);
    *ret_number = number;
    return 0;
}
