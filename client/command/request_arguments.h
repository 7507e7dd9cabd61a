/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_REQUEST_ARGUMENTS_H
#define CLIENT_COMMAND_REQUEST_ARGUMENTS_H

/* Options of verbs that send requests: pool, limits, sampling.
 *
 * Numeric options are made from libquern's list of parameters: top_k is --top-k, with the protocol's bounds,
 * default and help. */

#include <argp.h>

#include "client/command/pool/pool_arguments.h"
#include "common/bytes.h"
#include "common/sampling.h"
#include "proto/message.h"

#include <quern.h>

#define REQUEST_MAX_OPTIONS 72

struct request_arguments {
    struct pool_options pool;
    struct quern_request request; /* its lists are the members below */
    const char *stops[PROTO_MAX_STOPS];
    int32_t stop_ids[PROTO_MAX_STOP_IDS];
    struct quern_logit_bias biases[SAMPLING_MAX_BIASES];
    struct quern_text_bias text_biases[SAMPLING_MAX_BIASES];
    const char *bad_words[PROTO_MAX_BAD_WORDS];
    const char *breakers[PROTO_MAX_DRY_BREAKERS];
    struct buffer grammar; /* the text of a file */

    /* A child parser for the verb's own: its input is this struct. */
    struct argp argp;
    struct argp_option options[REQUEST_MAX_OPTIONS];
    struct {
        const char *parameter; /* the parameter that the option sets; NULL: the option is written by hand */
        char name[32], help[160];
    } texts[REQUEST_MAX_OPTIONS]; /* of the options of the same index */
};

/* Sets defaults and the parser. Do not move the struct: it points into itself. */
void request_arguments_init(struct request_arguments *arguments);

void request_arguments_deinit(struct request_arguments *arguments);

/* Replaces the help of a parameter, for a verb with another default. At most 159 bytes. */
void request_arguments_describe(struct request_arguments *arguments, const char *parameter, const char *help);

/* Whether the model for requests without a model name has a chat template. */
bool request_has_chat_template(struct quern *client);

#endif
