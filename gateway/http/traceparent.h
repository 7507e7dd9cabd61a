/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_TRACEPARENT_H
#define GATEWAY_HTTP_TRACEPARENT_H

/* The header `traceparent` of W3C Trace Context, by which a request is found in the sender's traces: 00-<32
 * digits>-<16 digits>-<2 digits>, hexadecimal in lower case. */

#include <stdbool.h>

#define TRACEPARENT_BYTES 56 /* zero-terminated */

/* Copies one of version 00 that is well-formed and whose ids are not zero. False: it is none, and nothing is
 * copied. `said` may be NULL. */
bool traceparent_take(const char *said, char ret_traceparent[TRACEPARENT_BYTES]);

#endif
