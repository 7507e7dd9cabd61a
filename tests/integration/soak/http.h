/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_HTTP_H
#define TESTS_INTEGRATION_SOAK_HTTP_H

/* Clients of the pool's gateway, for the soak: each sends one request after another, streaming or not, on a
 * new or a kept connection, and compares every text with an undisturbed one.
 *
 * A connection may never be refused, whatever was killed. An answer may be cut only because a gateway was
 * killed. While the gateway has no broker it answers 503, which is counted. */

#include <stdbool.h>
#include <stdint.h>

enum { SOAK_HTTP_KINDS = 4, SOAK_HTTP_TEXT = 8192 };

struct soak_http { /* in memory that the processes share; numbers are incremented atomically */
    uint16_t port;
    int tokens;  /* of an answer */
    bool ending; /* nothing more is sent */
    /* Counts kills of gateways by the test: incremented before and after each, so it is odd during a kill. */
    unsigned deaths;
    long answers, ends; /* complete answers; answers that announced the connection's end */
    long turned_away, cut, moved_out;
    char expected[SOAK_HTTP_KINDS][SOAK_HTTP_TEXT];
};

/* Sends every request once, undisturbed, and keeps the answers. */
void soak_http_learn(struct soak_http *http);

/* Runs a client until `ending`, or until a promise is broken. */
void soak_http_be_client(struct soak_http *http, unsigned seed);

#endif
