/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_OPENAI_CHAT_H
#define GATEWAY_FORMS_OPENAI_CHAT_H

#include "gateway/http/exchange.h"
#include "gateway/json/json_in.h"

/* POST /v1/chat/completions. */
exchange_handler chat_handle;

/* The fields of its body, read into a struct parameters. */
extern const struct json_row chat_rows[];

#endif
