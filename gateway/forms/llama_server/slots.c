/* SPDX-License-Identifier: MIT */
/* See slots.h.
 *
 * The broker knows which requests each worker has, not in which of its slots they are, so they are listed
 * from its first slot on, the oldest first; what a worker has beyond its slots waits there and is not shown.
 * Where the broker tells fewer requests than the worker decodes (it tells a client on TCP only its own), the
 * slots behind them are in use by unnamed ones. Nothing here is text of a client's, except, without keys, the
 * names that clients give their requests. With keys nothing at all is told of a request: it may be another
 * key's, and ids and counts of tokens would show how its answer grows. */

#include "gateway/forms/llama_server/slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/core/gateway.h"
#include "gateway/forms/questions/question.h"

#define MOST_REQUESTS 1024 /* of one answer of the broker */
#define TASK_DIGITS   12   /* of an id: a number that JSON's readers hold exactly */

/* A number for the request, as llama-server has it; the id is 32 hexadecimal digits. */
static int64_t task_of(const char *id)
{
    char digits[TASK_DIGITS + 1];
    snprintf(digits, sizeof digits, "%.*s", TASK_DIGITS, id);
    return (int64_t)strtoull(digits, NULL, 16);
}

static bool serves(const struct quern_worker *worker)
{
    return strcmp(worker->state, "ready") == 0 || strcmp(worker->state, "draining") == 0;
}

/* The next request of this worker from *at on, or NULL. Moves *at behind it. */
static const struct quern_request_status *next_of(const struct quern_status *status, const char *worker,
                                                  size_t *at)
{
    while (*at < status->n_requests) {
        const struct quern_request_status *request = &status->requests[(*at)++];
        if (strcmp(request->worker, worker) == 0)
            return request;
    }
    return NULL;
}

static void write_number(const char *name, int64_t number, struct json_out *out)
{
    json_out_text(out, name);
    json_out_number(out, number);
}

static void write_request(const struct quern_request_status *request, struct json_out *out)
{
    json_out_text(out, ",\"state\":");
    json_out_name(out, request->state);
    if (request->request_id[0]) {
        json_out_text(out, ",\"request_id\":");
        json_out_name(out, request->request_id);
    }
    write_number(",\"age_ms\":", (int64_t)request->age_ms, out);
    write_number(",\"next_token\":[{\"has_next_token\":true,\"n_decoded\":", (int64_t)request->tokens, out);
    json_out_text(out, "}]");
}

/* Appends the worker's slots; `told`: with the requests in them. Returns how many are free. */
static uint32_t write_worker(const struct quern_status *status, const struct quern_worker *worker, bool told,
                             int64_t *slot, struct json_out *out)
{
    uint32_t n_free = 0;
    size_t at = 0;
    for (uint32_t i = 0; i < worker->slots; i++) {
        const struct quern_request_status *request = next_of(status, worker->name, &at);
        const bool busy = request || i < worker->active;
        write_number(*slot > 0 ? ",{\"id\":" : "{\"id\":", *slot, out);
        write_number(",\"id_task\":", request && told ? task_of(request->id) : -1, out);
        write_number(",\"n_ctx\":", worker->context, out);
        json_out_text(out, ",\"is_processing\":");
        json_out_bool(out, busy);
        json_out_text(out, ",\"worker\":");
        json_out_name(out, worker->name);
        if (request && told)
            write_request(request, out);
        json_out_text(out, "}");
        n_free += !busy;
        ++*slot;
    }
    return n_free;
}

static bool fails_without_slot(const struct exchange *exchange)
{
    const char *value = exchange_argument(exchange, "fail_on_no_slot");
    return value && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
}

static void reply(struct exchange *exchange, const struct quern_answer *answer)
{
    const struct quern_status *status = answer->status;
    struct json_out out = {0};
    struct refusal refusal;
    int64_t slot = 0;
    uint32_t n_free = 0;
    json_out_text(&out, "[");
    for (size_t i = 0; i < status->n_workers; i++)
        if (serves(&status->workers[i]))
            n_free += write_worker(status, &status->workers[i], !exchange->key, &slot, &out);
    json_out_text(&out, "]");
    if (n_free > 0 || !fails_without_slot(exchange)) {
        exchange_reply_json(exchange, 200, &out);
        return;
    }
    json_out_deinit(&out);
    refuse(&refusal, 503, "no_slot_available", NULL, "all %lld slots are in use", (long long)slot);
    refusal.retry_after_s = 1;
    exchange_refuse(exchange, &refusal);
}

static const struct question_form slots_form = {.reply = reply};

void slots_handle(struct exchange *exchange)
{
    question_handle_requests(exchange, &slots_form, MOST_REQUESTS);
}
