/* SPDX-License-Identifier: MIT */
/* See outputs.h.
 *
 * Every callback of the pool comes here. What it may find: an exchange that waits for its body or reads its
 * stream; none, because the client went away or another choice failed. Requests are cancelled when they are
 * wanted no more, and the generation is freed with the last of them. */

#include "gateway/answers/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amount.h"
#include "common/clock.h"
#include "common/log.h"
#include "gateway/answers/answer.h"
#include "gateway/core/gateway.h"

#define MAX_BODY_BYTES (64u << 20) /* of one answer that is not streamed */

/* Frees the request of a prompt that is not sent any more: in a fleet when the answer ends, for until then it
 * may be sent again. */
static void drop_encoded(struct generation *generation, uint32_t prompt)
{
    if (generation->encoded[prompt])
        budget_give(generation->bodies, quern_encoded_bytes(generation->encoded[prompt]));
    generation->encoded[prompt] = quern_encoded_free(generation->encoded[prompt]);
}

void generation_free(struct generation *generation)
{
    pulse_stop(&generation->gateway->pulses, &generation->pulse);
    for (uint32_t i = 0; i < generation->n; i++) {
        free(generation->choices[i].stop);
        buffer_deinit(&generation->choices[i].text);
        logprobs_deinit(&generation->choices[i].logprobs);
        answer_deinit(&generation->choices[i]);
    }
    arena_deinit(&generation->arena);
    json_decref(generation->schemas);
    dialect_deinit(&generation->model_dialect);
    json_out_deinit(&generation->out);
    for (uint32_t i = 0; i < generation->n_prompts && generation->encoded; i++)
        drop_encoded(generation, i);
    for (uint32_t i = 0; i < generation->n_prompts && generation->wishes; i++)
        free((void *)generation->wishes[i].pieces);
    free(generation->wishes);
    free(generation->encoded);
    if (!generation->admitted)
        key_not_used(generation->key);
    key_release(generation->key, generation->asked_tokens);
    free(generation->model);
    free(generation);
}

/* For the request log: what is known so far. */
static void note(struct generation *generation, const char *finish)
{
    struct request_record *record = &generation->exchange->record;
    snprintf(record->model, sizeof record->model, "%s", generation->model);
    record->finish = finish;
    record->stream = generation->stream;
    record->choices = generation->n;
    record->prompt_tokens = generation->prompt_tokens;
    record->cached_tokens = generation->cached_tokens;
    record->output_tokens = generation->output_tokens;
    record->queue_ms = generation->queue_ms;
    record->prefill_ms = generation->prefill_ms;
    record->prepare_ms = generation->prepare_ms;
    record->wait_ms = generation->wait_ms;
    record->lookup_ms = generation->lookup_ms;
    record->decode_ms = generation->decode_ms;
    if (generation->first_ns > 0)
        record->first_token_ms = (double)(generation->first_ns - generation->begun_ns) / CLOCK_NS_PER_MS;
}

/* Nobody wants it any more: asks for the end of what runs, and sends no more. */
static void abandon(struct generation *generation)
{
    pulse_stop(&generation->gateway->pulses, &generation->pulse);
    generation->exchange = NULL;
    generation->running -= generation->n - generation->sent;
    generation->sent = generation->n;
    for (uint32_t i = 0; i < generation->n_prompts; i++)
        drop_encoded(generation, i);
    for (uint32_t i = 0; i < generation->n; i++)
        if (generation->choices[i].running)
            carry_cancel(&generation->choices[i].carried);
}

void generation_gone(void *arg)
{
    struct generation *generation = arg;
    log_debug("%s: gone; %u choices are cancelled", generation->exchange->peer, generation->running);
    generation->gateway->counters.abandoned++;
    note(generation, NULL);
    abandon(generation);
}

