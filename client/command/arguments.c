/* SPDX-License-Identifier: MIT */
/* Readings of the command line that verbs share: strict numbers (the whole text must be one), and MODEL. */

#include "client/command/arguments.h"

#include <stdbool.h>

#include "common/number.h"

uint64_t argument_number(struct argp_state *state, const char *option, const char *text, uint64_t min,
                         uint64_t max)
{
    struct error err = {0};
    uint64_t n = 0;
    if (number_read(text, min, max, &n, &err) < 0)
        argp_error(state, "%s: %s", option, err.text);
    return n;
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
