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
    char limit[16];   /* QUERN_LENGTH: which one: max_tokens, context or pool; "": the pool did not say */
    char error[32];   /* QUERN_ERROR: its name in the protocol; empty if the request could not be sent */
    char text[512];   /* QUERN_ERROR: what a person should read */
    bool interrupted; /* by the user: QUERN_CANCELLED then comes of it */
    int unwritten;    /* what `take` returned when it gave up; the request was cancelled then */
};

/* Receives each piece of the output, including the one with the end. 0; or a negative code to cancel the
 * request, after which nothing more comes. */
typedef int answer_take(void *arg, const struct quern_output *output);

/* Sends the request and passes on its output until it ends. The first signal (interrupt.h) cancels it and
 * waits for its end. A request rejected by the pool or the library ends with QUERN_ERROR. 0; or -errno with
 * a reason if the pool is lost. */
int answer_follow(struct quern *client, const struct quern_request *request, answer_take *take, void *arg,
                  struct answer *ret_answer, struct error *err);

/* Prints on stderr how it ended, unless normally. Returns the exit status for it. */
int answer_report(const struct answer *answer);

#endif
