/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_ANTHROPIC_COUNT_TOKENS_H
#define GATEWAY_FORMS_ANTHROPIC_COUNT_TOKENS_H

#include "gateway/http/exchange.h"

/* POST /v1/messages/count_tokens, as in Anthropic's API: the body of /v1/messages → {"input_tokens": N}. */
exchange_handler count_tokens_handle;

#endif
