/* SPDX-License-Identifier: MIT */
/* /tokenize and /detokenize: a question to a worker, which the client waits for as for an answer. A client
 * that goes away meanwhile leaves the question behind; its answer finds nobody. */

#include "gateway/forms/llama_server/tokenize.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/utf8.h"
#include "gateway/forms/body_reader.h"
#include "gateway/core/gateway.h"
#include "gateway/core/parameters.h"

#include <utlist.h>

#define ANSWER_MS 15000 /* a worker gives up after ten seconds */

/* What a question asks for. */
struct text_in {
    struct parameters parameters;
    bool add_special, with_pieces;
};

static const struct json_row detokenize_rows[] = {
    {"tokens", parameters_prompt, NULL, 0},
    {"model", parameters_model, NULL, 0},
    {"special", json_in_bool, NULL, offsetof(struct text_in, parameters.request.special)},
    {0},
};

static const struct json_row rows[] = {
    {"content", parameters_prompt, NULL, 0},
    {"prompt", parameters_prompt, NULL, 0},
    {"model", parameters_model, NULL, 0},
    {"add_special", json_in_bool, NULL, offsetof(struct text_in, add_special)},
    {"add_special_tokens", json_in_bool, NULL, offsetof(struct text_in, add_special)},
    {"parse_special", json_in_bool, NULL, offsetof(struct text_in, parameters.request.special)},
    {"special", json_in_bool, NULL, offsetof(struct text_in, parameters.request.special)},
    {"with_pieces", json_in_bool, NULL, offsetof(struct text_in, with_pieces)},
    {0},
};

struct question {
    struct exchange *exchange; /* NULL: gone */
    struct gateway *gateway;
    struct question *next, *prev; /* in gateway.questions */
    struct key *key;
    size_t bytes;
};

static void free_question(struct question *question)
{
    DL_DELETE(question->gateway->questions, question);
    keys_answered(&question->gateway->keys, question->key, question->bytes);
    free(question);
}

void tokenize_forget_all(struct gateway *gateway)
{
    while (gateway->questions)
        free_question(gateway->questions);
}

static void on_gone(void *arg)
{
    ((struct question *)arg)->exchange = NULL;
}

/* `{"id":…,"piece":…}`: a text, or the bytes of what is no whole text. */
static void write_piece(int32_t id, const struct quern_piece *piece, struct json_out *out)
{
    const struct bytes text = {piece->bytes, piece->len};
    json_out_text(out, "{\"id\":");
    json_out_number(out, id);
    json_out_text(out, ",\"piece\":");
    if (utf8_valid(text) == text.len) {
        json_out_string(out, text);
    } else {
        for (size_t i = 0; i < text.len; i++) {
            json_out_text(out, i ? "," : "[");
            json_out_number(out, ((const uint8_t *)text.data)[i]);
        }
        json_out_text(out, "]");
    }
    json_out_text(out, "}");
}

static void reply(struct exchange *exchange, const struct quern_answer *answer)
{
    struct json_out out = {0};
    if (answer->content) {
        json_out_text(&out, "{\"content\":");
        json_out_string(&out, (struct bytes){answer->content, answer->content_len});
        json_out_text(&out, "}");
        exchange_reply_json(exchange, 200, &out);
        return;
    }
    json_out_text(&out, "{\"tokens\":[");
    for (size_t i = 0; i < answer->n_ids; i++) {
        json_out_text(&out, i ? "," : "");
        if (answer->pieces)
            write_piece(answer->ids[i], &answer->pieces[i], &out);
        else
            json_out_number(&out, answer->ids[i]);
    }
    json_out_text(&out, "],\"count\":");
    json_out_number(&out, (int64_t)answer->n_ids);
    json_out_text(&out, "}");
    exchange_reply_json(exchange, 200, &out);
}

