/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_ANTHROPIC_COUNT_TOKENS_H
#define GATEWAY_FORMS_ANTHROPIC_COUNT_TOKENS_H

#include "gateway/http/exchange.h"

/* POST /v1/messages/count_tokens: what /v1/messages takes → {"input_tokens": N}, as Anthropic has it. */
exchange_handler count_tokens_handle;

#endif
