/* SPDX-License-Identifier: MIT */
/* /v1/chat/completions: messages in, a message out. */

#include "gateway/forms/openai/chat.h"

#include <string.h>

#include "gateway/forms/conversation.h"
#include "gateway/core/gateway.h"
#include "gateway/forms/grammar.h"
#include "gateway/forms/openai/openai.h"
#include "gateway/forms/thinking.h"
#include "gateway/tools/tool_choice.h"
#include "gateway/tools/tools.h"

#define PREFIX "chatcmpl-"
#define CHUNK  "chat.completion.chunk"

const struct json_row chat_rows[] = {
    {"messages", conversation_messages, NULL, 0},
    OPENAI_ROWS,
    NEUTRAL_CHAT_ROWS,
    {"continue_final_message", parameters_said, NULL, offsetof(struct parameters, continue_turn)},
    {"add_generation_prompt", parameters_said, NULL, offsetof(struct parameters, new_turn)},
    {"max_completion_tokens", parameters_max_tokens, "-1: as many as there is room for", 0},
    {"store", json_in_ignore, NULL, 0},
    {"service_tier", json_in_ignore, NULL, 0},
    {"safety_identifier", json_in_ignore, NULL, 0},
    {"prompt_cache_key", json_in_ignore, NULL, 0},
    {"parallel_tool_calls", tool_choice_parallel, NULL, 0},
    {"tools", tools_take, NULL, 0},
    {"tool_choice", tool_choice_openai, NULL, 0},
    {"functions", json_in_unsupported, NULL, 0},
    {"function_call", neutral_only, "none auto", 0}, /* there are no functions */
    GRAMMAR_ROWS,
    {"logprobs", json_in_bool, NULL, offsetof(struct parameters, wants_logprobs)},
    {"top_logprobs", parameters_top_logprobs, NULL, 0},
    {"audio", json_in_unsupported, NULL, 0},
    {"prediction", json_in_unsupported, NULL, 0},
    {"reasoning_effort", thinking_effort, NULL, 0},
    {"reasoning_format", thinking_format, NULL, 0},
    THINKING_BUDGET_ROWS,
    {"thinking", thinking_anthropic, NULL, 0},
    {"chat_template_kwargs", thinking_kwargs, NULL, 0},
    {"web_search_options", json_in_unsupported, NULL, 0},
    {0},
};

/* A chunk up to its delta: `data: {…,"choices":[{"index":0,"delta":`. */
static void open_chunk(const struct choice *choice, struct json_out *out)
{
    openai_event_open(out);
    openai_head(choice->generation, PREFIX, CHUNK, out);
    json_out_text(out, ",\"choices\":[{\"index\":");
    json_out_number(out, choice->index);
    json_out_text(out, ",\"delta\":");
}

static void close_chunk(struct choice *choice, const char *finish_reason, struct json_out *out)
{
    json_out_text(out, ",\"logprobs\":");
    logprobs_write(&choice->logprobs, out);
    openai_finish(choice, finish_reason, out);
    json_out_text(out, "}]");
    if (choice->generation->include_usage)
        json_out_text(out, ",\"usage\":null");
    json_out_text(out, "}");
    openai_event_close(out);
}

static void begin(struct generation *generation, struct json_out *out)
{
    for (uint32_t i = 0; i < generation->n; i++) {
        open_chunk(&generation->choices[i], out);
        json_out_text(out, "{\"role\":\"assistant\",\"content\":\"\"}");
        close_chunk(&generation->choices[i], NULL, out);
    }
}

static void progress(struct choice *choice, const struct quern_progress *done, struct json_out *out)
{
    openai_event_open(out);
    openai_head(choice->generation, PREFIX, CHUNK, out);
    json_out_text(out, ",\"choices\":[{\"index\":");
    json_out_number(out, choice->index);
    json_out_text(out, ",\"delta\":{},\"logprobs\":null,\"finish_reason\":null}]");
    openai_progress(choice->generation, done, out);
    json_out_text(out, choice->generation->include_usage ? ",\"usage\":null}" : "}");
    openai_event_close(out);
}

static void piece(struct choice *choice, struct bytes text, struct json_out *out)
{
    open_chunk(choice, out);
    json_out_text(out, "{\"content\":");
    json_out_string(out, text);
    json_out_text(out, "}");
    close_chunk(choice, NULL, out);
}