static void on_answer(void *arg, const struct quern_answer *answer)
{
    struct question *question = arg;
    struct refusal refusal;
    if (question->exchange && answer->code == 0) {
        reply(question->exchange, answer);
    } else if (question->exchange) {
        refusal_of_code(answer->code, answer->text, &refusal);
        exchange_refuse(question->exchange, &refusal);
    }
    free_question(question);
}

static int ask(struct exchange *exchange, const struct text_in *in, struct refusal *refusal)
{
    const struct quern_request *request = &in->parameters.request;
    struct quern *client = exchange->gateway->pool.client;
    const struct quern_text text = {.model = request->model,
                                    .text = request->text,
                                    .len = request->text_len,
                                    .special = request->special,
                                    .bare = !in->add_special,
                                    .pieces = in->with_pieces};
    const struct quern_ids ids = {request->model, request->ids, request->n_ids, request->special};
    struct quern_error err = {.text = ""};
    struct keys *keys = &exchange->gateway->keys;
    const size_t bytes = request->text ? request->text_len : request->n_ids * sizeof *request->ids;
    if (keys_ask(keys, exchange->key, bytes, refusal) != 0)
        return REFUSED;
    struct question *question = calloc(1, sizeof *question);
    int r = -ENOMEM;
    if (question) {
        *question = (struct question){exchange, exchange->gateway, .key = exchange->key, .bytes = bytes};
        DL_APPEND(exchange->gateway->questions, question);
        exchange_when_gone(exchange, on_gone, question);
        r = request->text ? quern_ask_tokenize(client, &text, ANSWER_MS, on_answer, question, &err)
                          : quern_ask_detokenize(client, &ids, ANSWER_MS, on_answer, question, &err);
    }
    if (r == 0)
        return 0;
    exchange_when_gone(exchange, NULL, NULL);
    if (question)
        free_question(question);
    else
        keys_answered(keys, exchange->key, bytes);
    refusal_of_code(r, err.text, refusal);
    return REFUSED;
}

/* A question while its body is being read. */
struct text_reading {
    struct body_reading reading;
    struct text_in in;
    bool ids;           /* it is about ids */
    const char *wanted; /* what there is to be of it */
};

static int finish(struct body_reading *reading, struct refusal *refusal)
{
    const struct text_reading *text = (const struct text_reading *)reading;
    const struct quern_request *request = &text->in.parameters.request;
    if (text->ids ? (const void *)request->ids : request->text)
        return 0;
    return refuse_value(refusal, text->wanted, "%s is missing, or no %s", text->wanted,
                        text->ids ? "array of token ids" : "text");
}

static void begin(struct body_reading *reading)
{
    struct text_reading *text = (struct text_reading *)reading;
    struct exchange *exchange = reading->exchange;
    const struct quern_request *request = &text->in.parameters.request;
    struct refusal refusal;
    if (exchange && (gateway_check(exchange->gateway, request->model, &refusal) != 0 ||
                     ask(exchange, &text->in, &refusal) != 0))
        exchange_refuse(exchange, &refusal);
    parameters_deinit(&text->in.parameters);
    free(text);
}

static void handle(struct exchange *exchange, const struct json_row *known, bool ids, const char *wanted)
{
    struct refusal refusal;
    struct text_reading *text = calloc(1, sizeof *text);
    if (!text) {
        parameters_out_of_memory(&refusal);
        exchange_refuse(exchange, &refusal);
        return;
    }
    parameters_init(&text->in.parameters);
    text->in.parameters.request.special = !ids; /* names of control tokens are written out on demand */
    text->ids = ids;
    text->wanted = wanted;
    text->reading =
        (struct body_reading){.rows = known, .into = &text->in.parameters, .finish = finish, .then = begin};
    body_read(exchange, &text->reading);
}

void tokenize_handle(struct exchange *exchange)
{
    handle(exchange, rows, false, "content");
}

void tokenize_handle_back(struct exchange *exchange)
{
    handle(exchange, detokenize_rows, true, "tokens");
}
