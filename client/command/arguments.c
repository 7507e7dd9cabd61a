/* SPDX-License-Identifier: MIT */
/* Readings of the command line that verbs share: strict numbers (the whole text must be one), and MODEL. */

#include "client/command/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
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

int argument_model(int key, char *arg, struct argp_state *state, const char **ret_model)
{
    bool wrong = key == ARGP_KEY_ARG ? state->arg_num > 0 : key == ARGP_KEY_END && state->arg_num < 1;
    if (wrong)
        argp_usage(state);
    if (key == ARGP_KEY_ARG)
        *ret_model = arg;
    return key == ARGP_KEY_ARG || key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}
