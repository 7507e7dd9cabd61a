/* SPDX-License-Identifier: MIT */
/* See embeddings.h.
 *
 * Inputs are sent in their order, MOST_AT_ONCE under way: enough for the workers to have something to do, and
 * few enough that a request with thousands of them leaves the session's share of the queue to others. When
 * one ends the next is sent, from inside its callback. All this lives until the last one has ended, which
 * may be after the exchange; where the vectors are the answer, until that has been taken. */

#include "gateway/forms/embeddings.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amount.h"
#include "common/clock.h"
#include "gateway/core/gateway.h"
#include "gateway/fleet/carry.h"
#include "gateway/forms/neutral.h"

#define MOST_AT_ONCE   32
#define MAX_BODY_BYTES (64u << 20) /* of one answer */
#define NUMBER_BYTES   16          /* of it, for a number written out, at most */
#define PART_BYTES     4096        /* of an answer, written at once; about */
#define PART_NUMBERS   48          /* the same; whole groups of base64: 3 bytes each */

struct embeddings_item {
    struct embeddings *owner;
    struct carried carried;
    struct quern_encoded *encoded; /* in a fleet: kept until its end */
    bool running;
};

static void free_embeddings(struct embeddings *e)
{
    if (e->key && !e->admitted)
        key_not_used(e->key);
    if (e->key)
        key_release(e->key, 0);
    parameters_deinit(&e->in.parameters);
    free(e->items);
    free(e->numbers);
    free(e->model);
    free(e);
}

/* For the request log: what is known so far. */
static void note(struct embeddings *e, const char *finish)
{
    struct request_record *record = &e->exchange->record;
    snprintf(record->model, sizeof record->model, "%s", e->model);
    record->finish = finish;
    record->choices = (uint32_t)e->in.n;
    record->prompt_tokens = (uint32_t)e->prompt_tokens;
    record->queue_ms = e->queue_ms;
    record->prefill_ms = e->prefill_ms;
}

/* Nobody wants them any more: asks for the end of what runs. */
static void abandon(struct embeddings *e)
{
    e->exchange = NULL;
    e->failed = true;
    free(e->numbers);
    e->numbers = NULL;
    parameters_deinit(&e->in.parameters); /* the inputs: no more are sent */
    for (size_t i = 0; i < e->sent; i++)
        if (e->items[i].running)
            carry_cancel(&e->items[i].carried);
}

static void on_gone(void *arg)
{
    struct embeddings *e = arg;
    e->gateway->counters.abandoned++;
    note(e, NULL);
    abandon(e);
}

static void fail(struct embeddings *e, const struct refusal *refusal)
{
    struct exchange *exchange = e->exchange;
    exchange_when_gone(exchange, NULL, NULL);
    note(e, "error");
    abandon(e);
    exchange_refuse(exchange, refusal);
}

/* ---- vectors ---- */

static int check_dimensions(const struct embeddings_in *in, uint32_t n_embedding, struct refusal *refusal)
{
    if (in->dimensions == 0 || in->dimensions == n_embedding)
        return 0;
    return refuse(refusal, 400, "unsupported_parameter", "dimensions",
                  "dimensions is %u, but the model's embeddings have %u numbers and cannot be shortened",
                  in->dimensions, n_embedding);
}

/* Memory for the vectors, of n numbers each. 0 or REFUSED. */
static int hold(struct embeddings *e, size_t n, struct refusal *refusal)
{
    struct stream_limits *limits = &e->gateway->streams;
    const size_t bytes = e->in.n * n * sizeof *e->numbers;
    const char *name = e->in.name ? e->in.name : "input";
    size_t most = MAX_BODY_BYTES / NUMBER_BYTES * sizeof *e->numbers;
    if (most > limits->unread.budget.most)
        most = limits->unread.budget.most;
    if (check_dimensions(&e->in, (uint32_t)n, refusal) != 0)
        return REFUSED;
    if (bytes > most)
        return refuse(refusal, 400, "too_large", name,
                      "%s has %s, of %zu numbers each; an answer can hold %zu", name,
                      amount_of(e->in.n, "text").text, n, most / sizeof *e->numbers / n);
    if (!exchange_hold(e->exchange, bytes)) {
        exchange_no_room(refusal);
        return REFUSED;
    }
    e->numbers = malloc(bytes);
    if (!e->numbers)
        return parameters_out_of_memory(refusal);
    e->n_embedding = (uint32_t)n;
    return 0;
}

