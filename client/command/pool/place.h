/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_POOL_PLACE_H
#define CLIENT_COMMAND_POOL_PLACE_H

/* Where a pool is, as every verb that talks to one takes it: --connect EP, or --rundir DIR, which is the same
 * for a run directory. Whatever is wrong ends the program with a reason and status 2. */

#include <argp.h>
#include <stdbool.h>

/* Takes the value of one of them. *place: what was said before, or NULL. */
void place_take(const struct argp_state *state, bool is_rundir, const char *value, const char **place);

/* The same for a verb that changes a pool, which only its run directory allows. */
void place_take_folder(const struct argp_state *state, bool is_rundir, const char *value, const char **place);

#endif
