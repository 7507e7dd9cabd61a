/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_LLAMA_SERVER_INFILL_H
#define GATEWAY_FORMS_LLAMA_SERVER_INFILL_H

/* /infill: fills in text between two others, as in llama-server's API, for its editor plugins. */

#include "gateway/http/exchange.h"
#include "gateway/json/json_in.h"

extern const struct json_row infill_rows[];

void infill_handle(struct exchange *exchange);

#endif
