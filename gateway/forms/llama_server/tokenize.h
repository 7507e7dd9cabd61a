/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_LLAMA_SERVER_TOKENIZE_H
#define GATEWAY_FORMS_LLAMA_SERVER_TOKENIZE_H

#include "gateway/http/exchange.h"

/* POST /tokenize: {"content" or "prompt": TEXT, "model", "special"} → {"tokens": [IDS], "count": N}. */
exchange_handler tokenize_handle;

/* POST /detokenize: {"tokens": [IDS], "model", "special"} → {"content": TEXT}. */
exchange_handler tokenize_handle_back;

/* Drops unanswered questions when the pool is gone. */
void tokenize_forget_all(struct gateway *gateway);

#endif
