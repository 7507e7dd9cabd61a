/* SPDX-License-Identifier: MIT */
/* See generation.h. */

#include "gateway/forms/generation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/clock.h"
#include "common/hex.h"
#include "gateway/answers/answer.h"
#include "gateway/answers/outputs.h"
#include "gateway/forms/body_reader.h"
#include "gateway/core/gateway.h"
#include "gateway/forms/grammar.h"
#include "gateway/forms/turn.h"
#include "gateway/tools/tool_choice.h"

/* The requests of one answer that are under way have at most so many bytes, or there is one of them; the next
 * is sent when one ends. The pool's queue does not take all choices of a prompt of megabytes at once. */
#define MOST_BYTES_AT_ONCE ((size_t)16 << 20)

/* Copied, for it outlives the parameters; NULL of NULL, and without memory. */
static const char *keep_fields(struct generation *generation, const char *fields)
{
    char *kept = fields ? arena_take(&generation->arena, strlen(fields) + 1, 1) : NULL;
    return kept ? strcpy(kept, fields) : NULL;
}

static struct generation *new_generation(struct exchange *exchange, const struct parameters *parameters,
                                         const struct dialect *dialect)
{
    uint8_t random[16];
    struct generation *generation =
        calloc(1, sizeof *generation + parameters_choices(parameters) * sizeof generation->choices[0]);
    if (!generation)
        return NULL;
    dialect_init(&generation->model_dialect);
    generation->exchange = exchange;
    generation->gateway = exchange->gateway;
    generation->bodies = exchange_bodies(exchange);
    generation->dialect = dialect;
    generation->stream = parameters->stream;
    generation->include_usage = parameters->include_usage;
    generation->untold = parameters->warm_up;
    generation->created = time(NULL);
    generation->begun_ns = clock_ns();
    generation->n = generation->running = parameters_choices(parameters);
    generation->per_prompt = parameters->n;
    generation->n_prompts = generation->n / generation->per_prompt;
    generation->encoded = calloc(generation->n_prompts, sizeof *generation->encoded);
    generation->wishes = calloc(generation->n_prompts, sizeof *generation->wishes);
    generation->model = strdup(gateway_model(exchange->gateway, parameters->request.model));
    generation->response_fields = keep_fields(generation, parameters->response_fields);
    if (getrandom(random, sizeof random, 0) != sizeof random || !generation->model || !generation->encoded ||
        !generation->wishes || (parameters->response_fields && !generation->response_fields)) {
        generation_free(generation);
        return NULL;
    }
    hex_write(random, sizeof random, generation->id);
    return generation;
}

/* What a pool has to have for this prompt. */
static void make_wish(struct generation *generation, uint32_t prompt, const struct quern_request *request)
{
    const struct fleet *fleet = &generation->gateway->fleet;
    if (!fleet_is_many(fleet))
        return;
    generation->wishes[prompt] =
        (struct fleet_wish){.model = generation->model,
                            .pieces = wish_pieces(request, fleet->seed, fleet->space),
                            .tokens = wish_prompt_tokens(request),
                            .decode = wish_decode_tokens(request)};
}

/* Encodes the request of each prompt; the largest says how many may be under way. 0 or -errno. */
static int encode_prompts(struct generation *generation, const struct parameters *parameters,
                          struct quern_request *request, struct quern_error *err)
{
    size_t largest = 1;
    struct quern *client = fleet_client(&generation->gateway->fleet, generation->model);
    int r = client ? 0 : -EHOSTUNREACH;
    for (uint32_t i = 0; i < generation->n_prompts && r == 0; i++) {
        const struct prompt_in prompt =
            parameters->prompts
                ? parameters->prompts[i]
                : (struct prompt_in){request->text, request->text_len, request->ids, request->n_ids};
        request->text = prompt.text;
        request->text_len = prompt.text_len;
        request->ids = prompt.ids;
        request->n_ids = prompt.n_ids;
        request->part = i > 0; /* all of them count as one */
        if (parameters->echo)
            r = answer_keep_echo(generation, &prompt, i);
        if (r == 0)
            r = quern_encode(client, request, &generation->encoded[i], err);
        if (r < 0)
            break;
        make_wish(generation, i, request);
        const size_t bytes = quern_encoded_bytes(generation->encoded[i]);
        budget_force(generation->bodies, bytes); /* what it was read from counts no more after this */
        largest = bytes > largest ? bytes : largest;
    }
    generation->most_at_once = MOST_BYTES_AT_ONCE / largest;
    return r;
}

/* Encodes what choices share, and sends it for the first of them. Returns as send_some. */
static int begin(struct generation *generation, const struct parameters *parameters, struct quern_error *err)
{
    struct quern_request request = parameters->request;
    char salt[KEYS_SPACE_BYTES + KEYS_SALT_MOST + 1];
    request.tenant = key_tenant(generation->key);
    request.cache_salt =
        key_salt(generation->key, generation->gateway->options.share_prefixes, request.cache_salt, salt);
    key_set_rates(generation->key, &request);
    request.request_id = generation->exchange->request_id;
    request.tell_admitted = true;
    request.progress = request.progress && generation->stream;
    generation->asked_limit = parameters->has_max_tokens;
    generation->has_seed = request.has_seed;
    generation->seed = request.seed;
    if (fleet_is_many(&generation->gateway->fleet) && !generation->has_seed)
        generation->has_seed =
            getrandom(&generation->seed, sizeof generation->seed, 0) == sizeof generation->seed;
    for (uint32_t i = 0; i < generation->n; i++) {
        struct choice *choice = &generation->choices[i];
        choice->generation = generation;
        choice->index = i;
        choice->prompt = i / generation->per_prompt;
        choice->logprobs.form = generation->dialect->logprobs;
        if ((generation->finds_calls || generation->finds_thoughts) && answer_expect_parts(choice) < 0)
            return -ENOMEM;
    }
    int r = encode_prompts(generation, parameters, &request, err);
    return r < 0 ? r : generation_send(generation, err);
}