/* Keeps a vector. 0 or REFUSED. */
static int keep(struct embeddings *e, size_t index, const struct quern_output *output,
                struct refusal *refusal)
{
    const size_t n = output->n_embedding;
    if (!e->numbers && hold(e, n, refusal) != 0)
        return REFUSED;
    if (n != e->n_embedding) /* another model of this name */
        return refuse(refusal, 503, "worker_lost", NULL,
                      "the pool began to serve another model during this request");
    memcpy(e->numbers + index * n, output->embedding, n * sizeof *e->numbers);
    return 0;
}

/* ---- the answer, written while it is taken ---- */

static void write_numbers(const float *numbers, uint32_t n, bool first, struct json_out *out)
{
    for (uint32_t i = 0; i < n; i++) {
        json_out_text(out, first && i == 0 ? "" : ",");
        json_out_real(out, (double)numbers[i]);
    }
}

/* As float 32, little-endian; at most PART_NUMBERS. */
static void write_base64(const float *numbers, uint32_t n, struct json_out *out)
{
    uint32_t bits[PART_NUMBERS];
    memcpy(bits, numbers, n * sizeof *bits);
    for (uint32_t i = 0; i < n; i++)
        bits[i] = htole32(bits[i]);
    json_out_base64(out, (struct bytes){bits, n * sizeof *bits});
}

/* The next few numbers of a vector, and what stands before and behind them. */
static void write_some(struct embeddings *e, struct json_out *out)
{
    const float *numbers = e->numbers + e->row * e->n_embedding + e->column;
    uint32_t n = e->n_embedding - e->column;
    if (n > PART_NUMBERS)
        n = PART_NUMBERS;
    if (e->column == 0) {
        e->form->open(e, e->row, out);
        json_out_text(out, e->in.base64 ? "\"" : "[");
    }
    if (e->in.base64)
        write_base64(numbers, n, out);
    else
        write_numbers(numbers, n, e->column == 0, out);
    e->column += n;
    if (e->column < e->n_embedding)
        return;
    json_out_text(out, e->in.base64 ? "\"" : "]");
    json_out_text(out, e->form->close);
    e->row++;
    e->column = 0;
}

static bool make(void *arg, struct json_out *out)
{
    struct embeddings *e = arg;
    if (e->row == 0 && e->column == 0)
        e->form->begin(e, out);
    while (e->row < e->in.n && out->buffer.len < PART_BYTES)
        write_some(e, out);
    if (e->row < e->in.n)
        return true;
    e->form->end(e, out);
    return false;
}

static void free_made(void *arg)
{
    free_embeddings(arg);
}

/* Answers with the vectors, and is the exchange's from here on; or with what is written of them. */
static void finish(struct embeddings *e)
{
    struct exchange *exchange = e->exchange;
    note(e, "stop");
    if (e->form->write) {
        struct json_out out = {0};
        e->form->write(e, &out);
        exchange_when_gone(exchange, NULL, NULL);
        exchange_hold_key(exchange, e->key, 0);
        e->key = NULL;
        exchange_reply_json(exchange, 200, &out);
        free_embeddings(e);
        return;
    }
    parameters_deinit(&e->in.parameters); /* the inputs */
    e->exchange = NULL;
    exchange_reply_made(exchange, 200, "application/json",
                        &(struct exchange_maker){.make = make, .free = free_made, .arg = e});
}

/* What was done, whatever became of it. */
static void count(struct embeddings *e)
{
    struct counters *counters = &e->gateway->counters;
    e->ended_ns = clock_ns();
    counters->prompt_tokens += e->prompt_tokens;
    counters_add_seconds(&counters->queue, e->queue_ms / 1000);
    counters_add_seconds(&counters->generation, (double)(e->ended_ns - e->begun_ns) / CLOCK_NS_PER_S);
}

/* ---- what is sent and comes ---- */

static void on_output(void *arg, const struct quern_output *output);

/* In a fleet each input goes to the pool that has least to do. */
static int send_item(struct embeddings *e, struct embeddings_item *item, const struct quern_request *request,
                     struct quern_error *err)
{
    struct fleet *fleet = &e->gateway->fleet;
    const struct fleet_wish wish = {.model = e->model, .tokens = wish_prompt_tokens(request)};
    struct quern *client = fleet_client(fleet, e->model);
    int r = client ? quern_encode(client, request, &item->encoded, err) : -EHOSTUNREACH;
    if (r == 0)
        r = carry_send(fleet, &item->carried, &wish, NULL, item->encoded, NULL, on_output, item, err);
    if (r < 0 || !fleet_is_many(fleet))
        item->encoded = quern_encoded_free(item->encoded);
    return r;
}

