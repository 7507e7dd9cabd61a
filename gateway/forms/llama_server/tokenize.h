/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_LLAMA_SERVER_TOKENIZE_H
#define GATEWAY_FORMS_LLAMA_SERVER_TOKENIZE_H

#include "gateway/http/exchange.h"

/* POST /tokenize: {"content" or "prompt": TEXT, "model", "special"}, or {"messages", "tools", …}
 * → {"tokens": [IDS], "count": N}. */
exchange_handler tokenize_handle;

/* POST /detokenize: {"tokens": [IDS], "model", "special"} → {"content": TEXT}. */
exchange_handler tokenize_handle_back;

/* POST /apply-template: the body of /v1/chat/completions → {"prompt": TEXT}, which the model would
 * continue. */
exchange_handler tokenize_handle_template;

#endif