static void start(struct exchange *exchange, struct parameters *parameters, const struct dialect *dialect)
{
    struct refusal refusal;
    struct quern_error err = {.text = ""};
    if (gateway_check(exchange->gateway, parameters->request.model, &refusal) != 0 ||
        key_check_priority(exchange->key, exchange->gateway->options.open, parameters->request.priority,
                           &refusal) != 0) {
        exchange_refuse(exchange, &refusal);
        return;
    }
    struct model_dialect model_dialect;
    dialect_init(&model_dialect);
    if (turn_apply(exchange->gateway, parameters, &model_dialect, &refusal) != 0 ||
        turn_constrain(parameters, &model_dialect, &refusal) != 0 ||
        grammar_close(parameters, &refusal) != 0) {
        dialect_deinit(&model_dialect);
        exchange_refuse(exchange, &refusal);
        return;
    }
    struct generation *generation = new_generation(exchange, parameters, dialect);
    int kept = generation ? turn_expect(generation, parameters, &model_dialect) : -ENOMEM;
    dialect_deinit(&model_dialect);
    if (kept < 0) {
        if (generation)
            generation_free(generation);
        refusal_of_code(-ENOMEM, NULL, &refusal);
        exchange_refuse(exchange, &refusal);
        return;
    }
    uint64_t tokens = (uint64_t)parameters->request.max_tokens * parameters_choices(parameters);
    if (key_take(exchange->key, tokens, &refusal) != 0) {
        exchange->quotas = quotas_of(exchange->key, (struct quern_quota){0}, (struct quern_quota){0});
        generation_free(generation);
        exchange_refuse(exchange, &refusal);
        return;
    }
    generation->key = exchange->key;
    generation->asked_tokens = tokens;
    exchange_when_gone(exchange, generation_gone, generation);
    int r = begin(generation, parameters, &err);
    if (r == 0)
        return;
    refusal_of_code(r, err.text, &refusal);
    generation_fail(generation, &refusal);
    if (generation->running == 0)
        generation_free(generation);
}

/* ---- from the body to the requests ---- */

/* What a handler was asked, while the body is being read. */
struct generation_reading {
    struct body_reading reading;
    struct parameters parameters;
    const char *missing;
    const struct dialect *dialect;
};

/* Nothing is asked for, and the API has an answer to that. */
static bool is_idle(const struct generation_reading *prompt)
{
    const struct quern_request *request = &prompt->parameters.request;
    return prompt->dialect->idle && !request->text && !request->ids && !request->messages && !request->suffix;
}

static void reply_idle(const struct generation_reading *prompt, struct exchange *exchange)
{
    struct refusal refusal;
    struct json_out out = {0};
    if (gateway_check(exchange->gateway, prompt->parameters.request.model, &refusal) != 0) {
        exchange_refuse(exchange, &refusal);
        return;
    }
    prompt->dialect->idle(exchange->gateway, &prompt->parameters, &out);
    exchange_reply_json(exchange, 200, &out);
}

static int finish(struct body_reading *reading, struct refusal *refusal)
{
    const struct generation_reading *prompt = (const struct generation_reading *)reading;
    if (is_idle(prompt))
        return 0;
    int r = parameters_finish(reading->into, prompt->missing, refusal);
    return r == 0 ? tool_choice_finish(reading->into, refusal) : r;
}

static void on_read(struct body_reading *reading)
{
    struct generation_reading *prompt = (struct generation_reading *)reading;
    struct exchange *exchange = reading->exchange;
    struct parameters *parameters = &prompt->parameters;
    const bool idle = is_idle(prompt);
    if (exchange && !idle && !parameters->has_max_tokens) {
        parameters->request.max_tokens = gateway_max_tokens(exchange->gateway, parameters->request.model,
                                                            exchange->key, parameters_choices(parameters));
        parameters->request.fit_context = true;
    }
    if (exchange && idle)
        reply_idle(prompt, exchange);
    else if (exchange)
        start(exchange, parameters, prompt->dialect);
    parameters_deinit(parameters);
    free(prompt);
}

void generation_handle(struct exchange *exchange, const struct json_row *rows, const char *missing, bool chat,
                       const struct dialect *dialect)
{
    struct refusal refusal;
    struct generation_reading *prompt = calloc(1, sizeof *prompt);
    if (!prompt) {
        parameters_out_of_memory(&refusal);
        exchange_refuse(exchange, &refusal);
        return;
    }
    parameters_init(&prompt->parameters);
    prompt->parameters.chat = prompt->parameters.stream = chat;
    prompt->missing = missing;
    prompt->dialect = dialect;
    prompt->reading =
        (struct body_reading){.rows = rows, .into = &prompt->parameters, .finish = finish, .then = on_read};
    body_read(exchange, &prompt->reading);
}
