/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_THOUGHTS_H
#define CLIENT_COMMAND_TERMINAL_THOUGHTS_H

/* An answer on the terminal with its thoughts: dim, and apart from what is kept as the answer. Where stdout
 * is no terminal, thoughts are written as they are, and an empty line follows them. */

#include <quern.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/dialect/answer_parser.h"

/* Writes text of the model: 0 or -errno. */
typedef int thoughts_write(void *arg, const char *text, size_t len);

struct thoughts {
    struct model_dialect dialect;
    bool known;  /* the model's dialect tells thoughts apart: requests ask for its marks */
    bool dims;   /* stdout shows it */
    bool inside; /* what was written last is a thought */
    int failed;  /* what writing has failed with; 0 */
    thoughts_write *write;
    void *arg;
    struct buffer *text, *thought; /* of the answer under way */
    struct answer_parser parser;
};

/* Asks the pool how its model thinks; a pool that does not say is one whose answers are all text. */
void thoughts_init(struct thoughts *thoughts, struct quern *client);
void thoughts_deinit(struct thoughts *thoughts);

/* Begins the answer to a request, whose parts are appended to these as they were written. 0 or -ENOMEM. */
int thoughts_begin(struct thoughts *thoughts, const struct quern_request *request, thoughts_write *write,
                   void *arg, struct buffer *text, struct buffer *thought);
/* Writes a piece of it. 0, or what writing has failed with. */
int thoughts_take(struct thoughts *thoughts, const struct quern_output *piece);
/* Ends it, however it ended. */
int thoughts_end(struct thoughts *thoughts);

#endif
