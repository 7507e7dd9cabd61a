/* SPDX-License-Identifier: MIT */
/* Strict readings of numbers: the whole text must be one. */

#include "client/command/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

uint64_t argument_number(struct argp_state *state, const char *option, const char *text, uint64_t min,
                         uint64_t max)
{
    char *end;
    errno = 0;
    /* strtoull would take a sign, and wrap. */
    uint64_t n = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    if (!isdigit((unsigned char)text[0]) || *end || errno || n < min || n > max)
        argp_error(state, "%s is a number from %" PRIu64 " to %" PRIu64 ", not \"%s\"", option, min, max,
                   text);
    return n;
}

double argument_real(struct argp_state *state, const char *option, const char *text, double min, double max)
{
    char *end;
    double x = strtod(text, &end);
    /* Written so that NaN fails. */
    if (end == text || *end || !(x >= min && x <= max))
        argp_error(state, "%s is a number from %g to %g, not \"%s\"", option, min, max, text);
    return x;
}
