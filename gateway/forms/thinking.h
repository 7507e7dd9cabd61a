/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_THINKING_H
#define GATEWAY_FORMS_THINKING_H

/* Thinking before the answer: reads what a request asks for, and sets the model's switches for it, which are
 * variables of its chat template (text/dialect/dialect.h). */

#include "gateway/core/parameters.h"
#include "text/dialect/dialect.h"

json_row_take thinking_ollama; /* think: a boolean, or "low", "medium", "high" */
json_row_take thinking_effort; /* reasoning_effort: "none" … "xhigh" */
json_row_take
    thinking_anthropic; /* thinking: {"type": "enabled", "budget_tokens": …}, "disabled", "adaptive" */
json_row_take thinking_budget; /* tokens; 0: no thinking; -1: no bound. Under all names that clients use: */
#define THINKING_BUDGET_ROWS                                                                                 \
    {"thinking_budget", thinking_budget, NULL, 0}, {"reasoning_budget", thinking_budget, NULL, 0},           \
        {"thinking_budget_tokens", thinking_budget, NULL, 0},                                                \
        {"reasoning_budget_tokens", thinking_budget, NULL, 0},                                               \
    {                                                                                                        \
        "thinking_token_budget", thinking_budget, NULL, 0                                                    \
    }
json_row_take thinking_format; /* reasoning_format: "none": thoughts stay in the text; "auto", "deepseek" */
json_row_take thinking_kwargs; /* chat_template_kwargs: {…} */

/* Sets the template's variables, and where the prompt leaves the model, once that is known. 0, or REFUSED if
 * the model's template has no switch for what the request asks. */
int thinking_set(struct parameters *parameters, const struct model_dialect *dialect, struct refusal *refusal);

#endif
