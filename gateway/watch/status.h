/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_WATCH_STATUS_H
#define GATEWAY_WATCH_STATUS_H

#include "gateway/http/exchange.h"

/* GET /status */
void status_handle(struct exchange *exchange);

#endif
