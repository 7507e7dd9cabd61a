/* SPDX-License-Identifier: MIT */
/* From JSON to a request of libquern.
 *
 * Numbers go through quern_request_set as text, so that bounds and their words are in one place for the
 * command line, the library and HTTP. */

#include "gateway/core/parameters.h"

#include <stdio.h>
#include <string.h>

#include "common/number.h"
#include "gateway/http/keys.h"
#include "proto/message.h"

#define ARENA_BYTES (64u << 20)

void parameters_init(struct parameters *parameters)
{
    *parameters = (struct parameters){.n = 1, .arena = {.limit = ARENA_BYTES}};
    quern_request_init(&parameters->request);
}

bool parameters_count(struct parameters *parameters)
{
    if (!parameters->budget || !budget_take(parameters->budget, parameters->arena.used))
        return !parameters->budget;
    parameters->counted = parameters->arena.used;
    return true;
}

void parameters_deinit(struct parameters *parameters)
{
    if (parameters->budget)
        budget_give(parameters->budget, parameters->counted);
    arena_deinit(&parameters->arena);
    *parameters = (struct parameters){0};
}

/* Keys of several servers for one thing. */
static const char *const same[][3] = {{"max_tokens", "max_completion_tokens", "n_predict"},
                                      {"repetition_penalty", "repeat_penalty"},
                                      {"n", "n_cmpl"},
                                      {"content", "prompt"},
                                      {"add_special", "add_special_tokens"},
                                      {"parse_special", "special"}};

/* The value of a key; NULL: it says nothing of this, as null and −1 do, and 0 of n_predict, which has an
 * effect of its own. */
static const json_t *said(const json_t *object, const char *key)
{
    const json_t *value = key ? json_object_get(object, key) : NULL;
    const json_int_t least = key && strcmp(key, "n_predict") == 0 ? 1 : 0;
    const bool silent = json_is_null(value) || (json_is_integer(value) && json_integer_value(value) < least);
    return silent ? NULL : value;
}

/* Two such keys may say the same, and not one this and the other that. */
static int check_same(const json_t *object, struct refusal *refusal)
{
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const char *first = NULL;
        for (size_t j = 0; j < sizeof *same / sizeof **same; j++) {
            const json_t *value = said(object, same[i][j]);
            if (value && first && !json_equal(value, said(object, first)))
                return refuse_value(refusal, same[i][j],
                                    "%s and %s are the same parameter but have different values", first,
                                    same[i][j]);
            if (value && !first)
                first = same[i][j];
        }
    }
    return 0;
}

int parameters_read(struct parameters *parameters, const struct json_row *rows, struct bytes body,
                    struct refusal *refusal)
{
    json_t *json;
    if (json_in_parse(body.data, body.len, &json, refusal) != 0)
        return REFUSED;
    int r = json_in_take(parameters, rows, "", json, refusal);
    if (r == 0)
        r = check_same(json, refusal);
    json_decref(json);
    return r;
}

int parameters_out_of_memory(struct refusal *refusal)
{
    return refuse_memory(refusal);
}

void *parameters_memory(struct parameters *parameters, size_t n, size_t size)
{
    return arena_take(&parameters->arena, n > 0 ? n : 1, size);
}

const char *parameters_keep(struct parameters *parameters, const json_t *string)
{
    const size_t size = json_string_length(string) + 1;
    char *kept = parameters_memory(parameters, size, 1);
    return kept ? memcpy(kept, json_string_value(string), size) : NULL;
}

const char *parameters_keep_json(struct parameters *parameters, const json_t *json)
{
    const size_t len = json_dumpb(json, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
    char *kept = len > 0 ? parameters_memory(parameters, len + 1, 1) : NULL;
    bool written = kept && json_dumpb(json, kept, len, JSON_COMPACT | JSON_ENCODE_ANY) == len;
    return written ? kept : NULL;
}

/* Sets a number of the request; the reason names what the client called it. */
static int set(struct parameters *parameters, const char *name, const char *path, const char *text,
               struct refusal *refusal)
{
    struct quern_error err;
    if (quern_request_set(&parameters->request, name, text, &err) == 0)
        return 0;
    const char *reason = strstr(err.text, ": ");
    return refuse_value(refusal, path, "%s: %s", path, reason ? reason + 2 : err.text);
}

int parameters_number(void *into, const struct json_row *row, const char *path, json_t *value,
                      struct refusal *refusal)
{
    char text[48];
    if (json_is_integer(value))
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, sizeof text, "%.17g", json_real_value(value));
    else
        return refuse_value(refusal, path, "%s is %s, not a number", path, json_in_kind(value));
    return set(into, row->name, path, text, refusal);
}

