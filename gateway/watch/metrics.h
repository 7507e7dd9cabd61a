/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_WATCH_METRICS_H
#define GATEWAY_WATCH_METRICS_H

#include "gateway/http/exchange.h"

/* GET /metrics: the gateway's counters and the pool's last status, in the text format of Prometheus. */
exchange_handler metrics_handle;

#endif
