/* SPDX-License-Identifier: MIT */
/* Ollama's forms: a JSON object a line, streamed unless the client says otherwise. */

#include "gateway/forms/ollama/ollama.h"

#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "gateway/answers/answer.h"
#include "gateway/forms/conversation.h"
#include "gateway/forms/embeddings.h"
#include "gateway/core/gateway.h"
#include "gateway/forms/generation.h"
#include "gateway/forms/grammar.h"
#include "gateway/forms/models_list.h"
#include "gateway/forms/neutral.h"
#include "gateway/forms/thinking.h"
#include "gateway/tools/tools.h"

#define LATEST ":latest" /* what its clients put behind the name of a model */

int ollama_take_model(void *into, const struct json_row *row, const char *path, json_t *value,
                      struct refusal *refusal)
{
    struct parameters *parameters = into;
    size_t len = json_string_length(value), latest = strlen(LATEST);
    if (parameters_model(into, row, path, value, refusal) != 0)
        return REFUSED;
    if (len <= latest || strcmp(json_string_value(value) + len - latest, LATEST) != 0)
        return 0;
    char *name = arena_take(&parameters->arena, len - latest + 1, 1);
    if (!name)
        return refuse_memory(refusal);
    memcpy(name, json_string_value(value), len - latest);
    parameters->request.model = name;
    return 0;
}

/* clang-format off */
static const struct json_row option_rows[] = {
    {"num_predict", parameters_max_tokens, "-1: as many as there is room for", 0},
    {"temperature", parameters_number, "temperature", 0},
    {"top_k", neutral_top_k, NULL, 0},
    {"top_p", parameters_number, "top_p", 0},
    {"min_p", parameters_number, "min_p", 0},
    {"typical_p", parameters_number, "typical_p", 0},
    {"repeat_penalty", parameters_number, "repetition_penalty", 0},
    {"repeat_last_n", parameters_number, "repeat_last_n", 0},
    {"presence_penalty", parameters_number, "presence_penalty", 0},
    {"frequency_penalty", parameters_number, "frequency_penalty", 0},
    {"seed", parameters_seed, "-1: a random one", 0},
    {"stop", parameters_stop, NULL, 0},
    {"thinking_budget", thinking_budget, NULL, 0},
    /* How a model is loaded is the pool's business. */
    {"num_ctx", json_in_ignore, NULL, 0},
    {"num_keep", json_in_ignore, NULL, 0},
    {"num_batch", json_in_ignore, NULL, 0},
    {"num_gpu", json_in_ignore, NULL, 0},
    {"main_gpu", json_in_ignore, NULL, 0},
    {"num_thread", json_in_ignore, NULL, 0},
    {"use_mmap", json_in_ignore, NULL, 0},
    {"use_mlock", json_in_ignore, NULL, 0},
    {"numa", json_in_ignore, NULL, 0},
    {"low_vram", json_in_ignore, NULL, 0},
    {"num_gqa", json_in_ignore, NULL, 0},
    {"f16_kv", json_in_ignore, NULL, 0},
    {"logits_all", json_in_ignore, NULL, 0},
    {"embedding_only", json_in_ignore, NULL, 0},
    NEUTRAL_OLLAMA_OPTIONS,
    {0},
};
/* clang-format on */

static int take_options(void *into, const struct json_row *row, const char *path, json_t *value,
                        struct refusal *refusal)
{
    if (!json_is_object(value))
        return refuse_value(refusal, path, "%s is %s, not an object", path, json_in_kind(value));
    return json_in_take(into, option_rows, path, value, refusal);
}

/* How long the model stays loaded is the pool's business; 0 says that it is needed no more, and is repeated
 * where nothing else is asked for. */
static int take_keep_alive(void *into, const struct json_row *row, const char *path, json_t *value,
                           struct refusal *refusal)
{
    const char *text = json_string_value(value);
    ((struct parameters *)into)->unload =
        (json_is_number(value) && !(json_number_value(value) < 0) && !(json_number_value(value) > 0)) ||
        (text && strspn(text, "0") > 0 && strspn(text, "0smh") == strlen(text));
    return 0;
}

