/* SPDX-License-Identifier: MIT */
/* See infill.h. The text before the gap is input_prefix, then prompt; behind it stands input_suffix;
 * input_extra are other files. The worker puts the model's tokens around them, and refuses where the model
 * has none. */

#include "gateway/forms/llama_server/infill.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/sampling.h"
#include "gateway/forms/generation.h"
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
            return refuse_value(refusal, where, "%s has no filename and text", where);
    }
    parameters->request.files = json_array_size(value) > 0 ? parameters_keep_json(parameters, value) : NULL;
    return json_array_size(value) == 0 || parameters->request.files ? 0 : parameters_out_of_memory(refusal);
}

/* 0: the prompt is to be cached for what comes. One token is made, and not told. */
static int take_n_predict(void *into, const struct json_row *row, const char *path, json_t *value,
                          struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (!json_is_integer(value) || json_integer_value(value) != 0)
        return parameters_max_tokens(into, row, path, value, refusal);
    parameters->warm_up = parameters->has_max_tokens = true;
    parameters->request.max_tokens = 1;
    return 0;
}

/* Those that take part. "infill", which joins candidates that begin alike, has nothing here that does the
 * same. */
static int take_samplers(void *into, const struct json_row *row, const char *path, json_t *value,
                         struct refusal *refusal)
{
    static const char known[] =
        " temperature temp top_k top-k top_p top-p nucleus min_p min-p penalties infill dry "
        "xtc typ_p typical_p typical-p top_n_sigma ";
    struct parameters *parameters = into;
    size_t len = 2;
    if (!json_is_array(value))
        return refuse_value(refusal, path, "%s is %s, not an array of names", path, json_in_kind(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *name = json_string_value(json_array_get(value, i));
        char spaced[40];
        snprintf(spaced, sizeof spaced, " %.30s ", name ? name : "?");
        if (!strstr(known, spaced))
            return refuse(refusal, 400, "unsupported_parameter", path, "%s[%zu]: unknown sampler \"%.30s\"",
                          path, i, name ? name : "");
        len += strlen(name) + 1;
    }
    char *list = parameters_memory(parameters, len, 1);
    if (!list)
        return parameters_out_of_memory(refusal);
    strcpy(list, " ");
    for (size_t i = 0; i < json_array_size(value); i++)
        strcat(strcat(list, json_string_value(json_array_get(value, i))), " ");
    parameters->samplers = list;
    return 0;
}

/* clang-format off */
const struct json_row infill_rows[] = {
    {"input_prefix", take_prefix, NULL, 0},
    {"input_suffix", take_suffix, NULL, 0},
    {"input_extra", take_extra, NULL, 0},
    {"prompt", take_prompt, NULL, 0},
    {"n_predict", take_n_predict, "-1 is as many as there is room for", 0},
    {"max_tokens", take_n_predict, "-1 is as many as there is room for", 0},
    {"model", parameters_model, NULL, 0},
    {"samplers", take_samplers, NULL, 0},
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
    {"stream", json_in_bool, NULL, offsetof(struct parameters, stream)},
    PARAMETERS_PROGRESS_ROW,
    PARAMETERS_CACHE_ROWS,
    /* Hints of how long, how far in, and what to tell: the client cuts for itself. */
    {"t_max_prompt_ms", json_in_ignore, NULL, 0},
    {"t_max_predict_ms", json_in_ignore, NULL, 0},
    {"n_indent", json_in_ignore, NULL, 0},
    {"response_fields", json_in_ignore, NULL, 0},
    {"lora", json_in_unsupported, NULL, 0},
    NEUTRAL_OPENAI_ROWS,
    {0},
};
/* clang-format on */

static void member(struct json_out *out, const char *name, double value)
{
    json_out_text(out, name);
    json_out_real(out, value);
}

/* `,"timings":{…}`, with rates where there was time. */
static void write_timings(const struct generation *generation, struct json_out *out)
{
    const uint32_t computed = generation->prompt_tokens - generation->cached_tokens;
    json_out_text(out, ",\"timings\":{\"prompt_n\":");
    json_out_number(out, computed);
    member(out, ",\"prompt_ms\":", generation->prefill_ms);
    member(out, ",\"prompt_per_second\":",
           generation->prefill_ms > 0 ? computed * 1e3 / generation->prefill_ms : 0);
    json_out_text(out, ",\"predicted_n\":");
    json_out_number(out, generation->output_tokens);
    member(out, ",\"predicted_ms\":", generation->decode_ms);
    member(out, ",\"predicted_per_second\":",
           generation->decode_ms > 0 ? generation->output_tokens * 1e3 / generation->decode_ms : 0);
    json_out_text(out, "}");
}

/* The object of an answer that is over, from its text on. */
static void write_end(const struct choice *choice, struct bytes text, struct json_out *out)
{
    const struct generation *generation = choice->generation;
    json_out_text(out, "{\"index\":0,\"content\":");
    json_out_string(out, text);
    json_out_text(out, ",\"stop\":true,\"model\":");
    json_out_name(out, generation->model);
    json_out_text(out, ",\"tokens_predicted\":");
    json_out_number(out, generation->output_tokens);
    json_out_text(out, ",\"tokens_evaluated\":");
    json_out_number(out, generation->prompt_tokens);
    json_out_text(out, ",\"tokens_cached\":");
    json_out_number(out, generation->cached_tokens);
    json_out_text(out, ",\"truncated\":false,\"stop_type\":");
    json_out_name(out, choice->reason == QUERN_LENGTH ? "limit" : choice->stop[0] ? "word" : "eos");
    choice_write_limit(choice, out);
    json_out_text(out, ",\"stopping_word\":");
    json_out_name(out, choice->stop);
    write_timings(generation, out);
    json_out_text(out, "}");
}

static void begin(struct generation *generation, struct json_out *out)
{
}

static void piece(struct choice *choice, struct bytes text, struct json_out *out)
{
    if (choice->generation->untold)
        return;
    openai_event_open(out);
    json_out_text(out, "{\"index\":0,\"content\":");
    json_out_string(out, text);
    json_out_text(out, ",\"stop\":false}");
    openai_event_close(out);
}

static void end(struct choice *choice, struct json_out *out)
{
    openai_event_open(out);
    write_end(choice, BYTES_LITERAL(""), out);
    openai_event_close(out);
}

static void progress(struct choice *choice, const struct quern_progress *done, struct json_out *out)
{
    openai_event_open(out);
    json_out_text(out, "{\"index\":0,\"content\":\"\",\"stop\":false");
    openai_progress(choice->generation, done, out);
    json_out_text(out, "}");
    openai_event_close(out);
}

static void finish(struct generation *generation, struct json_out *out)
{
}

static void whole(struct generation *generation, struct json_out *out)
{
    const struct choice *choice = &generation->choices[0];
    const struct bytes text = {choice->text.data, choice->text.len};
    write_end(choice, generation->untold ? BYTES_LITERAL("") : text, out);
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