int parameters_max_tokens(void *into, const struct json_row *row, const char *path, json_t *value,
                          struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (json_is_integer(value) && row->name &&
        (json_integer_value(value) == -1 || json_integer_value(value) == -2))
        return 0; /* "as many as there is room for": the default */
    int64_t number;
    if (json_in_integer(path, value, 1, INT32_MAX, &number, refusal) != 0)
        return REFUSED;
    parameters->request.max_tokens = (uint32_t)number;
    parameters->has_max_tokens = true;
    return 0;
}

/* One token is made, and not told. */
int parameters_n_predict(void *into, const struct json_row *row, const char *path, json_t *value,
                         struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (!json_is_integer(value) || json_integer_value(value) != 0)
        return parameters_max_tokens(into, row, path, value, refusal);
    parameters->warm_up = parameters->has_max_tokens = true;
    parameters->request.max_tokens = 1;
    return 0;
}

int parameters_priority(void *into, const struct json_row *row, const char *path, json_t *value,
                        struct refusal *refusal)
{
    int64_t number;
    if (json_in_integer(path, value, -KEYS_PRIORITY, KEYS_PRIORITY, &number, refusal) != 0)
        return REFUSED;
    ((struct parameters *)into)->request.priority = (int32_t)-number;
    return 0;
}

int parameters_seed(void *into, const struct json_row *row, const char *path, json_t *value,
                    struct refusal *refusal)
{
    struct parameters *parameters = into;
    int64_t number;
    struct error err = {0};
    if (json_is_string(value)) { /* of 64 bits, or from a language that has none of them */
        uint64_t seed;
        if (number_read(json_string_value(value), 0, UINT64_MAX, &seed, &err) < 0)
            return refuse_value(refusal, path, "%s: %s", path, err.text);
        parameters->request.seed = seed;
        parameters->request.has_seed = true;
        return 0;
    }
    if (json_in_integer(path, value, INT64_MIN, INT64_MAX, &number, refusal) != 0)
        return REFUSED;
    if (number == -1 || (number < 0 && row->name))
        return 0; /* a random one: llama-server and vLLM mean it so, and OpenAI's clients of them too */
    parameters->request.seed = (uint64_t)number;
    parameters->request.has_seed = true;
    return 0;
}

int parameters_model(void *into, const struct json_row *row, const char *path, json_t *value,
                     struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (!json_is_string(value))
        return refuse_value(refusal, path, "%s is %s, not a string", path, json_in_kind(value));
    if (json_string_length(value) == 0)
        return 0;
    parameters->request.model = parameters_keep(parameters, value);
    return parameters->request.model ? 0 : parameters_out_of_memory(refusal);
}

int parameters_cache_salt(void *into, const struct json_row *row, const char *path, json_t *value,
                          struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (!json_is_string(value))
        return refuse_value(refusal, path, "%s is %s, not a string", path, json_in_kind(value));
    if (json_string_length(value) == 0 || json_string_length(value) > KEYS_SALT_MOST)
        return refuse_value(refusal, path, "%s has %zu bytes; 1 to %d are allowed", path,
                            json_string_length(value), KEYS_SALT_MOST);
    parameters->request.cache_salt = parameters_keep(parameters, value);
    return parameters->request.cache_salt ? 0 : parameters_out_of_memory(refusal);
}

