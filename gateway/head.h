/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HEAD_H
#define GATEWAY_HEAD_H

/* A request's head, as libmicrohttpd has it, held against framing.h and, where the gateway has no keys,
 * origin.h. */

#include <microhttpd.h>

#include "gateway/core/connection.h"
#include "gateway/core/gateway.h"
#include "gateway/http/origin.h"

/* For MHD_OPTION_STRICT_FOR_CLIENT: 1 where libmicrohttpd is strict then. */
int head_strictness(void);

/* For MHD_OPTION_URI_LOG_CALLBACK: looks at the target while it is as it came. Returns NULL. */
void *head_target(void *cls, const char *target, struct MHD_Connection *connection);

/* 0, or REFUSED with the refusal in the exchange. Sets exchange->last where no other request may be read from
 * the connection. */
int head_judge(struct exchange *exchange, const struct connection *connection,
               const struct origin_rules *rules);

#endif
