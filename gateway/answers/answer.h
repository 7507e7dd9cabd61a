/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_ANSWER_H
#define GATEWAY_FORMS_ANSWER_H

/* The text of a choice on its way into the answer: streamed as it arrives, or kept for the body. Tool calls
 * and thoughts are separated from it. */

#include "gateway/answers/choice.h"

/* From now on the text of this choice is searched for tool calls and thoughts, as its generation says. 0 or
 * -ENOMEM. */
int answer_expect_parts(struct choice *choice);

/* Makes the answers of all choices of prompt `number` begin with the prompt's text, which is copied. 0 or
 * -ENOMEM. */
int answer_keep_echo(struct generation *generation, const struct prompt_in *prompt, uint32_t number);

/* Takes an output of the pool. Appends the stream's data to `out`, which fails if out of memory. */
void answer_take(struct choice *choice, const struct quern_output *output, struct json_out *out);

/* The arguments of a call as a JSON object; {} if they are not an object, as when the answer was cut. */
void answer_write_object(const struct tool_call *call, struct json_out *out);

void answer_deinit(struct choice *choice);

#endif