static void thought(struct choice *choice, struct bytes text, struct json_out *out)
{
    open_chunk(choice, out);
    json_out_text(out, "{\"reasoning_content\":");
    json_out_string(out, text);
    json_out_text(out, ",\"reasoning\":");
    json_out_string(out, text);
    json_out_text(out, "}");
    close_chunk(choice, NULL, out);
}

/* `{"id":…,"type":"function","function":{"name":…,"arguments":…}}`, but for the last brace. */
static void write_call(const struct tool_call *call, struct bytes arguments, struct json_out *out)
{
    json_out_text(out, "\"id\":");
    json_out_name(out, call->id);
    json_out_text(out, ",\"type\":\"function\",\"function\":{\"name\":");
    json_out_name(out, call->name);
    json_out_text(out, ",\"arguments\":");
    json_out_string(out, arguments);
    json_out_text(out, "}}");
}

/* A delta up to what it says of the last call. */
static void open_call(struct choice *choice, struct json_out *out)
{
    open_chunk(choice, out);
    json_out_text(out, "{\"tool_calls\":[{\"index\":");
    json_out_number(out, (int64_t)choice->n_calls - 1);
    json_out_text(out, ",");
}

static void call(struct choice *choice, struct json_out *out)
{
    open_call(choice, out);
    write_call(choice_call(choice), BYTES_LITERAL(""), out);
    json_out_text(out, "]}");
    close_chunk(choice, NULL, out);
}

static void arguments(struct choice *choice, struct bytes json, struct json_out *out)
{
    open_call(choice, out);
    json_out_text(out, "\"function\":{\"arguments\":");
    json_out_string(out, json);
    json_out_text(out, "}}]}");
    close_chunk(choice, NULL, out);
}

/* The content of a message, and the calls in it. */
static void write_message(const struct choice *choice, struct json_out *out)
{
    json_out_text(out, "{\"role\":\"assistant\",\"content\":");
    if (choice->n_calls > 0 && choice->text.len == 0)
        json_out_text(out, "null");
    else
        json_out_string(out, (struct bytes){choice->text.data, choice->text.len});
    static const char *const names[] = {",\"reasoning_content\":", ",\"reasoning\":"};
    for (size_t i = 0; i < 2 && choice->thought.len > 0; i++) {
        json_out_text(out, names[i]);
        json_out_string(out, (struct bytes){choice->thought.data, choice->thought.len});
    }
    for (size_t i = 0; i < choice->n_calls; i++) {
        const struct tool_call *made = &choice->calls[i];
        json_out_text(out, i ? ",{" : ",\"tool_calls\":[{");
        write_call(made, (struct bytes){made->arguments.data, made->arguments.len}, out);
    }
    json_out_text(out, choice->n_calls > 0 ? "],\"refusal\":null}" : ",\"refusal\":null}");
}

static void end(struct choice *choice, struct json_out *out)
{
    open_chunk(choice, out);
    json_out_text(out, "{}");
    close_chunk(choice, openai_finish_reason(choice), out);
}

static void finish(struct generation *generation, struct json_out *out)
{
    openai_stream_end(generation, PREFIX, CHUNK, out);
}

static void whole(struct generation *generation, struct json_out *out)
{
    openai_head(generation, PREFIX, "chat.completion", out);
    json_out_text(out, ",\"choices\":[");
    for (uint32_t i = 0; i < generation->n; i++) {
        struct choice *choice = &generation->choices[i];
        json_out_text(out, i ? ",{\"index\":" : "{\"index\":");
        json_out_number(out, i);
        json_out_text(out, ",\"message\":");
        write_message(choice, out);
        json_out_text(out, ",\"logprobs\":");
        logprobs_write(&choice->logprobs, out);
        openai_finish(choice, openai_finish_reason(choice), out);
        json_out_text(out, "}");
    }
    json_out_text(out, "]");
    openai_usage(generation, out);
    json_out_text(out, "}");
}

static const struct dialect dialect = {
    .name = "chat",
    .stream_type = "text/event-stream",
    .begin = begin,
    .piece = piece,
    .thought = thought,
    .end = end,
    .call = call,
    .arguments = arguments,
    .finish = finish,
    .progress = progress,
    .ping = OPENAI_PING,
    .fail = openai_fail,
    .whole = whole,
};

void chat_handle(struct exchange *exchange)
{
    generation_handle(exchange, chat_rows, "messages", false, &dialect);
}
