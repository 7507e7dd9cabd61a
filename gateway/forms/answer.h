/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_ANSWER_H
#define GATEWAY_FORMS_ANSWER_H

/* The text of a choice on its way into the answer: told in the stream as it comes, or kept for the body; with
 * calls of tools and thoughts taken out where there are some. */

#include "gateway/forms/choice.h"

/* Calls of tools and thoughts are looked for in the text of this choice, as its generation says. 0 or
 * -ENOMEM.
 */
int answer_expect_parts(struct choice *choice);

/* Takes what an output brings. `out` has what the stream is told; where memory runs out it has failed. */
void answer_take(struct choice *choice, const struct quern_output *output, struct json_out *out);

/* The arguments of a call as a JSON object: {} where they are none, as when the answer was cut. */
void answer_write_object(const struct tool_call *call, struct json_out *out);

void answer_deinit(struct choice *choice);

#endif
