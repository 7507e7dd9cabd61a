/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_REQUEST_ARGUMENTS_H
#define CLIENT_COMMAND_REQUEST_ARGUMENTS_H

/* The options that verbs share which send requests: which pool, how much, how to sample. */

#include <argp.h>

#include "client/command/pool.h"
#include "client/lib/quern.h"

#define REQUEST_MAX_STOPS 16

struct request_arguments {
    struct pool_options pool;
    struct quern_request request; /* quern_request_init before parsing; `stop` is set by it */
    const char *stops[REQUEST_MAX_STOPS];
};

/* A child parser: its input is a struct request_arguments. */
extern const struct argp request_argp;

/* Whether the model that a request without a name goes to has a chat template. */
bool request_has_chat_template(struct quern *client);

#endif
