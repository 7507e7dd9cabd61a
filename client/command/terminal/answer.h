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
    char error[32]; /* QUERN_ERROR: its name in the protocol; empty when the request could not even be sent */
    char text[512]; /* QUERN_ERROR: what a person should read */
    bool interrupted; /* by the user: QUERN_CANCELLED then comes of it */
    int unwritten;    /* what `take` returned when it gave up; the request was cancelled then */
};

/* Gets each piece of the output, the one with the end included. 0; or a negative code to give up: the request
 * is cancelled then, and nothing more comes. */
typedef int answer_take(void *arg, const struct quern_output *output);

/* Sends the request and passes its output on until it has ended. The first signal (interrupt.h) cancels it;
 * its end is waited for. A request that is refused, by the pool or by the library, is an answer that ended
 * with QUERN_ERROR. 0; or -errno with a reason when the pool cannot be talked to any more. */
int answer_follow(struct quern *client, const struct quern_request *request, answer_take *take, void *arg,
                  struct answer *ret_answer, struct error *err);

/* Tells on stderr how it ended, if not well or not by itself. Returns the exit status for it. */
int answer_report(const struct answer *answer);

#endif
