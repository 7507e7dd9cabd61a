/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_OLLAMA_SHOW_H
#define GATEWAY_FORMS_OLLAMA_SHOW_H

/* Ollama's questions about models: /api/show about one, /api/ps about the loaded ones. */

#include "gateway/http/exchange.h"
#include "gateway/json/json_in.h"

void ollama_handle_show(struct exchange *exchange);
void ollama_handle_ps(struct exchange *exchange);

#endif
