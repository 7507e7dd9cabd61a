/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HEAD_H
#define GATEWAY_HEAD_H

/* Checks a request's head, as parsed by libmicrohttpd, with framing.h and, if the gateway has no keys, with
 * origin.h. */

#include <microhttpd.h>

#include "gateway/core/connection.h"
#include "gateway/core/gateway.h"
#include "gateway/http/origin.h"

/* The value for MHD_OPTION_STRICT_FOR_CLIENT: 1 if it makes this version of libmicrohttpd strict. */
int head_strictness(void);

/* For MHD_OPTION_URI_LOG_CALLBACK: checks the target before it is decoded. Returns NULL. */
void *head_target(void *cls, const char *target, struct MHD_Connection *connection);

/* 0, or REFUSED. Sets exchange->last if no other request may be read from the connection. */
int head_judge(struct exchange *exchange, const struct connection *connection,
               const struct origin_rules *rules, struct refusal *refusal);

#endif
