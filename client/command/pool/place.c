/* SPDX-License-Identifier: MIT */
/* See place.h. */

#include "client/command/pool/place.h"

#include <string.h>

static bool is_endpoint(const char *value)
{
    return strstr(value, "://") != NULL;
}

void place_take(const struct argp_state *state, bool is_rundir, const char *value, const char **place)
{
    if (!*value)
        argp_error(state, "%s: the value is empty", is_rundir ? "--rundir" : "--connect");
    else if (is_rundir && is_endpoint(value))
        argp_error(state, "--rundir: \"%s\" is not a directory; --connect takes endpoints", value);
    else if (*place && strcmp(*place, value) != 0)
        argp_error(state, "two different pools: \"%s\" and \"%s\"", *place, value);
    *place = value;
}

void place_take_folder(const struct argp_state *state, bool is_rundir, const char *value, const char **place)
{
    if (!is_rundir && is_endpoint(value))
        argp_error(
            state,
            "--connect: \"%s\" is not a run directory; a pool can be changed only through its run directory",
            value);
    place_take(state, is_rundir, value, place);
}
