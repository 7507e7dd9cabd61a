/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_ANSWER_H
#define CLIENT_COMMAND_TERMINAL_ANSWER_H

/* One request, followed to its end. */

#include <quern.h>
#include <stdbool.h>

#include "common/error.h"

struct answer {
    enum quern_reason reason;
    uint32_t output_tokens;
    char limit[16];   /* QUERN_LENGTH: which limit: max_tokens, context or pool; "": unknown */
    char error[32];   /* QUERN_ERROR: its name in the protocol; empty if the request could not be sent */
    char text[512];   /* QUERN_ERROR: the text for people */
    bool interrupted; /* by the user, which leads to QUERN_CANCELLED */
    int unwritten;    /* the code that `take` returned to give up; the request was then cancelled */
};

/* Receives each piece of the output, including the one with the end. Returns 0, or a negative code to cancel
 * the request; it then gets nothing more. */
typedef int answer_take(void *arg, const struct quern_output *output);

/* Sends the request and passes on its output until it ends. The first signal (interrupt.h) cancels it and
 * waits for its end. A request rejected by the pool or the library ends with QUERN_ERROR. 0; or -errno with
 * a reason if the pool is lost. */
int answer_follow(struct quern *client, const struct quern_request *request, answer_take *take, void *arg,
                  struct answer *ret_answer, struct error *err);

/* Prints on stderr how the request ended, unless it ended normally. Returns the exit status. */
int answer_report(const struct answer *answer);

#endif
