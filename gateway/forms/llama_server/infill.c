/* SPDX-License-Identifier: MIT */
/* See infill.h. The text before the gap is input_prefix, then prompt; behind it stands input_suffix;
 * input_extra are other files. The worker puts the model's tokens around them, and refuses where the model
 * has none. */

#include "gateway/forms/llama_server/infill.h"

#include <stddef.h>
#include <stdio.h>

#include "common/sampling.h"
#include "gateway/core/gateway.h"
#include "gateway/core/samplers.h"
#include "gateway/forms/generation.h"
#include "gateway/forms/llama_server/fields.h"
#include "gateway/forms/neutral.h"
#include "gateway/forms/openai/openai.h"

#define SAMPLING_NUMBER(name, ...) {#name, parameters_number, #name, 0},

static int take_text(struct parameters *parameters, const char *path, const json_t *value,
                     const char **ret_text, size_t *ret_len, struct refusal *refusal)
{
    if (!json_is_string(value))
        return refuse_value(refusal, path, "%s is %s, not a string", path, json_in_kind(value));
    parameters->infill = true;
    *ret_text = parameters_keep(parameters, value);
    *ret_len = json_string_length(value);
    return *ret_text ? 0 : parameters_out_of_memory(refusal);
}

static int take_prefix(void *into, const struct json_row *row, const char *path, json_t *value,
                       struct refusal *refusal)
{
    struct parameters *parameters = into;
    return take_text(parameters, path, value, &parameters->before, &parameters->before_len, refusal);
}

static int take_prompt(void *into, const struct json_row *row, const char *path, json_t *value,
                       struct refusal *refusal)
{
    struct parameters *parameters = into;
    return take_text(parameters, path, value, &parameters->line, &parameters->line_len, refusal);
}

static int take_suffix(void *into, const struct json_row *row, const char *path, json_t *value,
                       struct refusal *refusal)
{
    size_t len;
    return take_text(into, path, value, &((struct parameters *)into)->request.suffix, &len, refusal);
}

