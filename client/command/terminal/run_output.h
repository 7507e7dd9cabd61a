/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_RUN_OUTPUT_H
#define CLIENT_COMMAND_TERMINAL_RUN_OUTPUT_H

/* The three forms of `quern run`'s output on stdout. */

#include <jansson.h>
#include <quern.h>
#include <stdbool.h>

#include "common/bytes.h"

enum run_shape {
    RUN_TEXT, /* as it is generated; a newline is added if it does not end with one */
    RUN_IDS,  /* as they are generated, on one line */
    RUN_JSON  /* one object at the end, with everything */
};

struct run_output {
    enum run_shape shape;
    bool wrote_id;
    char last;          /* byte of text written */
    struct buffer text; /* collected for RUN_JSON */
    json_t *ids, *logprobs;
};

void run_output_init(struct run_output *output, enum run_shape shape);
void run_output_deinit(struct run_output *output);

/* An answer_take; `arg` is a struct run_output. After an interrupt text and ids stop at once; JSON still
 * contains everything that was received. */
int run_output_take(void *arg, const struct quern_output *piece);

#endif
