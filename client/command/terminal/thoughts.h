/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_THOUGHTS_H
#define CLIENT_COMMAND_TERMINAL_THOUGHTS_H

/* Writes an answer with its thoughts: on a terminal they are dim, and they are kept apart from the answer. If
 * stdout is not a terminal, thoughts are written as they are, followed by an empty line. */

#include <quern.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/dialect/answer_parser.h"

/* Writes text of the model. 0 or -errno. */
typedef int thoughts_write(void *arg, const char *text, size_t len);

struct thoughts {
    struct model_dialect dialect;
    bool known;  /* the model's dialect marks thoughts: requests ask for these marks */
    bool dims;   /* stdout can show dim text */
    bool inside; /* the last text written was a thought */
    int failed;  /* the error of a failed write; 0: none */
    thoughts_write *write;
    void *arg;
    struct buffer *text, *thought; /* of the answer in progress */
    struct answer_parser parser;
};

/* Asks the pool how its model thinks; if the pool does not say, the whole answer counts as text. */
void thoughts_init(struct thoughts *thoughts, struct quern *client);
void thoughts_deinit(struct thoughts *thoughts);

/* Begins the answer to a request; text and thought are also appended to these buffers as they are written. 0
 * or -ENOMEM. */
int thoughts_begin(struct thoughts *thoughts, const struct quern_request *request, thoughts_write *write,
                   void *arg, struct buffer *text, struct buffer *thought);
/* Writes a piece of the answer. 0, or the error of a failed write. */
int thoughts_take(struct thoughts *thoughts, const struct quern_output *piece);
/* Ends the answer, however the request ended. */
int thoughts_end(struct thoughts *thoughts);

#endif
