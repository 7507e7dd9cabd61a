/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_STATUS_JSON_H
#define CLIENT_COMMAND_STATUS_JSON_H

/* The status of a pool as a JSON object, each field under its name in the protocol. The caller calls
 * json_decref; NULL: out of memory. */

#include <jansson.h>

#include <quern.h>

json_t *status_json(const struct quern_status *status);

/* The same for its requests, if these were requested: an array. */
json_t *status_json_requests(const struct quern_status *status);

#endif