/* Sends what may be under way. 0 or the code of what failed. */
static int send_some(struct embeddings *e, struct quern_error *err)
{
    while (!e->failed && e->sent < e->in.n && e->running < MOST_AT_ONCE) {
        struct embeddings_item *item = &e->items[e->sent];
        const struct embeddings_input *input = &e->in.inputs[e->sent];
        struct quern_request request;
        quern_request_init(&request); /* what else may have been said means nothing here */
        request.special = false;
        request.model = e->in.parameters.request.model;
        request.embed = true;
        request.priority = e->in.parameters.request.priority;
        request.tenant = key_tenant(e->key);
        key_set_rates(e->key, &request);
        request.part = e->sent > 0; /* all inputs are one request */
        request.request_id = e->exchange->request_id;
        request.tell_admitted = e->sent == 0;
        request.text = input->text.data;
        request.text_len = input->text.len;
        request.document = input->document;
        request.ids = input->ids;
        request.n_ids = input->n_ids;
        item->owner = e;
        int r = send_item(e, item, &request, err);
        if (r == -EAGAIN && e->running > 0)
            return 0; /* when one of those has ended */
        if (r < 0)
            return r;
        item->running = true;
        e->sent++;
        e->running++;
    }
    return 0;
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct embeddings_item *item = arg;
    struct embeddings *e = item->owner;
    struct refusal refusal;
    struct quern_error err = {.text = ""};
    e->admitted |= output->admitted != NULL;
    if (output->admitted && e->exchange)
        e->exchange->quotas = quotas_of(e->key, output->admitted->requests, output->admitted->tokens);
    if (!output->end)
        return;
    item->running = false;
    item->encoded = quern_encoded_free(item->encoded);
    e->running--;
    e->prompt_tokens += output->end->prompt_tokens;
    key_used_tokens(e->key, output->end->prompt_tokens);
    e->queue_ms = output->end->queue_ms > e->queue_ms ? output->end->queue_ms : e->queue_ms;
    e->prefill_ms = output->end->prefill_ms > e->prefill_ms ? output->end->prefill_ms : e->prefill_ms;
    if (e->exchange && !output->embedding) {
        refusal_of_end(output->end, &refusal);
        if (item == e->items)
            e->exchange->quotas = quotas_of(e->key, output->end->requests, output->end->tokens);
        if (e->in.ranks)
            ranking_name_pair(&e->pairs, (size_t)(item - e->items), &refusal);
        else
            embeddings_name_input(&e->in, (size_t)(item - e->items), &refusal);
        fail(e, &refusal);
    } else if (e->exchange && keep(e, (size_t)(item - e->items), output, &refusal) != 0) {
        if (e->exchange) /* else it was refused when room was made */
            fail(e, &refusal);
    }
    int r = send_some(e, &err);
    if (r < 0 && e->exchange) {
        refusal_of_code(r, err.text, &refusal);
        fail(e, &refusal);
    }
    if (e->running > 0)
        return;
    count(e);
    if (e->exchange)
        finish(e);
    else
        free_embeddings(e);
}

/* ---- the request ---- */

/* Whether the model does what is asked for; while nothing is known of it, the pool will say. */
static int check_model(const struct pool_model *model, const struct embeddings_in *in,
                       struct refusal *refusal)
{
    if (!model || model->ranks == in->ranks || (!model->ranks && model->ready == 0))
        return 0;
    if (in->ranks)
        return refuse(refusal, 400, "unsupported", "model",
                      "the model \"%.128s\" does not rank texts: its file has no pooling_type rank",
                      model->name);
    return refuse(
        refusal, 400, "unsupported", "model",
        "the model \"%.128s\" ranks pairs of texts (/v1/rerank and /v1/score) and cannot make embeddings",
        model->name);
}

/* Whether the pairs are no more than other inputs of a body can be: a query is in each of its pairs. */
static int check_pairs(const struct embeddings *e, struct refusal *refusal)
{
    const size_t most = e->gateway->body_bytes, bytes = e->in.ranks ? e->pairs.bytes : 0;
    if (bytes <= most)
        return 0;
    return refuse(refusal, 413, "too_large", e->in.name,
                  "the pairs of %s and %s have %s together, counting the query in each; at most %s are "
                  "allowed, as for a request body",
                  e->pairs.queries.name, e->pairs.documents.name, amount_of_bytes(bytes).text,
                  amount_of_bytes(most).text);
}