static int take_stop(struct parameters *parameters, const char *path, const json_t *value,
                     const char **ret_stop, struct refusal *refusal)
{
    if (!json_is_string(value))
        return refuse_value(refusal, path, "%s is %s, not a string", path, json_in_kind(value));
    if (json_string_length(value) == 0)
        return refuse_value(refusal, path, "%s is empty", path);
    *ret_stop = parameters_keep(parameters, value);
    return *ret_stop ? 0 : parameters_out_of_memory(refusal);
}

int parameters_stop(void *into, const struct json_row *row, const char *path, json_t *value,
                    struct refusal *refusal)
{
    struct parameters *parameters = into;
    bool is_array = json_is_array(value);
    size_t n = is_array ? json_array_size(value) : 1;
    if (n > PROTO_MAX_STOPS)
        return refuse_value(refusal, path, "%s has %zu strings; at most %d are allowed", path, n,
                            PROTO_MAX_STOPS);
    const char **stop = parameters_memory(parameters, n, sizeof *stop);
    if (!stop)
        return parameters_out_of_memory(refusal);
    for (size_t i = 0; i < n; i++) {
        char where[64];
        snprintf(where, sizeof where, is_array ? "%s[%zu]" : "%s", path, i);
        if (take_stop(parameters, where, is_array ? json_array_get(value, i) : value, &stop[i], refusal) != 0)
            return REFUSED;
    }
    parameters->request.stop = stop;
    parameters->request.n_stop = n;
    return 0;
}

int parameters_n(void *into, const struct json_row *row, const char *path, json_t *value,
                 struct refusal *refusal)
{
    int64_t number;
    if (json_in_integer(path, value, 1, PARAMETERS_MAX_CHOICES, &number, refusal) != 0)
        return REFUSED;
    ((struct parameters *)into)->n = (uint32_t)number;
    return 0;
}

int parameters_top_logprobs(void *into, const struct json_row *row, const char *path, json_t *value,
                            struct refusal *refusal)
{
    int64_t number;
    if (json_in_integer(path, value, 0, PROTO_MAX_LOGPROBS, &number, refusal) != 0)
        return REFUSED;
    ((struct parameters *)into)->top_logprobs = (uint32_t)number;
    return 0;
}

static const struct json_row stream_options_rows[] = {
    {"include_usage", json_in_bool, NULL, offsetof(struct parameters, include_usage)},
    {"include_obfuscation", json_in_ignore, NULL, 0},
    {0},
};

int parameters_stream_options(void *into, const struct json_row *row, const char *path, json_t *value,
                              struct refusal *refusal)
{
    if (!json_is_object(value))
        return refuse_value(refusal, path, "%s is %s, not an object", path, json_in_kind(value));
    return json_in_take(into, stream_options_rows, path, value, refusal);
}

int parameters_ids(struct parameters *parameters, const char *path, const json_t *value,
                   const int32_t **ret_ids, size_t *ret_n, struct refusal *refusal)
{
    const size_t n = json_array_size(value);
    if (n > PROTO_MAX_PROMPT_IDS)
        return refuse_value(refusal, path, "%s has %zu token ids; at most %u are allowed", path, n,
                            PROTO_MAX_PROMPT_IDS);
    int32_t *ids = parameters_memory(parameters, n, sizeof *ids);
    if (!ids)
        return parameters_out_of_memory(refusal);
    for (size_t i = 0; i < n; i++) {
        json_t *each = json_array_get(value, i);
        int64_t id = json_is_integer(each) ? json_integer_value(each) : -1;
        if (id < 0 || id > INT32_MAX) {
            char where[sizeof refusal->param];
            snprintf(where, sizeof where, "%s[%zu]", path, i);
            return json_in_integer(where, each, 0, INT32_MAX, &id, refusal);
        }
        ids[i] = (int32_t)id;
    }
    *ret_ids = ids;
    *ret_n = n;
    return 0;
}

int parameters_stop_ids(void *into, const struct json_row *row, const char *path, json_t *value,
                        struct refusal *refusal)
{
    struct quern_request *request = &((struct parameters *)into)->request;
    if (!json_is_array(value))
        return refuse_value(refusal, path, "%s is %s, not an array of token ids", path, json_in_kind(value));
    if (json_array_size(value) > PROTO_MAX_STOP_IDS)
        return refuse_value(refusal, path, "%s has %zu token ids; at most %d are allowed", path,
                            json_array_size(value), PROTO_MAX_STOP_IDS);
    return parameters_ids(into, path, value, &request->stop_ids, &request->n_stop_ids, refusal);
}