void generation_fail(struct generation *generation, const struct refusal *refusal)
{
    struct exchange *exchange = generation->exchange;
    exchange_when_gone(exchange, NULL, NULL);
    note(generation, "error");
    abandon(generation);
    if (!generation->begun) {
        exchange_refuse(exchange, refusal);
        return;
    }
    request_record_error(&exchange->record, refusal->code, refusal->param, refusal->text);
    json_out_reset(&generation->out);
    generation->dialect->fail(generation, refusal, &generation->out);
    if (exchange_write(exchange, generation->out.buffer.data, generation->out.buffer.len))
        exchange_end(exchange);
}

static void fail_for_memory(struct generation *generation)
{
    struct refusal refusal;
    refusal_of_code(-ENOMEM, NULL, &refusal);
    generation_fail(generation, &refusal);
}

/* Each prompt counts once, and of its choices the one that found most in the cache. */
static void count_prompts(struct generation *generation)
{
    generation->prompt_tokens = generation->cached_tokens = 0;
    for (uint32_t i = 0; i < generation->n; i += generation->per_prompt) {
        uint32_t tokens = 0, cached = 0;
        for (uint32_t j = i; j < i + generation->per_prompt; j++) {
            const struct choice *choice = &generation->choices[j];
            tokens = choice->prompt_tokens > tokens ? choice->prompt_tokens : tokens;
            cached = choice->cached_tokens > cached ? choice->cached_tokens : cached;
        }
        generation->prompt_tokens += tokens;
        generation->cached_tokens += cached;
    }
}

static void count(struct choice *choice, const struct quern_end *end)
{
    struct generation *generation = choice->generation;
    choice->prompt_tokens = end->prompt_tokens;
    choice->cached_tokens = end->cached_tokens;
    choice->output_tokens = end->output_tokens;
    choice->drafted_tokens = end->drafted_tokens;
    choice->accepted_tokens = end->accepted_tokens;
    choice->prefill_ms = end->prefill_ms;
    choice->decode_ms = end->decode_ms;
    key_used_tokens(generation->key, end->prompt_tokens);
    count_prompts(generation);
    generation->output_tokens += end->output_tokens;
    generation->drafted_tokens += end->drafted_tokens;
    generation->accepted_tokens += end->accepted_tokens;
    if (end->queue_ms > generation->queue_ms)
        generation->queue_ms = end->queue_ms;
    if (end->prefill_ms > generation->prefill_ms) {
        generation->prefill_ms = end->prefill_ms;
        generation->prepare_ms = end->prepare_ms;
        generation->wait_ms = end->wait_ms;
        generation->lookup_ms = end->lookup_ms;
    }
    if (end->decode_ms > generation->decode_ms)
        generation->decode_ms = end->decode_ms;
}

static double seconds_since(uint64_t then)
{
    return (double)(clock_ns() - then) / CLOCK_NS_PER_S;
}

/* All of it has ended. */
static void count_generation(const struct generation *generation)
{
    struct counters *counters = &generation->gateway->counters;
    counters->prompt_tokens += generation->prompt_tokens;
    counters->cached_tokens += generation->cached_tokens;
    counters->output_tokens += generation->output_tokens;
    counters_add_seconds(&counters->queue, generation->queue_ms / 1000);
    counters_add_seconds(&counters->generation, seconds_since(generation->begun_ns));
    if (generation->output_tokens > generation->n)
        counters_add_seconds(&counters->between_tokens, generation->decode_ms / 1000 * generation->n /
                                                            (generation->output_tokens - generation->n));
}

static void ping(void *arg);

/* What is in `out` goes to the client; if it is anything, the next ping is a while off. False: the client is
 * gone. */
static bool write_out(struct generation *generation)
{
    const struct json_out *out = &generation->out;
    if (generation->dialect->ping && (out->buffer.len > 0 || !generation->pulse.fn))
        pulse_wait(&generation->gateway->pulses, &generation->pulse, PULSE_PING, ping, generation,
                   clock_ns());
    return exchange_write(generation->exchange, out->buffer.data, out->buffer.len);
}

