/* SPDX-License-Identifier: MIT */
/* /v1/messages: Anthropic's form of a conversation. The tokens of the prompt are known at its end only, so
 * the stream tells them in message_delta, and 0 in message_start. */

#include "gateway/forms/anthropic/messages.h"

#include <string.h>

#include "gateway/forms/conversation.h"
#include "gateway/answers/answer.h"
#include "gateway/forms/generation.h"
#include "gateway/forms/anthropic/messages_in.h"
#include "gateway/forms/thinking.h"
#include "gateway/tools/tool_choice.h"
#include "gateway/tools/tools.h"

static int take_metadata(void *into, const struct json_row *row, const char *path, json_t *value,
                         struct refusal *refusal)
{
    return json_is_object(value)
               ? 0
               : refuse_value(refusal, path, "%s is %s, not an object", path, json_in_kind(value));
}

const struct json_row messages_rows[] = {
    {"model", parameters_model, NULL, 0},
    {"messages", messages_take, NULL, 0},
    {"system", conversation_system, NULL, 0},
    {"max_tokens", parameters_max_tokens, NULL, 0},
    {"stop_sequences", parameters_stop, NULL, 0},
    {"temperature", parameters_number, "temperature", 0},
    {"top_p", parameters_number, "top_p", 0},
    {"top_k", parameters_number, "top_k", 0},
    {"stream", json_in_bool, NULL, offsetof(struct parameters, stream)},
    {"metadata", take_metadata, NULL, 0},
    {"service_tier", json_in_ignore, NULL, 0},
    PARAMETERS_CACHE_ROWS,
    {"tools", tools_take_anthropic, NULL, 0},
    {"tool_choice", tool_choice_anthropic, NULL, 0},
    {"thinking", thinking_anthropic, NULL, 0},
    {"cache_control", json_in_ignore, NULL, 0},
    {"context_management", json_in_unsupported, NULL, 0},
    {"mcp_servers", json_in_unsupported, NULL, 0},
    {"container", json_in_unsupported, NULL, 0},
    {0},
};

static void open_event(const char *name, struct json_out *out)
{
    json_out_text(out, "event: ");
    json_out_text(out, name);
    json_out_text(out, "\ndata: {\"type\":\"");
    json_out_text(out, name);
    json_out_text(out, "\"");
}

static void close_event(struct json_out *out)
{
    json_out_text(out, "}\n\n");
}

static const char *stop_reason(const struct choice *choice)
{
    const bool context = choice->limit && strcmp(choice->limit, "context") == 0;
    return choice->reason == QUERN_LENGTH ? (context ? "model_context_window_exceeded" : "max_tokens")
           : choice_calls(choice)         ? "tool_use"
           : choice->stop                 ? "stop_sequence"
                                          : "end_turn";
}

/* `,"stop_sequence":…`: the one that ended it. */
static void write_stop(const struct choice *choice, struct json_out *out)
{
    json_out_text(out, ",\"stop_sequence\":");
    if (strcmp(stop_reason(choice), "stop_sequence") == 0)
        json_out_name(out, choice->stop);
    else
        json_out_text(out, "null");
    choice_write_limit(choice, out);
}

static void write_usage(const struct generation *generation, struct json_out *out)
{
    /* What came from the cache is not among Anthropic's input_tokens. */
    json_out_text(out, ",\"usage\":{\"input_tokens\":");
    json_out_number(out, (int64_t)generation->prompt_tokens - generation->cached_tokens);
    json_out_text(out, ",\"cache_read_input_tokens\":");
    json_out_number(out, generation->cached_tokens);
    json_out_text(out, ",\"output_tokens\":");
    json_out_number(out, generation->output_tokens);
    json_out_text(out, "}");
}