int parameters_prompt(void *into, const struct json_row *row, const char *path, json_t *value,
                      struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (json_is_array(value) && json_array_size(value) == 1 && json_is_string(json_array_get(value, 0)))
        value = json_array_get(value, 0);
    if (json_is_array(value) && json_array_size(value) > 0 && json_is_string(json_array_get(value, 0)))
        return refuse_value(refusal, path, "%s has %zu texts; only one is allowed", path,
                            json_array_size(value));
    if (json_is_array(value) && json_array_size(value) > 0)
        return parameters_ids(parameters, path, value, &parameters->request.ids, &parameters->request.n_ids,
                              refusal);
    if (!json_is_string(value))
        return refuse_value(refusal, path, "%s is %s, not a string or an array of token ids", path,
                            json_is_array(value) ? "empty" : json_in_kind(value));
    if (json_string_length(value) == 0)
        return refuse_value(refusal, path, "%s is empty", path);
    parameters->request.text = parameters_keep(parameters, value);
    parameters->request.text_len = json_string_length(value);
    return parameters->request.text ? 0 : parameters_out_of_memory(refusal);
}

/* Several texts, or several arrays of ids. */
static bool are_several(const json_t *value)
{
    const json_t *first = json_array_get(value, 0);
    return json_is_array(first) || (json_is_string(first) && json_array_size(value) > 1);
}

int parameters_prompts(void *into, const struct json_row *row, const char *path, json_t *value,
                       struct refusal *refusal)
{
    struct parameters *parameters = into;
    struct quern_request *request = &parameters->request;
    const size_t n = json_array_size(value);
    if (!are_several(value))
        return parameters_prompt(into, row, path, value, refusal);
    if (n > PARAMETERS_MAX_CHOICES)
        return refuse_value(refusal, path, "%s has %zu prompts; at most %d are allowed", path, n,
                            PARAMETERS_MAX_CHOICES);
    parameters->prompts = parameters_memory(parameters, n, sizeof *parameters->prompts);
    parameters->n_prompts = n;
    if (!parameters->prompts)
        return parameters_out_of_memory(refusal);
    for (size_t i = n; i-- > 0;) { /* the first last: it stays the request's */
        char where[64];
        snprintf(where, sizeof where, "%.24s[%zu]", path, i);
        request->text = NULL;
        request->ids = NULL;
        if (parameters_prompt(into, row, where, json_array_get(value, i), refusal) != 0)
            return REFUSED;
        parameters->prompts[i] =
            (struct prompt_in){request->text, request->text_len, request->ids, request->n_ids};
    }
    return 0;
}

int parameters_said(void *into, const struct json_row *row, const char *path, json_t *value,
                    struct refusal *refusal)
{
    if (!json_is_boolean(value))
        return refuse_value(refusal, path, "%s is %s, not a boolean", path, json_in_kind(value));
    *(enum said *)((char *)into + row->offset) = json_is_true(value) ? SAID_YES : SAID_NO;
    return 0;
}

int parameters_suffix(void *into, const struct json_row *row, const char *path, json_t *value,
                      struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (!json_is_string(value))
        return refuse_value(refusal, path, "%s is %s, not a string", path, json_in_kind(value));
    if (json_string_length(value) == 0)
        return 0; /* as clients say that there is none */
    parameters->request.suffix = parameters_keep(parameters, value);
    parameters->raw = true; /* no conversation */
    return parameters->request.suffix ? 0 : parameters_out_of_memory(refusal);
}

/* Whether the answer goes on where the last message ends: it does if that is a text of the assistant, as
 * llama-server has it, unless the client says otherwise, as vLLM's may. */
