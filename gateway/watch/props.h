/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_WATCH_PROPS_H
#define GATEWAY_WATCH_PROPS_H

/* GET /props: the pool's generation defaults, in llama-server's form. */

#include "gateway/http/exchange.h"

void props_handle(struct exchange *exchange);

#endif