/* Files are checked here, so that the wrong one is named as the client has it. */
static int take_extra(void *into, const struct json_row *row, const char *path, json_t *value,
                      struct refusal *refusal)
{
    struct parameters *parameters = into;
    static const struct json_row known[] = {{"filename", json_in_ignore, NULL, 0},
                                            {"text", json_in_ignore, NULL, 0},
                                            {"time", json_in_ignore, NULL, 0},
                                            {0}};
    if (!json_is_array(value))
        return refuse_value(refusal, path, "%s is %s, not an array", path, json_in_kind(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_t *file = json_array_get(value, i);
        char where[64];
        snprintf(where, sizeof where, "%.24s[%zu]", path, i);
        if (!json_is_object(file))
            return refuse_value(refusal, where, "%s is %s, not an object", where, json_in_kind(file));
        if (json_in_take(NULL, known, where, file, refusal) != 0)
            return REFUSED;
        if (!json_is_string(json_object_get(file, "filename")) ||
            !json_is_string(json_object_get(file, "text")))
            return refuse_value(refusal, where, "%s lacks filename or text", where);
    }
    parameters->request.files = json_array_size(value) > 0 ? parameters_keep_json(parameters, value) : NULL;
    return json_array_size(value) == 0 || parameters->request.files ? 0 : parameters_out_of_memory(refusal);
}

/* clang-format off */
const struct json_row infill_rows[] = {
    {"input_prefix", take_prefix, NULL, 0},
    {"input_suffix", take_suffix, NULL, 0},
    {"input_extra", take_extra, NULL, 0},
    {"prompt", take_prompt, NULL, 0},
    {"n_predict", parameters_n_predict, "-1 is as many as there is room for", 0},
    {"max_tokens", parameters_n_predict, "-1 is as many as there is room for", 0},
    {"model", parameters_model, NULL, 0},
    {"samplers", samplers_take, NULL, 0},
    {"top_k", neutral_top_k, NULL, 0},
    SAMPLING_PARAMETERS(SAMPLING_NUMBER, SAMPLING_NUMBER)
    {"repeat_penalty", parameters_number, "repetition_penalty", 0},
    {"seed", parameters_seed, "-1 is a random one", 0},
    {"stop", parameters_stop, NULL, 0},
    {"stop_token_ids", parameters_stop_ids, NULL, 0},
    {"ignore_eos", json_in_bool, NULL, offsetof(struct parameters, request.ignore_eos)},
    {"min_tokens", parameters_number, "min_tokens", 0},
    {"logit_bias", parameters_logit_bias, NULL, 0},
    {"bad_words", parameters_bad_words, NULL, 0},
    {"dry_sequence_breakers", parameters_dry_breakers, NULL, 0},
    {"n", parameters_n, NULL, 0},
    {"n_cmpl", parameters_n, NULL, 0},
    {"stream", json_in_bool, NULL, offsetof(struct parameters, stream)},
    PARAMETERS_PROGRESS_ROW,
    PARAMETERS_CACHE_ROWS,
    {"response_fields", fields_take, NULL, 0},
    /* Hints of how long and how far in: the client cuts for itself. */
    {"t_max_prompt_ms", json_in_ignore, NULL, 0},
    {"t_max_predict_ms", json_in_ignore, NULL, 0},
    {"n_indent", json_in_ignore, NULL, 0},
    {"lora", json_in_unsupported, NULL, 0},
    NEUTRAL_OPENAI_ROWS,
    {0},
};
/* clang-format on */

static void write_rates(const char *what, uint32_t n, double ms, struct json_out *out)
{
    const struct {
        const char *name;
        double value;
    } members[] = {
        {"_ms", ms}, {"_per_token_ms", n > 0 ? ms / n : 0}, {"_per_second", ms > 0 ? n * 1e3 / ms : 0}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_out_text(out, ",\"");
        json_out_text(out, what);
        json_out_text(out, members[i].name);
        json_out_text(out, "\":");
        json_out_real(out, members[i].value);
    }
}

/* `,"timings":{…}`, with rates where there was time. */
static void write_timings(const struct choice *choice, struct json_out *out)
{
    const uint32_t computed = choice->prompt_tokens - choice->cached_tokens;
    json_out_text(out, ",\"timings\":{\"cache_n\":");
    json_out_number(out, choice->cached_tokens);
    json_out_text(out, ",\"prompt_n\":");
    json_out_number(out, computed);
    write_rates("prompt", computed, choice->prefill_ms, out);
    json_out_text(out, ",\"predicted_n\":");
    json_out_number(out, choice->output_tokens);
    write_rates("predicted", choice->output_tokens, choice->decode_ms, out);
    choice_write_drafts(choice->drafted_tokens, choice->accepted_tokens, out);
    json_out_text(out, "}");
}

/* Plugins show the context beside what of it is cached. */
static void write_settings(const struct generation *generation, struct json_out *out)
{
    const struct pool_model *model = fleet_model(&generation->gateway->fleet, generation->model);
    json_out_text(out, ",\"generation_settings\":{\"n_ctx\":");
    json_out_number(out, model ? model->context : 0);
    json_out_text(out, "}");
}

/* The object of an answer that is over, from its text on. */
static void write_end(const struct choice *choice, struct bytes text, struct json_out *out)
{
    const struct generation *generation = choice->generation;
    json_out_text(out, "{\"index\":");
    json_out_number(out, choice->index);
    json_out_text(out, ",\"content\":");
    json_out_string(out, text);
    json_out_text(out, ",\"stop\":true,\"model\":");
    json_out_name(out, generation->model);
    json_out_text(out, ",\"tokens_predicted\":");
    json_out_number(out, choice->output_tokens);
    json_out_text(out, ",\"tokens_evaluated\":");
    json_out_number(out, choice->prompt_tokens);
    json_out_text(out, ",\"tokens_cached\":");
    json_out_number(out, choice->cached_tokens);
    json_out_text(out, ",\"truncated\":false,\"stop_type\":");
    json_out_name(out, choice->reason == QUERN_LENGTH ? "limit" : choice->stop ? "word" : "eos");
    choice_write_limit(choice, out);
    json_out_text(out, ",\"stopping_word\":");
    json_out_name(out, choice->stop ? choice->stop : "");
    write_settings(generation, out);
    write_timings(choice, out);
    json_out_text(out, "}");
}

/* The same, or those of its members that were asked for. */
static void write_wanted(const struct choice *choice, struct bytes text, struct json_out *out)
{
    struct json_out all = {0};
    if (!choice->generation->response_fields) {
        write_end(choice, text, out);
        return;
    }
    write_end(choice, text, &all);
    fields_write(choice->generation->response_fields, &all, out);
    json_out_deinit(&all);
}

static void begin(struct generation *generation, struct json_out *out)
{
}

static void piece(struct choice *choice, struct bytes text, struct json_out *out)
{
    openai_event_open(out);
    json_out_text(out, "{\"index\":");
    json_out_number(out, choice->index);
    json_out_text(out, ",\"content\":");
    json_out_string(out, text);
    json_out_text(out, ",\"stop\":false}");
    openai_event_close(out);
}

static void end(struct choice *choice, struct json_out *out)
{
    openai_event_open(out);
    write_wanted(choice, BYTES_LITERAL(""), out);
    openai_event_close(out);
}

static void progress(struct choice *choice, const struct quern_progress *done, struct json_out *out)
{
    openai_event_open(out);
    json_out_text(out, "{\"index\":");
    json_out_number(out, choice->index);
    json_out_text(out, ",\"content\":\"\",\"stop\":false");
    openai_progress(choice->generation, done, out);
    json_out_text(out, "}");
    openai_event_close(out);
}

static void finish(struct generation *generation, struct json_out *out)
{
}

/* An object, or an array of several. */
static void whole(struct generation *generation, struct json_out *out)
{
    json_out_text(out, generation->n > 1 ? "[" : "");
    for (uint32_t i = 0; i < generation->n; i++) {
        const struct choice *choice = &generation->choices[i];
        json_out_text(out, i > 0 ? "," : "");
        write_wanted(choice, (struct bytes){choice->text.data, choice->text.len}, out);
    }
    json_out_text(out, generation->n > 1 ? "]" : "");
}

static const struct dialect dialect = {
    .name = "infill",
    .stream_type = "text/event-stream",
    .begin = begin,
    .piece = piece,
    .end = end,
    .finish = finish,
    .progress = progress,
    .ping = OPENAI_PING,
    .fail = openai_fail,
    .whole = whole,
};

void infill_handle(struct exchange *exchange)
{
    generation_handle(exchange, infill_rows, "input_prefix", false, &dialect);
}