/* None, as clients say that the model is to be loaded. */
static int take_messages(void *into, const struct json_row *row, const char *path, json_t *value,
                         struct refusal *refusal)
{
    return json_is_array(value) && json_array_size(value) == 0
               ? 0
               : conversation_messages(into, row, path, value, refusal);
}

static int take_prompt(void *into, const struct json_row *row, const char *path, json_t *value,
                       struct refusal *refusal)
{
    return json_is_string(value) && json_string_length(value) == 0
               ? 0
               : parameters_prompt(into, row, path, value, refusal);
}

/* A prompt that does not fit is refused, and an answer ends with the context, whatever truncate and shift
 * say. */
#define COMMON_ROWS                                                                                          \
    {"model", ollama_take_model, NULL, 0}, {"options", take_options, NULL, 0},                               \
        {"stream", json_in_bool, NULL, offsetof(struct parameters, stream)},                                 \
        {"keep_alive", take_keep_alive, NULL, 0}, {"format", grammar_format, NULL, 0},                       \
        {"think", thinking_ollama, NULL, 0}, {"logprobs", neutral_only, "false", 0},                         \
        {"top_logprobs", neutral_only, "0", 0}, {"truncate", neutral_bool, NULL, 0},                         \
    {                                                                                                        \
        "shift", neutral_bool, NULL, 0                                                                       \
    }

const struct json_row ollama_chat_rows[] = {
    COMMON_ROWS, PARAMETERS_CACHE_ROWS, {"messages", take_messages, NULL, 0}, {"tools", tools_take, NULL, 0},
    {0},
};

const struct json_row ollama_generate_rows[] = {
    COMMON_ROWS,
    PARAMETERS_CACHE_ROWS,
    {"prompt", take_prompt, NULL, 0},
    {"system", conversation_system, NULL, 0},
    {"raw", json_in_bool, NULL, offsetof(struct parameters, raw)},
    {"special", json_in_bool, NULL, offsetof(struct parameters, request.special)},
    {"suffix", parameters_suffix, NULL, 0},
    {"template", json_in_unsupported, NULL, 0},
    {"context", json_in_unsupported, NULL, 0},
    {"images", json_in_unsupported, NULL, 0},
    {0},
};

const struct json_row ollama_embed_rows[] = {
    {"model", ollama_take_model, NULL, 0},
    {"input", embeddings_input, NULL, 0},
    {"dimensions", embeddings_dimensions, NULL, 0},
    {"truncate", neutral_bool, NULL, 0}, /* what does not fit is refused either way */
    {"options", take_options, NULL, 0},
    {"keep_alive", json_in_ignore, NULL, 0},
    {0},
};

