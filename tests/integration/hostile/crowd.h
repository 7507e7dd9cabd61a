/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_CROWD_H
#define TESTS_INTEGRATION_HOSTILE_CROWD_H

/* Many HTTP connections from one process, which behave as badly as they are told to: each sends a request, at
 * some rate, reads the answer, at some rate or not at all, and leaves or stays. A connection that has ended
 * is opened again with the next request. All goes to 127.0.0.1. */

#include <stdbool.h>
#include <stddef.h>

/* What a crowd saw, shared with the process that judges. Only readers see answers. */
struct tally {
    bool over;                /* the crowd shall end */
    long connections, failed; /* opened; could not be opened */
    long requests;            /* sent to their last byte */
    long answers[6];          /* by the first digit of the status, 429 and 503 excepted */
    long busy;                /* 429 and 503 */
    long closed;              /* ended by the gateway without any answer */
    long left;                /* ended by the client */
};

/* What is sent on one connection: the head and then the body, or only the head, which may also be a part of
 * one or several whole requests. */
struct crowd_request {
    const char *head, *body;
    size_t head_len, body_len;
    bool endless; /* the body is sent over and over */
};

#define CROWD_ALL -1 /* a rate without a bound */

struct crowd {
    unsigned n;                           /* connections at once */
    unsigned addresses;                   /* that they come from: 127.0.0.2 and the following; 0: one */
    const struct crowd_request *requests; /* [n_requests], in turn */
    size_t n_requests;
    /* Bytes a second of each connection, or CROWD_ALL; 0: none. A head goes out at once where a body follows.
     */
    long send_rate, read_rate;
    unsigned leave_ms; /* hang up so long after all was sent; 0: wait for the answer */
    unsigned nap_ms;   /* before a connection is opened again */
};

/* Goes on until tally->over. */
void crowd_run(const struct crowd *crowd, int port, struct tally *tally);

#endif