static int finish_turn(struct parameters *parameters, struct refusal *refusal)
{
    struct quern_request *request = &parameters->request;
    const struct quern_message *last =
        request->n_messages > 0 ? &request->messages[request->n_messages - 1] : NULL;
    bool can = last && strcmp(last->role, "assistant") == 0 && !last->tool_calls;
    if (parameters->continue_turn == SAID_YES && parameters->new_turn == SAID_YES)
        return refuse_value(refusal, "add_generation_prompt",
                            "continue_final_message and add_generation_prompt exclude each other");
    if (parameters->continue_turn == SAID_YES && !can)
        return refuse_value(refusal, "continue_final_message",
                            "continue_final_message: the last message is not text of the assistant");
    if (parameters->new_turn == SAID_NO && (!can || parameters->continue_turn == SAID_NO))
        return refuse_value(refusal, "add_generation_prompt",
                            "add_generation_prompt: only true is supported where no message is continued");
    request->continue_turn = can && parameters->continue_turn != SAID_NO && parameters->new_turn != SAID_YES;
    return 0;
}

static int finish_echo(const struct parameters *parameters, struct refusal *refusal)
{
    const struct quern_request *request = &parameters->request;
    const struct prompt_in only = {request->text, request->text_len, request->ids, request->n_ids};
    const struct prompt_in *prompts = parameters->prompts ? parameters->prompts : &only;
    const size_t n = parameters->prompts ? parameters->n_prompts : 1;
    size_t bytes = 0;
    if (parameters->wants_logprobs)
        return refuse(refusal, 400, "unsupported_parameter", "echo",
                      "echo: not supported together with logprobs, because the prompt has none");
    for (size_t i = 0; i < n; i++) {
        if (!prompts[i].text)
            return refuse(refusal, 400, "unsupported_parameter", "echo",
                          "echo: supported only for text prompts, not for token ids");
        bytes += prompts[i].text_len * parameters->n;
    }
    if (bytes <= PARAMETERS_MAX_ECHO)
        return 0;
    return refuse_value(refusal, "echo",
                        "echo: the prompts of all choices have %zu bytes; at most %zu are allowed", bytes,
                        PARAMETERS_MAX_ECHO);
}

/* Several prompts, and what goes with one only. */
static int finish_prompts(const struct parameters *parameters, struct refusal *refusal)
{
    if (parameters->prompts && parameters->n_prompts * parameters->n > PARAMETERS_MAX_CHOICES)
        return refuse_value(refusal, "prompt",
                            "prompt: %zu prompts of n = %u; at most %d answers are allowed",
                            parameters->n_prompts, parameters->n, PARAMETERS_MAX_CHOICES);
    if (parameters->request.suffix && (parameters->prompts || parameters->echo))
        return refuse_value(refusal, "suffix", "suffix: expected with one prompt, and without echo");
    return parameters->echo ? finish_echo(parameters, refusal) : 0;
}

/* The text before a gap, in one piece. */
static int finish_infill(struct parameters *parameters, struct refusal *refusal)
{
    struct quern_request *request = &parameters->request;
    const size_t len = parameters->before_len + parameters->line_len;
    char *text = parameters->infill ? parameters_memory(parameters, len + 1, 1) : NULL;
    if (!parameters->infill)
        return 0;
    if (!text)
        return parameters_out_of_memory(refusal);
    if (parameters->before_len > 0)
        memcpy(text, parameters->before, parameters->before_len);
    if (parameters->line_len > 0)
        memcpy(text + parameters->before_len, parameters->line, parameters->line_len);
    request->text = text;
    request->text_len = len;
    if (!request->suffix)
        request->suffix = "";
    return 0;
}

/* Whether one of the names between the spaces is among the samplers. */
static bool samples_by(const struct parameters *parameters, const char *names)
{
    for (const char *at = names; *at;) {
        const size_t len = strcspn(at, " ");
        char name[32];
        snprintf(name, sizeof name, " %.*s ", (int)len, at);
        if (strstr(parameters->samplers, name))
            return true;
        at += len + strspn(at + len, " ");
    }
    return false;
}

