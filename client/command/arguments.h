/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_ARGUMENTS_H
#define CLIENT_COMMAND_ARGUMENTS_H

/* Numbers on the command line. What is not one, or out of range, ends the program through argp_error with the
 * option's name and status 2. */

#include <argp.h>
#include <stdint.h>

uint64_t argument_number(struct argp_state *state, const char *option, const char *text, uint64_t min,
                         uint64_t max);
double argument_real(struct argp_state *state, const char *option, const char *text, double min, double max);

#endif
