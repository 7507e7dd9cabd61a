/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_POOL_PLACE_H
#define CLIENT_COMMAND_POOL_PLACE_H

/* The options that say where a pool is, common to all verbs that talk to one: --connect EP, or --rundir DIR
 * for a run directory. An error ends the program with a reason and status 2. */

#include <argp.h>
#include <stdbool.h>

/* Takes the value of one of these options. *place: the value given before, or NULL. */
void place_take(const struct argp_state *state, bool is_rundir, const char *value, const char **place);

/* The same for a verb that changes a pool, which only its run directory allows. */
void place_take_folder(const struct argp_state *state, bool is_rundir, const char *value, const char **place);

#endif
