/* SPDX-License-Identifier: MIT */
/* See count_tokens.h. It counts the prompt that a worker makes of the conversation, as it would to answer it.
 */

#include "gateway/forms/anthropic/count_tokens.h"

#include "gateway/forms/anthropic/messages.h"
#include "gateway/forms/questions/question.h"

static void write_count(const struct quern_answer *answer, struct json_out *out)
{
    json_out_text(out, "{\"input_tokens\":");
    json_out_number(out, (int64_t)answer->n_ids);
    json_out_text(out, "}");
}

void count_tokens_handle(struct exchange *exchange)
{
    static const struct question_form form = {
        .rows = messages_rows, .finish = question_finish_conversation, .write = write_count};
    question_handle(exchange, &form, true);
}