static void ping(void *arg)
{
    struct generation *generation = arg;
    json_out_reset(&generation->out);
    json_out_text(&generation->out, generation->dialect->ping);
    if (generation->out.failed)
        fail_for_memory(generation);
    else
        write_out(generation);
}

/* Sends the head, and leaves in `out` what the stream begins with. False: the client is gone. */
static bool begin_stream(struct generation *generation)
{
    json_out_reset(&generation->out);
    if (generation->begun)
        return true;
    generation->begun = true;
    pulse_stop(&generation->gateway->pulses, &generation->pulse);
    exchange_stream(generation->exchange, generation->dialect->stream_type);
    if (!generation->exchange)
        return false;
    generation->dialect->begin(generation, &generation->out);
    return true;
}

/* The request was accepted a moment ago, and nobody has refused it since. */
static void send_head(void *arg)
{
    struct generation *generation = arg;
    if (!begin_stream(generation))
        return;
    if (generation->out.failed)
        fail_for_memory(generation);
    else
        write_out(generation);
}

static void tell_progress(struct choice *choice, const struct quern_progress *progress)
{
    struct generation *generation = choice->generation;
    if (!generation->exchange || !generation->dialect->progress || !begin_stream(generation))
        return;
    generation->dialect->progress(choice, progress, &generation->out);
    if (generation->out.failed)
        fail_for_memory(generation);
    else
        write_out(generation);
}

static void tell_stream(struct choice *choice, const struct quern_output *output)
{
    struct generation *generation = choice->generation;
    const struct dialect *dialect = generation->dialect;
    struct json_out *out = &generation->out;
    if (!begin_stream(generation))
        return;
    answer_take(choice, output, out);
    if (logprobs_any(&choice->logprobs))
        dialect->piece(choice, BYTES_LITERAL(""), out);
    if (output->end)
        dialect->end(choice, out);
    if (generation->running == 0)
        dialect->finish(generation, out);
    if (out->failed)
        fail_for_memory(generation);
    else if (write_out(generation) && generation->running == 0)
        exchange_end(generation->exchange);
}

/* Counts what a whole answer has come to, by so many bytes. False: it has been refused. */
static bool hold_more(struct generation *generation, size_t bytes)
{
    struct refusal refusal;
    if (generation->exchange->held + bytes > MAX_BODY_BYTES) {
        refuse(&refusal, 500, "too_large", NULL, "the answer has more than %s; stream it",
               amount_of_bytes(MAX_BODY_BYTES).text);
    } else if (exchange_hold(generation->exchange, bytes)) {
        return true;
    } else {
        exchange_no_room(&refusal);
    }
    if (generation->exchange) /* else it was refused when room was made */
        generation_fail(generation, &refusal);
    return false;
}

static void tell_whole(struct choice *choice, const struct quern_output *output, size_t logprob_bytes)
{
    struct generation *generation = choice->generation;
    struct json_out body = {0};
    if (!hold_more(generation, output->text_len + logprob_bytes + (output->end ? choice->echo.len : 0)))
        return;
    struct json_out none = {0};
    answer_take(choice, output, &none);
    if (none.failed) {
        fail_for_memory(generation);
        return;
    }
    if (generation->running > 0)
        return;
    generation->dialect->whole(generation, &body);
    exchange_reply_json(generation->exchange, 200, &body);
}

/* A limit that the gateway set itself is the pool's to who asked. */
static const char *limit_of(const struct generation *generation, const char *limit)
{
    return !generation->asked_limit && strcmp(limit, "max_tokens") == 0 ? "pool" : limit;
}

static void on_output(void *arg, const struct quern_output *output);

/* The pool that has another choice of the prompt already; NULL: none, or nobody knows. */
static const struct fleet_pool *pool_of_prompt(const struct generation *generation,
                                               const struct choice *choice)
{
    return choice->index % generation->per_prompt > 0 ? carry_pool(&choice[-1].carried) : NULL;
}

