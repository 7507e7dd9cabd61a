/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_WATCH_HEALTH_H
#define GATEWAY_WATCH_HEALTH_H

#include "gateway/http/exchange.h"

/* GET /health and /health/ready: 200 if a request would find a worker, else 503 with the reason. GET
 * /health/live: 200 as long as the gateway answers. */
exchange_handler health_handle, health_handle_live;

#endif
