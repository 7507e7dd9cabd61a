/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_TRACEPARENT_H
#define GATEWAY_HTTP_TRACEPARENT_H

/* The header `traceparent` of W3C Trace Context, which identifies a request in the sender's traces: 00-<32
 * digits>-<16 digits>-<2 digits>, in lower-case hexadecimal. */

#include <stdbool.h>

#define TRACEPARENT_BYTES 56 /* zero-terminated */

/* Copies a well-formed header of version 00 whose ids are not zero. False: `said`, which may be NULL, is not
 * one, and nothing is copied. */
bool traceparent_take(const char *said, char ret_traceparent[TRACEPARENT_BYTES]);

#endif