static int check(const struct embeddings *e, const struct key *key, struct refusal *refusal)
{
    const struct gateway *gateway = e->gateway;
    const struct embeddings_in *in = &e->in;
    if (in->n == 0)
        return refuse_value(refusal, "input", "input is missing");
    if (gateway_check(gateway, in->parameters.request.model, refusal) != 0 ||
        key_check_priority(key, gateway->options.open, in->parameters.request.priority, refusal) != 0 ||
        check_pairs(e, refusal) != 0)
        return REFUSED;
    const struct pool_model *model = fleet_model(&gateway->fleet, in->parameters.request.model);
    if (check_model(model, in, refusal) != 0)
        return REFUSED;
    return model && model->embedding > 0 ? check_dimensions(in, model->embedding, refusal) : 0;
}

/* The body has been read. */
static void begin(struct body_reading *reading)
{
    struct embeddings *e = (struct embeddings *)((char *)reading - offsetof(struct embeddings, reading));
    struct exchange *exchange = reading->exchange;
    struct refusal refusal;
    struct quern_error err = {.text = ""};
    int r = exchange ? check(e, exchange->key, &refusal) : 0;
    if (exchange && r == 0) {
        e->items = calloc(e->in.n, sizeof *e->items);
        e->model = strdup(gateway_model(e->gateway, e->in.parameters.request.model));
        r = e->items && e->model ? key_take(exchange->key, 0, &refusal) : parameters_out_of_memory(&refusal);
    }
    if (!exchange || r != 0) {
        if (exchange)
            exchange_refuse(exchange, &refusal);
        free_embeddings(e);
        return;
    }
    e->exchange = exchange;
    e->key = exchange->key;
    exchange_when_gone(exchange, on_gone, e);
    r = send_some(e, &err);
    if (r == 0)
        return;
    refusal_of_code(r, err.text, &refusal);
    fail(e, &refusal);
    if (e->running == 0)
        free_embeddings(e);
}

static int on_read(struct body_reading *reading, struct refusal *refusal)
{
    struct embeddings *e = (struct embeddings *)((char *)reading - offsetof(struct embeddings, reading));
    return e->form->finish ? e->form->finish(&e->in, refusal) : 0;
}

void embeddings_answer(struct exchange *exchange, const struct json_row *rows,
                       const struct embeddings_form *form)
{
    struct embeddings *e = calloc(1, sizeof *e);
    if (!e) {
        struct refusal refusal;
        parameters_out_of_memory(&refusal);
        exchange_refuse(exchange, &refusal);
        return;
    }
    e->gateway = exchange->gateway;
    e->form = form;
    e->begun_ns = clock_ns();
    e->reading =
        (struct body_reading){.rows = rows, .into = &e->in.parameters, .finish = on_read, .then = begin};
    parameters_init(&e->in.parameters);
    body_read(exchange, &e->reading);
}

/* ---- OpenAI's form ---- */

static void openai_begin(const struct embeddings *e, struct json_out *out)
{
    json_out_text(out, "{\"object\":\"list\",\"data\":[");
}

static void openai_open(const struct embeddings *e, size_t i, struct json_out *out)
{
    json_out_text(out, i ? "," : "");
    json_out_text(out, "{\"object\":\"embedding\",\"index\":");
    json_out_number(out, (int64_t)i);
    json_out_text(out, ",\"embedding\":");
}

void embeddings_write_usage(const struct embeddings *e, struct json_out *out)
{
    json_out_text(out, ",\"usage\":{\"prompt_tokens\":");
    json_out_number(out, (int64_t)e->prompt_tokens);
    json_out_text(out, ",\"total_tokens\":");
    json_out_number(out, (int64_t)e->prompt_tokens);
    json_out_text(out, "}");
}

static void openai_end(const struct embeddings *e, struct json_out *out)
{
    json_out_text(out, "],\"model\":");
    json_out_name(out, e->model);
    embeddings_write_usage(e, out);
    json_out_text(out, "}");
}

static const struct embeddings_form openai_form = {
    .begin = openai_begin, .open = openai_open, .close = "}", .end = openai_end};

const struct json_row embeddings_rows[] = {
    {"input", embeddings_input, NULL, 0},
    {"model", parameters_model, NULL, 0},
    {"encoding_format", embeddings_format, NULL, 0},
    {"dimensions", embeddings_dimensions, NULL, 0},
    {"user", json_in_ignore, NULL, 0},
    {"add_special_tokens", neutral_only, "true", 0},
    {"normalize", neutral_only, "true", 0},
    {"embd_normalize", neutral_only, "2", 0}, /* Euclidean */
    {"truncate_prompt_tokens", neutral_only, "", 0},
    {"priority", parameters_priority, NULL, 0},
    {0},
};

void embeddings_handle(struct exchange *exchange)
{
    embeddings_answer(exchange, embeddings_rows, &openai_form);
}
