/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_CROWD_H
#define TESTS_INTEGRATION_HOSTILE_CROWD_H

/* Many HTTP connections from one process, with configurable bad behaviour: each sends a request at some rate,
 * reads the answer at some rate or not at all, and leaves or stays. A connection that has ended is opened
 * again with the next request. The target is 127.0.0.1. */

#include <stdbool.h>
#include <stddef.h>

/* The crowd's results, shared with the judging process. Only connections that read see answers. */
struct tally {
    bool over;                /* the crowd must end */
    long connections, failed; /* opened; could not be opened */
    long requests;            /* sent to their last byte */
    long answers[6];          /* by the first digit of the status, except 429 and 503 */
    long busy;                /* 429 and 503 */
    long closed;              /* ended by the gateway without any answer */
    long left;                /* ended by the client */
};

/* The data sent on one connection: a head and then a body, or only `head`, which may also be part of a head
 * or several whole requests. */
struct crowd_request {
    const char *head, *body;
    size_t head_len, body_len;
    bool endless; /* the body is sent repeatedly */
};

#define CROWD_ALL -1 /* a rate without a bound */

struct crowd {
    unsigned n;                           /* connections at once */
    unsigned addresses;                   /* source addresses: 127.0.0.2 and the following; 0: one */
    const struct crowd_request *requests; /* [n_requests], in turn */
    size_t n_requests;
    /* Bytes per second of each connection, or CROWD_ALL; 0: none. A head that is followed by a body is sent
     * at once. */
    long send_rate, read_rate;
    unsigned leave_ms; /* hang up this long after everything was sent; 0: wait for the answer */
    unsigned nap_ms;   /* before a connection is opened again */
};

/* Runs until tally->over. */
void crowd_run(const struct crowd *crowd, int port, struct tally *tally);

#endif
