/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_RANKING_H
#define GATEWAY_FORMS_RANKING_H

#include "gateway/http/exchange.h"
#include "gateway/json/json_in.h"

/* POST /v1/rerank, in the form of Jina, Cohere and vLLM: documents in the order of their relevance. POST
 * /v1/score, in vLLM's form: the scores of pairs, in the order of the pairs. Each pair is a request to the
 * pool (embeddings.h). */
exchange_handler ranking_handle_rerank, ranking_handle_score;

/* The fields of their bodies, read into a struct ranking_in. */
extern const struct json_row ranking_rerank_rows[], ranking_score_rows[];

#endif
