/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_THINKING_H
#define GATEWAY_FORMS_THINKING_H

/* Requests about thinking before the answer. Whether a model thinks depends on its chat template, and a
 * request cannot change it: one that asks for anything else is rejected once its model is known. */

#include "gateway/core/parameters.h"

json_row_take thinking_ollama;    /* think: a boolean */
json_row_take thinking_effort;    /* reasoning_effort: "none" … "high" */
json_row_take thinking_anthropic; /* thinking: {"type": "disabled"} */

/* 0, or REFUSED if the request asks for something that the model does not do. `thinks`: whether it thinks. */
int thinking_check(const struct parameters *parameters, bool thinks, struct refusal *refusal);

#endif
