/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_WATCH_METRICS_H
#define GATEWAY_WATCH_METRICS_H

#include "gateway/http/exchange.h"

/* GET /metrics: what the gateway has counted and what the pool said last, in the text format of Prometheus.
 */
exchange_handler metrics_handle;

#endif
