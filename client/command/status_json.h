/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_STATUS_JSON_H
#define CLIENT_COMMAND_STATUS_JSON_H

/* The status of a pool as one JSON object, each field under its name in the protocol. The caller's to
 * decref; NULL when there is no memory. */

#include <jansson.h>

#include <quern.h>

json_t *status_json(const struct quern_status *status);

/* The same of its requests, where it was asked for those: an array. */
json_t *status_json_requests(const struct quern_status *status);

#endif
