/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_FLEET_STATUS_H
#define CLIENT_COMMAND_FLEET_STATUS_H

/* The status of the pools of a fleet, each asked directly: those whose files are in a folder
 * (common/files/member_file.h). */

#include <stdbool.h>

#include "common/error.h"

/* Prints a line for each pool to stdout, or one JSON object. A pool that does not answer within two seconds
 * is reported as absent, which is not an error. `client_key`: as for quern_connect; NULL: none. 0, or -errno
 * with a reason: the folder cannot be read, or has no member. */
int fleet_status(const char *folder, const char *client_key, bool json, struct error *err);

#endif
