/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_ANSWER_H
#define GATEWAY_FORMS_ANSWER_H

/* The text of a choice on its way into the answer: streamed as it comes, or kept for the body. Tool calls and
 * thoughts are taken out of it. */

#include "gateway/answers/choice.h"

/* Calls of tools and thoughts are looked for in the text of this choice, as its generation says. 0 or
 * -ENOMEM.
 */
int answer_expect_parts(struct choice *choice);

/* The answers of the choices of a prompt, the number-th, begin with its text, which is kept. 0 or -ENOMEM. */
int answer_keep_echo(struct generation *generation, const struct prompt_in *prompt, uint32_t number);

/* Takes what an output brings. `out` gets the stream's data, and fails without memory. */
void answer_take(struct choice *choice, const struct quern_output *output, struct json_out *out);

/* The arguments of a call as a JSON object; {} if they are not one, as when the answer was cut. */
void answer_write_object(const struct tool_call *call, struct json_out *out);

void answer_deinit(struct choice *choice);

#endif
