/* SPDX-License-Identifier: MIT */
/* /tokenize, /detokenize and /apply-template. */

#include "gateway/forms/llama_server/tokenize.h"

#include <stddef.h>

#include "common/utf8.h"
#include "gateway/forms/conversation.h"
#include "gateway/forms/openai/chat.h"
#include "gateway/forms/questions/question.h"
#include "gateway/forms/thinking.h"
#include "gateway/tools/tools.h"

/* `{"id":…,"piece":…}`: a text, or the bytes of what is no whole text. */
static void write_piece(int32_t id, const struct quern_piece *piece, struct json_out *out)
{
    const struct bytes text = {piece->bytes, piece->len};
    json_out_text(out, "{\"id\":");
    json_out_number(out, id);
    json_out_text(out, ",\"piece\":");
    if (utf8_valid(text) == text.len) {
        json_out_string(out, text);
    } else {
        for (size_t i = 0; i < text.len; i++) {
            json_out_text(out, i ? "," : "[");
            json_out_number(out, ((const uint8_t *)text.data)[i]);
        }
        json_out_text(out, "]");
    }
    json_out_text(out, "}");
}

static void write_tokens(const struct quern_answer *answer, struct json_out *out)
{
    json_out_text(out, "{\"tokens\":[");
    for (size_t i = 0; i < answer->n_ids; i++) {
        json_out_text(out, i ? "," : "");
        if (answer->pieces)
            write_piece(answer->ids[i], &answer->pieces[i], out);
        else
            json_out_number(out, answer->ids[i]);
    }
    json_out_text(out, "],\"count\":");
    json_out_number(out, (int64_t)answer->n_ids);
    json_out_text(out, "}");
}

static void write_text(const char *name, const struct quern_answer *answer, struct json_out *out)
{
    json_out_text(out, "{\"");
    json_out_text(out, name);
    json_out_text(out, "\":");
    json_out_string(out, (struct bytes){answer->content, answer->content_len});
    json_out_text(out, "}");
}

static void write_content(const struct quern_answer *answer, struct json_out *out)
{
    write_text("content", answer, out);
}

static void write_prompt(const struct quern_answer *answer, struct json_out *out)
{
    write_text("prompt", answer, out);
}

/* A text, or a conversation. */
static int finish_tokens(struct question_in *in, struct refusal *refusal)
{
    const struct quern_request *request = &in->parameters.request;
    if (request->messages && (request->text || request->ids))
        return refuse_value(refusal, "messages", "messages and content exclude each other");
    if (request->messages && in->add_special)
        return refuse_value(
            refusal, "add_special",
            "add_special: not supported with messages, whose special tokens come from the chat template");
    if (request->messages)
        return question_finish_conversation(in, refusal);
    if (in->parameters.kwargs || request->tools || in->parameters.continue_turn || in->parameters.new_turn)
        return refuse_value(refusal, "messages",
                            "tools, chat_template_kwargs, continue_final_message and add_generation_prompt "
                            "require messages");
    return request->text ? 0 : refuse_value(refusal, "content", "content is missing or not a string");
}

static int finish_ids(struct question_in *in, struct refusal *refusal)
{
    return in->parameters.request.ids
               ? 0
               : refuse_value(refusal, "tokens", "tokens is missing or not an array of token ids");
}

static const struct json_row tokenize_rows[] = {
    {"content", parameters_prompt, NULL, 0},
    {"prompt", parameters_prompt, NULL, 0},
    {"model", parameters_model, NULL, 0},
    {"add_special", json_in_bool, NULL, offsetof(struct question_in, add_special)},
    {"add_special_tokens", json_in_bool, NULL, offsetof(struct question_in, add_special)},
    {"parse_special", json_in_bool, NULL, offsetof(struct question_in, parameters.request.special)},
    {"special", json_in_bool, NULL, offsetof(struct question_in, parameters.request.special)},
    {"with_pieces", json_in_bool, NULL, offsetof(struct question_in, with_pieces)},
    {"messages", conversation_messages, NULL, 0},
    {"tools", tools_take, NULL, 0},
    {"chat_template_kwargs", thinking_kwargs, NULL, 0},
    {"continue_final_message", parameters_said, NULL, offsetof(struct question_in, parameters.continue_turn)},
    {"add_generation_prompt", parameters_said, NULL, offsetof(struct question_in, parameters.new_turn)},
    {0},
};

static const struct json_row detokenize_rows[] = {
    {"tokens", parameters_prompt, NULL, 0},
    {"model", parameters_model, NULL, 0},
    {"special", json_in_bool, NULL, offsetof(struct question_in, parameters.request.special)},
    {0},
};

void tokenize_handle(struct exchange *exchange)
{
    static const struct question_form form = {
        .rows = tokenize_rows, .finish = finish_tokens, .write = write_tokens};
    question_handle(exchange, &form, true);
}

void tokenize_handle_back(struct exchange *exchange)
{
    static const struct question_form form = {
        .rows = detokenize_rows, .finish = finish_ids, .write = write_content};
    question_handle(exchange, &form, false); /* names of control tokens are written out on demand */
}

void tokenize_handle_template(struct exchange *exchange)
{
    static const struct question_form form = {
        .rows = chat_rows, .finish = question_finish_conversation, .write = write_prompt};
    question_handle(exchange, &form, true);
}