static void write_time(int64_t seconds, struct json_out *out)
{
    char text[64];
    struct tm parts;
    time_t when = (time_t)seconds;
    gmtime_r(&when, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    json_out_name(out, text);
}

/* The calls from one on. */
static void write_calls(const struct choice *choice, size_t first, struct json_out *out)
{
    for (size_t i = first; i < choice->n_calls; i++) {
        json_out_text(out,
                      i > first ? ",{\"function\":{\"name\":" : ",\"tool_calls\":[{\"function\":{\"name\":");
        json_out_name(out, choice->calls[i].name);
        json_out_text(out, ",\"arguments\":");
        answer_write_object(&choice->calls[i], out);
        json_out_text(out, "}}");
    }
    json_out_text(out, choice->n_calls > first ? "]" : "");
}

/* A line up to what says whether it is the last, with the calls from one on. */
static void open_thought_line(const struct choice *choice, struct bytes text, struct bytes thought,
                              size_t first_call, struct json_out *out)
{
    const struct generation *generation = choice->generation;
    bool chat = generation->dialect->name[0] == 'c';
    json_out_text(out, "{\"model\":");
    json_out_name(out, generation->model);
    json_out_text(out, ",\"created_at\":");
    write_time(generation->created, out);
    json_out_text(out, chat ? ",\"message\":{\"role\":\"assistant\",\"content\":" : ",\"response\":");
    json_out_string(out, text);
    if (thought.len > 0) {
        json_out_text(out, ",\"thinking\":");
        json_out_string(out, thought);
    }
    if (chat)
        write_calls(choice, first_call, out);
    json_out_text(out, chat ? "}," : ",");
}

static void open_line(const struct choice *choice, struct bytes text, size_t first_call, struct json_out *out)
{
    open_thought_line(choice, text, BYTES_LITERAL(""), first_call, out);
}

static void nanoseconds(struct json_out *out, const char *name, double milliseconds)
{
    json_out_text(out, name);
    json_out_number(out, (int64_t)(milliseconds * 1e6));
}

static void last_line(const struct choice *choice, struct bytes text, size_t first_call, struct json_out *out)
{
    const struct generation *generation = choice->generation;
    open_thought_line(choice, text, (struct bytes){choice->thought.data, choice->thought.len}, first_call,
                      out);
    json_out_text(out, "\"done\":true,\"done_reason\":");
    json_out_name(out, choice->reason == QUERN_LENGTH ? "length" : "stop");
    choice_write_limit(choice, out);
    nanoseconds(
        out, ",\"total_duration\":", generation->queue_ms + generation->prefill_ms + generation->decode_ms);
    nanoseconds(out, ",\"load_duration\":", generation->queue_ms);
    json_out_text(out, ",\"prompt_eval_count\":");
    json_out_number(out, generation->prompt_tokens);
    nanoseconds(out, ",\"prompt_eval_duration\":", generation->prefill_ms);
    json_out_text(out, ",\"eval_count\":");
    json_out_number(out, generation->output_tokens);
    nanoseconds(out, ",\"eval_duration\":", generation->decode_ms);
    json_out_text(out, "}\n");
}

static void begin(struct generation *generation, struct json_out *out)
{
}

static void piece(struct choice *choice, struct bytes text, struct json_out *out)
{
    open_line(choice, text, choice->n_calls, out);
    json_out_text(out, "\"done\":false}\n");
}

static void thought(struct choice *choice, struct bytes text, struct json_out *out)
{
    open_thought_line(choice, BYTES_LITERAL(""), text, choice->n_calls, out);
    json_out_text(out, "\"done\":false}\n");
}

/* A call is told when it is whole: its arguments are an object. */
static void called(struct choice *choice, struct json_out *out)
{
    open_line(choice, BYTES_LITERAL(""), choice->n_calls - 1, out);
    json_out_text(out, "\"done\":false}\n");
}

static void end(struct choice *choice, struct json_out *out)
{
    last_line(choice, BYTES_LITERAL(""), choice->n_calls, out);
}

static void finish(struct generation *generation, struct json_out *out)
{
}

static void fail(struct generation *generation, const struct refusal *refusal, struct json_out *out)
{
    refusal_write(refusal, FAMILY_OLLAMA, out);
    json_out_text(out, "\n");
}

static void whole(struct generation *generation, struct json_out *out)
{
    const struct choice *choice = &generation->choices[0];
    last_line(choice, (struct bytes){choice->text.data, choice->text.len}, 0, out);
}

/* A request without a prompt asks for the model to be loaded, or unloaded. It is loaded. */
static void write_idle(const struct gateway *gateway, const struct parameters *parameters, bool chat,
                       struct json_out *out)
{
    json_out_text(out, "{\"model\":");
    json_out_name(out, gateway_model(gateway, parameters->request.model));
    json_out_text(out, ",\"created_at\":");
    write_time(time(NULL), out);
    json_out_text(out,
                  chat ? ",\"message\":{\"role\":\"assistant\",\"content\":\"\"}" : ",\"response\":\"\"");
    json_out_text(out, ",\"done\":true,\"done_reason\":");
    json_out_name(out, parameters->unload ? "unload" : "load");
    json_out_text(out, "}");
}

static void idle_chat(const struct gateway *gateway, const struct parameters *parameters,
                      struct json_out *out)
{
    write_idle(gateway, parameters, true, out);
}

static void idle_generate(const struct gateway *gateway, const struct parameters *parameters,
                          struct json_out *out)
{
    write_idle(gateway, parameters, false, out);
}

#define OLLAMA_DIALECT(path, idler)                                                                          \
    {                                                                                                        \
        .name = path, .stream_type = "application/x-ndjson", .begin = begin, .piece = piece,                 \
        .thought = thought, .end = end, .called = called, .finish = finish, .fail = fail, .whole = whole,    \
        .idle = idler,                                                                                       \
    }
static const struct dialect chat_dialect = OLLAMA_DIALECT("chat", idle_chat),
                            generate_dialect = OLLAMA_DIALECT("generate", idle_generate);

void ollama_handle_chat(struct exchange *exchange)
{
    generation_handle(exchange, ollama_chat_rows, "messages", true, &chat_dialect);
}

void ollama_handle_generate(struct exchange *exchange)
{
    generation_handle(exchange, ollama_generate_rows, "prompt", true, &generate_dialect);
}

static void begin_embeddings(const struct embeddings *embeddings, struct json_out *out)
{
    json_out_text(out, "{\"model\":");
    json_out_name(out, embeddings->model);
    json_out_text(out, ",\"embeddings\":[");
}

static void open_embedding(const struct embeddings *embeddings, size_t i, struct json_out *out)
{
    json_out_text(out, i ? "," : "");
}

static void end_embeddings(const struct embeddings *embeddings, struct json_out *out)
{
    json_out_text(out, "]");
    nanoseconds(
        out, ",\"total_duration\":", (double)(embeddings->ended_ns - embeddings->begun_ns) / CLOCK_NS_PER_MS);
    nanoseconds(out, ",\"load_duration\":", 0);
    json_out_text(out, ",\"prompt_eval_count\":");
    json_out_number(out, (int64_t)embeddings->prompt_tokens);
    json_out_text(out, "}");
}

static const struct embeddings_form embeddings_form = {
    .begin = begin_embeddings, .open = open_embedding, .close = "", .end = end_embeddings};

void ollama_handle_embed(struct exchange *exchange)
{
    embeddings_answer(exchange, ollama_embed_rows, &embeddings_form);
}

/* The form before /api/embed: one text, one embedding. */
static int take_embeddings_prompt(void *into, const struct json_row *row, const char *path, json_t *value,
                                  struct refusal *refusal)
{
    if (!json_is_string(value))
        return refuse_value(refusal, path, "%s is %s, not a string", path, json_in_kind(value));
    return embeddings_input(into, row, path, value, refusal);
}

static const struct json_row old_embeddings_rows[] = {
    {"model", ollama_take_model, NULL, 0},
    {"prompt", take_embeddings_prompt, NULL, 0},
    {"options", take_options, NULL, 0},
    {"keep_alive", json_in_ignore, NULL, 0},
    {0},
};

static void begin_old_embeddings(const struct embeddings *embeddings, struct json_out *out)
{
    json_out_text(out, "{\"embedding\":");
}

static void end_old_embeddings(const struct embeddings *embeddings, struct json_out *out)
{
    json_out_text(out, "}");
}

static const struct embeddings_form old_embeddings_form = {
    .begin = begin_old_embeddings, .open = open_embedding, .close = "", .end = end_old_embeddings};

void ollama_handle_embeddings(struct exchange *exchange)
{
    embeddings_answer(exchange, old_embeddings_rows, &old_embeddings_form);
}

static void write_model(const struct gateway *gateway, const struct pool_model *model, struct json_out *out)
{
    json_out_text(out, "{\"name\":");
    json_out_name(out, model->name);
    json_out_text(out, ",\"model\":");
    json_out_name(out, model->name);
    json_out_text(out, ",\"modified_at\":");
    write_time(gateway->started, out);
    json_out_text(out, ",\"size\":0,\"digest\":\"\",\"details\":{\"format\":\"gguf\"}}");
}

void ollama_handle_tags(struct exchange *exchange)
{
    models_list(exchange, "{\"models\":[", write_model, "]}");
}

void ollama_handle_version(struct exchange *exchange)
{
    struct json_out out = {0};
    json_out_text(&out, "{\"version\":\"" QUERN_VERSION "\"}");
    exchange_reply_json(exchange, 200, &out);
}
