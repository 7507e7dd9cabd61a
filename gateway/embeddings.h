/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_EMBEDDINGS_H
#define GATEWAY_EMBEDDINGS_H

#include "gateway/exchange.h"

/* POST /v1/embeddings: refused, since workers tell tokens and nothing of what is inside their models. */
exchange_handler embeddings_handle;

#endif
