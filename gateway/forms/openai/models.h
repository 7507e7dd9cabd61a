/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_OPENAI_MODELS_H
#define GATEWAY_FORMS_OPENAI_MODELS_H

#include "gateway/http/exchange.h"

/* GET /v1/models, and /v1/models/NAME. */
exchange_handler models_handle, models_handle_one;

#endif
