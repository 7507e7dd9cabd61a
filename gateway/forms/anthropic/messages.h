/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_ANTHROPIC_MESSAGES_H
#define GATEWAY_FORMS_ANTHROPIC_MESSAGES_H

#include "gateway/http/exchange.h"
#include "gateway/json/json_in.h"

/* POST /v1/messages, as in Anthropic's API. */
exchange_handler messages_handle;

/* The fields of its body, read into a struct parameters. */
extern const struct json_row messages_rows[];

#endif
