/* SPDX-License-Identifier: MIT */
/* /v1/messages: Anthropic's form of a conversation. The tokens of the prompt are known at its end only, so
 * the stream tells them in message_delta, and 0 in message_start. */

#include "gateway/messages.h"

#include "gateway/generation.h"

static int take_metadata(void *into, const struct json_row *row, const char *path, json_t *value,
                         struct refusal *refusal)
{
    return json_is_object(value)
               ? 0
               : refuse_value(refusal, path, "%s is %s, not an object", path, json_in_kind(value));
}

const struct json_row messages_rows[] = {
    {"model", parameters_model, NULL, 0},
    {"messages", parameters_messages, NULL, 0},
    {"system", parameters_system, NULL, 0},
    {"max_tokens", parameters_max_tokens, NULL, 0},
    {"stop_sequences", parameters_stop, NULL, 0},
    {"temperature", parameters_number, "temperature", 0},
    {"top_p", parameters_number, "top_p", 0},
    {"top_k", parameters_number, "top_k", 0},
    {"stream", json_in_bool, NULL, offsetof(struct parameters, stream)},
    {"metadata", take_metadata, NULL, 0},
    {"service_tier", json_in_ignore, NULL, 0},
    {"tools", json_in_unsupported, NULL, 0},
    {"tool_choice", json_in_unsupported, NULL, 0},
    {"thinking", json_in_unsupported, NULL, 0},
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
    return choice->reason == QUERN_LENGTH ? "max_tokens" : "end_turn";
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
    open_event("content_block_start", out);
    json_out_text(out, ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}");
    close_event(out);
}

static void piece(struct choice *choice, struct bytes text, struct json_out *out)
{
    open_event("content_block_delta", out);
    json_out_text(out, ",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":");
    json_out_string(out, text);
    json_out_text(out, "}");
    close_event(out);
}

static void end(struct choice *choice, struct json_out *out)
{
    open_event("content_block_stop", out);
    json_out_text(out, ",\"index\":0");
    close_event(out);
    open_event("message_delta", out);
    json_out_text(out, ",\"delta\":{\"stop_reason\":");
    json_out_name(out, stop_reason(choice));
    json_out_text(out, ",\"stop_sequence\":null}");
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

static void whole(struct generation *generation, struct json_out *out)
{
    const struct choice *choice = &generation->choices[0];
    json_out_text(out, "{");
    write_head(generation, out);
    json_out_text(out, "[{\"type\":\"text\",\"text\":");
    json_out_string(out, (struct bytes){choice->text.data, choice->text.len});
    json_out_text(out, "}],\"stop_reason\":");
    json_out_name(out, stop_reason(choice));
    json_out_text(out, ",\"stop_sequence\":null");
    write_usage(generation, out);
    json_out_text(out, "}");
}

static const struct dialect dialect = {
    .name = "messages",
    .stream_type = "text/event-stream",
    .begin = begin,
    .piece = piece,
    .end = end,
    .finish = finish,
    .fail = fail,
    .whole = whole,
};

void messages_handle(struct exchange *exchange)
{
    generation_handle(exchange, messages_rows, "messages", false, &dialect);
}
