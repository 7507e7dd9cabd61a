/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_POOL_POOL_ARGUMENTS_H
#define CLIENT_COMMAND_POOL_POOL_ARGUMENTS_H

/* Options of verbs that use a pool, or start a private one. */

#include <argp.h>

#include "client/command/pool/pool.h"

/* A child parser for the verb's own: its input is a zeroed struct pool_options. */
extern const struct argp pool_argp;

#endif
