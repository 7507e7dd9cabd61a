/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_THINKING_H
#define GATEWAY_THINKING_H

/* Whether a model is to think before it answers. It does as its chat template has it, and requests cannot
 * change that: those that ask for something else are refused by name, when it is known which model they are
 * for. */

#include "gateway/parameters.h"

json_row_take thinking_ollama;    /* think: a boolean */
json_row_take thinking_effort;    /* reasoning_effort: "none" … "high" */
json_row_take thinking_anthropic; /* thinking: {"type": "disabled"} */

/* 0, or REFUSED where the request asks for other than what the model does. `thinks`: whether it thinks. */
int thinking_check(const struct parameters *parameters, bool thinks, struct refusal *refusal);

#endif
