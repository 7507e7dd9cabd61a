/* SPDX-License-Identifier: MIT */
/* /v1/completions: texts, or token ids, continued. */

#include "gateway/forms/openai/completions.h"

#include "gateway/forms/grammar.h"
#include "gateway/forms/openai/openai.h"

#define PREFIX "cmpl-"
#define OBJECT "text_completion"

/* A number, where chat has two parameters: how many of the most likely. */
static int take_logprobs(void *into, const struct json_row *row, const char *path, json_t *value,
                         struct refusal *refusal)
{
    if (json_is_false(value))
        return 0;
    ((struct parameters *)into)->wants_logprobs = true;
    return parameters_top_logprobs(into, row, path, value, refusal);
}

const struct json_row completions_rows[] = {
    {"prompt", parameters_prompts, NULL, 0},
    OPENAI_ROWS,
    GRAMMAR_ROWS,
    {"best_of", neutral_only, "1", 0}, /* the best of one is itself */
    {"echo", json_in_bool, NULL, offsetof(struct parameters, echo)},
    {"add_special_tokens", neutral_only, "true", 0},
    {"special", json_in_bool, NULL, offsetof(struct parameters, request.special)},
    {"suffix", parameters_suffix, NULL, 0},
    {"logprobs", take_logprobs, NULL, 0},
    {0},
};

static void write_choice(struct choice *choice, struct bytes text, const char *finish_reason,
                         struct json_out *out)
{
    json_out_text(out, "{\"index\":");
    json_out_number(out, choice->index);
    json_out_text(out, ",\"text\":");
    json_out_string(out, text);
    json_out_text(out, ",\"logprobs\":");
    logprobs_write(&choice->logprobs, out);
    openai_finish(choice, finish_reason, out);
    json_out_text(out, "}");
}

static void chunk(struct choice *choice, struct bytes text, const char *finish_reason, struct json_out *out)
{
    openai_event_open(out);
    openai_head(choice->generation, PREFIX, OBJECT, out);
    json_out_text(out, ",\"choices\":[");
    write_choice(choice, text, finish_reason, out);
    json_out_text(out, choice->generation->include_usage ? "],\"usage\":null}" : "]}");
    openai_event_close(out);
}

static void progress(struct choice *choice, const struct quern_progress *done, struct json_out *out)
{
    openai_event_open(out);
    openai_head(choice->generation, PREFIX, OBJECT, out);
    json_out_text(out, ",\"choices\":[{\"index\":");
    json_out_number(out, choice->index);
    json_out_text(out, ",\"text\":\"\",\"logprobs\":null,\"finish_reason\":null}]");
    openai_progress(choice->generation, done, out);
    json_out_text(out, choice->generation->include_usage ? ",\"usage\":null}" : "}");
    openai_event_close(out);
}

static void begin(struct generation *generation, struct json_out *out)
{
}

/* What a choice begins with. */
static void echo(struct choice *choice, struct json_out *out)
{
    const struct bytes text = choice->echo;
    choice->echo.len = 0;
    if (text.len > 0)
        chunk(choice, text, NULL, out);
}

static void piece(struct choice *choice, struct bytes text, struct json_out *out)
{
    echo(choice, out);
    chunk(choice, text, NULL, out);
}

static void end(struct choice *choice, struct json_out *out)
{
    echo(choice, out);
    chunk(choice, BYTES_LITERAL(""), openai_finish_reason(choice), out);
}

static void finish(struct generation *generation, struct json_out *out)
{
    openai_stream_end(generation, PREFIX, OBJECT, out);
}

static void whole(struct generation *generation, struct json_out *out)
{
    openai_head(generation, PREFIX, OBJECT, out);
    json_out_text(out, ",\"choices\":[");
    for (uint32_t i = 0; i < generation->n; i++) {
        struct choice *choice = &generation->choices[i];
        json_out_text(out, i ? "," : "");
        write_choice(choice, (struct bytes){choice->text.data, choice->text.len},
                     openai_finish_reason(choice), out);
    }
    json_out_text(out, "]");
    openai_usage(generation, out);
    json_out_text(out, "}");
}

static const struct dialect dialect = {
    .name = "completions",
    .stream_type = "text/event-stream",
    .begin = begin,
    .piece = piece,
    .end = end,
    .finish = finish,
    .progress = progress,
    .ping = OPENAI_PING,
    .fail = openai_fail,
    .whole = whole,
    .logprobs = LOGPROBS_COMPLETION,
};

void completions_handle(struct exchange *exchange)
{
    generation_handle(exchange, completions_rows, "prompt", false, &dialect);
}