int generation_send(struct generation *generation, struct quern_error *err)
{
    const uint32_t n = generation->n;
    while (generation->sent < n) {
        struct choice *choice = &generation->choices[generation->sent];
        struct quern_encoded *encoded = generation->encoded[choice->prompt];
        const uint32_t under_way = generation->running - (n - generation->sent);
        const uint64_t seed = generation->seed + generation->sent;
        if (under_way > 0 && under_way >= generation->most_at_once)
            return 0;
        int r = carry_send(&generation->gateway->fleet, &choice->carried, &generation->wishes[choice->prompt],
                           pool_of_prompt(generation, choice), encoded, generation->has_seed ? &seed : NULL,
                           on_output, choice, err);
        if (r == -EAGAIN && under_way > 0)
            return 0; /* send_more goes on */
        if (r < 0)
            return r;
        choice->running = true;
        generation->sent++;
        if (generation->sent % generation->per_prompt == 0 && !fleet_is_many(&generation->gateway->fleet))
            drop_encoded(generation, choice->prompt);
    }
    return 0;
}

/* One has ended: sends the next. */
static void send_more(struct generation *generation)
{
    struct refusal refusal;
    struct quern_error err = {.text = ""};
    int r = generation_send(generation, &err);
    if (r == 0)
        return;
    refusal_of_code(r, err.text, &refusal);
    generation_fail(generation, &refusal);
}

/* The pool has accepted one of its requests. Only the first one's limits were counted before it. */
static void take_admitted(struct generation *generation, const struct quern_admitted *admitted)
{
    if (!generation->exchange)
        return;
    generation->exchange->quotas = quotas_of(generation->key, admitted->requests, admitted->tokens);
    if (generation->stream && !generation->begun && !generation->pulse.fn)
        pulse_wait(&generation->gateway->pulses, &generation->pulse, PULSE_HEAD, send_head, generation,
                   clock_ns());
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct choice *choice = arg;
    struct generation *generation = choice->generation;
    const size_t before = logprobs_bytes(&choice->logprobs);
    if (output->admitted) {
        generation->admitted = true;
        take_admitted(generation, output->admitted);
        return;
    }
    if (output->progress) {
        tell_progress(choice, output->progress);
        return;
    }
    generation->admitted |= output->n_ids > 0;
    key_used_tokens(generation->key, output->n_ids);
    if (generation->first_ns == 0 && output->n_ids > 0) {
        generation->first_ns = clock_ns();
        counters_add_seconds(&generation->gateway->counters.first_token, seconds_since(generation->begun_ns));
    }
    if (output->end) {
        choice->running = false;
        choice->reason = output->end->reason;
        choice->stop = output->end->stop[0] ? strdup(output->end->stop) : NULL;
        choice->limit = limit_of(generation, output->end->limit);
        generation->running--;
        count(choice, output->end);
    }
    if (generation->exchange) {
        struct refusal refusal;
        if (output->end && output->end->reason > QUERN_LENGTH) {
            refusal_of_end(output->end, &refusal);
            generation->exchange->quotas =
                quotas_of(generation->key, output->end->requests, output->end->tokens);
            generation_fail(generation, &refusal);
        } else if (!generation->untold && logprobs_add(&choice->logprobs, output) < 0) {
            fail_for_memory(generation);
        } else if (generation->stream) {
            tell_stream(choice, output);
        } else {
            tell_whole(choice, output, logprobs_bytes(&choice->logprobs) - before);
        }
    }
    if (output->end)
        send_more(generation);
    if (generation->exchange && generation->running == 0) {
        note(generation, choice_calls(choice)             ? "tool_calls"
                         : choice->reason == QUERN_LENGTH ? "length"
                                                          : "stop");
        exchange_hold_key(generation->exchange, generation->key, generation->asked_tokens);
        generation->key = NULL;
    }
    if (generation->running == 0) {
        count_generation(generation);
        generation_free(generation);
    }
}
