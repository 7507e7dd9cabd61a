/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_OLLAMA_OLLAMA_H
#define GATEWAY_FORMS_OLLAMA_OLLAMA_H

#include "gateway/http/exchange.h"
#include "gateway/json/json_in.h"

/* POST /api/chat, /api/generate, /api/embed and /api/embeddings, GET /api/tags and /api/version, as in
 * Ollama's API. */
exchange_handler ollama_handle_chat, ollama_handle_generate, ollama_handle_embed, ollama_handle_embeddings,
    ollama_handle_tags, ollama_handle_version;

/* The name of a model, without the ":latest" that Ollama's clients append. */
json_row_take ollama_take_model;

/* Fields of the bodies, read into a struct parameters, or for embed into a struct embeddings_in. */
extern const struct json_row ollama_chat_rows[], ollama_generate_rows[], ollama_embed_rows[];

#endif