/* A sampler that is not in llama-server's list takes no part. */
static void finish_samplers(struct parameters *parameters)
{
    struct quern_request *request = &parameters->request;
    if (!parameters->samplers)
        return;
    if (!samples_by(parameters, "temperature temp t")) {
        request->temperature = 1;
        request->dynatemp_range = 0;
    }
    if (!samples_by(parameters, "top_n_sigma s"))
        request->top_n_sigma = 0;
    if (!samples_by(parameters, "typ_p typical_p typical-p y"))
        request->typical_p = 1;
    if (!samples_by(parameters, "xtc x"))
        request->xtc_probability = 0;
    if (!samples_by(parameters, "dry d"))
        request->dry_multiplier = 0;
    if (!samples_by(parameters, "top_k top-k k"))
        request->top_k = 0;
    if (!samples_by(parameters, "top_p top-p nucleus p"))
        request->top_p = 1;
    if (!samples_by(parameters, "min_p min-p m"))
        request->min_p = 0;
    if (!samples_by(parameters, "penalties e")) {
        request->repetition_penalty = 1;
        request->presence_penalty = request->frequency_penalty = 0;
    }
}

/* Tools that are not to be called are none, and they go with a conversation. */
static int finish_tools(struct parameters *parameters, struct refusal *refusal)
{
    if (parameters->tool_use == TOOLS_NONE)
        parameters->request.tools = NULL;
    if (parameters->request.tools && !parameters->request.messages)
        return refuse_value(refusal, "tools", "tools require messages");
    return 0;
}

static int finish_logprobs(struct parameters *parameters, struct refusal *refusal)
{
    if (parameters->top_logprobs > 0 && !parameters->wants_logprobs)
        return refuse_value(refusal, "top_logprobs", "top_logprobs needs logprobs to be true");
    parameters->request.logprobs = parameters->wants_logprobs ? 1 + parameters->top_logprobs : 0;
    parameters->request.pieces = parameters->wants_logprobs;
    return 0;
}

static int finish_penalties(const struct parameters *parameters, struct refusal *refusal)
{
    const struct quern_request *request = &parameters->request;
    const double none[] = {request->repetition_penalty - 1, request->presence_penalty,
                           request->frequency_penalty};
    for (size_t i = 0; i < sizeof none / sizeof *none && parameters->other_penalties; i++)
        if (none[i] < 0 || none[i] > 0)
            return refuse(refusal, 400, "unsupported_parameter", parameters->other_penalties,
                          "%s is not supported together with penalties, which always cover the whole text",
                          parameters->other_penalties);
    return 0;
}

int parameters_finish(struct parameters *parameters, const char *missing, struct refusal *refusal)
{
    struct quern_request *request = &parameters->request;
    if (finish_logprobs(parameters, refusal) != 0 || finish_tools(parameters, refusal) != 0 ||
        finish_penalties(parameters, refusal) != 0 || finish_turn(parameters, refusal) != 0 ||
        finish_infill(parameters, refusal) != 0 || finish_prompts(parameters, refusal) != 0)
        return REFUSED;
    finish_samplers(parameters);
    if (parameters->warm_up) /* whatever else says how many */
        request->max_tokens = 1;
    if (request->suffix && !request->text)
        return refuse_value(refusal, "suffix", "suffix requires a prompt that is text");
    bool as_user = parameters->chat && !parameters->raw && request->text;
    if (!request->text && !request->ids && !request->messages)
        return refuse_value(refusal, missing, "%s is missing", missing);
    bool has_system = parameters->system && parameters->system[0];
    if (has_system && !as_user && !request->messages)
        return refuse_value(refusal, "system", "system is not allowed with a raw prompt");
    if (!has_system && !as_user)
        return 0;
    struct quern_message *messages = parameters_memory(parameters, request->n_messages + 2, sizeof *messages);
    size_t n = 0;
    if (!messages)
        return parameters_out_of_memory(refusal);
    if (has_system)
        messages[n++] = (struct quern_message){.role = "system", .content = parameters->system};
    for (size_t i = 0; i < request->n_messages; i++)
        messages[n++] = request->messages[i];
    if (as_user)
        messages[n++] = (struct quern_message){.role = "user", .content = request->text};
    request->text = NULL;
    request->messages = messages;
    request->n_messages = n;
    return 0;
}
