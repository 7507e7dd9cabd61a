/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_HTTP_H
#define TESTS_INTEGRATION_SOAK_HTTP_H

/* Clients of the pool's gateway, for the soak: each asks one thing after the other, as a stream or not, on a
 * new connection or on one that is kept, and compares every text with an undisturbed one.
 *
 * A connection may be refused never, whatever was killed. An answer may be cut when a gateway was killed, and
 * by nothing else. While the gateway has no broker it answers 503, which is counted. */

#include <stdbool.h>
#include <stdint.h>

enum { SOAK_HTTP_KINDS = 4, SOAK_HTTP_TEXT = 8192 };

struct soak_http { /* in memory that the processes share; each number is added to with an atomic */
    uint16_t port;
    int tokens;  /* of an answer */
    bool ending; /* nothing more is asked */
    /* Of gateways, by the test's hand: one more before a kill and one more after it, so that it is odd while
     * one is under way. */
    unsigned deaths;
    long answers, ends; /* whole ones; and those that told that the connection ends */
    long turned_away, cut, moved_out;
    char expected[SOAK_HTTP_KINDS][SOAK_HTTP_TEXT];
};

/* Asks everything once, undisturbed, and keeps the answers. */
void soak_http_learn(struct soak_http *http);

/* Is a client until `ending`, or until something was broken. */
void soak_http_be_client(struct soak_http *http, unsigned seed);

#endif