/* A message up to its content: `"id":…,"type":"message",…,"content":`. */
static void write_head(const struct generation *generation, struct json_out *out)
{
    json_out_text(out, "\"id\":\"msg_");
    json_out_text(out, generation->id);
    json_out_text(out, "\",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
    json_out_name(out, generation->model);
    json_out_text(out, ",\"content\":");
}

static void begin(struct generation *generation, struct json_out *out)
{
    open_event("message_start", out);
    json_out_text(out, ",\"message\":{");
    write_head(generation, out);
    json_out_text(out, "[],\"stop_reason\":null,\"stop_sequence\":null");
    write_usage(generation, out);
    json_out_text(out, "}");
    close_event(out);
}

/* ---- content blocks: one is open at a time ---- */

/* An event of the block that was begun last, up to what it says. */
static void open_block_event(const char *name, const struct choice *choice, struct json_out *out)
{
    open_event(name, out);
    json_out_text(out, ",\"index\":");
    json_out_number(out, (int64_t)choice->n_blocks - 1);
}

static void close_block(struct choice *choice, struct json_out *out)
{
    if (!choice->open)
        return;
    choice->open = choice->open_thought = false;
    open_block_event("content_block_stop", choice, out);
    close_event(out);
}

static void open_text(struct choice *choice, struct json_out *out)
{
    if (choice->open_thought)
        close_block(choice, out);
    if (choice->open)
        return;
    choice->open = true;
    choice->n_blocks++;
    open_block_event("content_block_start", choice, out);
    json_out_text(out, ",\"content_block\":{\"type\":\"text\",\"text\":\"\"}");
    close_event(out);
}

static void thought(struct choice *choice, struct bytes text, struct json_out *out)
{
    if (!choice->open) {
        choice->open = choice->open_thought = true;
        choice->n_blocks++;
        open_block_event("content_block_start", choice, out);
        json_out_text(out, ",\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}");
        close_event(out);
    }
    open_block_event("content_block_delta", choice, out);
    json_out_text(out, ",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":");
    json_out_string(out, text);
    json_out_text(out, "}");
    close_event(out);
}

static void write_call(const struct tool_call *made, struct json_out *out)
{
    json_out_text(out, "{\"type\":\"tool_use\",\"id\":");
    json_out_name(out, made->id);
    json_out_text(out, ",\"name\":");
    json_out_name(out, made->name);
    json_out_text(out, ",\"input\":");
}

static void call(struct choice *choice, struct json_out *out)
{
    close_block(choice, out);
    choice->open = true;
    choice->n_blocks++;
    open_block_event("content_block_start", choice, out);
    json_out_text(out, ",\"content_block\":");
    write_call(choice_call(choice), out);
    json_out_text(out, "{}}");
    close_event(out);
}

static void arguments(struct choice *choice, struct bytes json, struct json_out *out)
{
    open_block_event("content_block_delta", choice, out);
    json_out_text(out, ",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":");
    json_out_string(out, json);
    json_out_text(out, "}");
    close_event(out);
}

static void piece(struct choice *choice, struct bytes text, struct json_out *out)
{
    open_text(choice, out);
    open_block_event("content_block_delta", choice, out);
    json_out_text(out, ",\"delta\":{\"type\":\"text_delta\",\"text\":");
    json_out_string(out, text);
    json_out_text(out, "}");
    close_event(out);
}

static void end(struct choice *choice, struct json_out *out)
{
    if (choice->n_blocks == 0)
        open_text(choice, out);
    close_block(choice, out);
    open_event("message_delta", out);
    json_out_text(out, ",\"delta\":{\"stop_reason\":");
    json_out_name(out, stop_reason(choice));
    write_stop(choice, out);
    json_out_text(out, "}");
    write_usage(choice->generation, out);
    close_event(out);
}

static void finish(struct generation *generation, struct json_out *out)
{
    open_event("message_stop", out);
    close_event(out);
}

static void fail(struct generation *generation, const struct refusal *refusal, struct json_out *out)
{
    json_out_text(out, "event: error\ndata: ");
    refusal_write(refusal, FAMILY_ANTHROPIC, out);
    json_out_text(out, "\n\n");
}

static void write_content(const struct choice *choice, struct json_out *out)
{
    bool text = choice->text.len > 0 || choice->n_calls == 0;
    json_out_text(out, "[");
    if (choice->thought.len > 0) {
        json_out_text(out, "{\"type\":\"thinking\",\"thinking\":");
        json_out_string(out, (struct bytes){choice->thought.data, choice->thought.len});
        json_out_text(out, text || choice->n_calls > 0 ? ",\"signature\":\"\"}," : ",\"signature\":\"\"}");
    }
    if (text) {
        json_out_text(out, "{\"type\":\"text\",\"text\":");
        json_out_string(out, (struct bytes){choice->text.data, choice->text.len});
        json_out_text(out, "}");
    }
    for (size_t i = 0; i < choice->n_calls; i++) {
        json_out_text(out, text || i ? "," : "");
        write_call(&choice->calls[i], out);
        answer_write_object(&choice->calls[i], out);
        json_out_text(out, "}");
    }
    json_out_text(out, "]");
}

static void whole(struct generation *generation, struct json_out *out)
{
    const struct choice *choice = &generation->choices[0];
    json_out_text(out, "{");
    write_head(generation, out);
    write_content(choice, out);
    json_out_text(out, ",\"stop_reason\":");
    json_out_name(out, stop_reason(choice));
    write_stop(choice, out);
    write_usage(generation, out);
    json_out_text(out, "}");
}

static const struct dialect dialect = {
    .name = "messages",
    .stream_type = "text/event-stream",
    .begin = begin,
    .piece = piece,
    .thought = thought,
    .end = end,
    .call = call,
    .arguments = arguments,
    .called = close_block,
    .finish = finish,
    .ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    .fail = fail,
    .whole = whole,
};

void messages_handle(struct exchange *exchange)
{
    generation_handle(exchange, messages_rows, "messages", false, &dialect);
}
