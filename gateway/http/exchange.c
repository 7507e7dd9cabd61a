/* SPDX-License-Identifier: MIT */
/* See exchange.h. libmicrohttpd reads a stream through read_stream when its socket takes bytes. It does not
 * look at suspended connections at all, not even whether they still stand: the server does that. */

#include "gateway/http/exchange.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amount.h"
#include "common/clock.h"
#include "common/log.h"
#include "gateway/http/keys.h"

#include <utlist.h>

/* An empty buffer larger than this is given back: a stream that was behind once does not keep the memory. */
#define KEEP_BYTES (16u << 10)

/* Of bodies that are made while they are taken, in one turn of the loop: 20,000 numbers, some milliseconds.
 */
#define MADE_AT_ONCE (256u << 10)

#define MOST_AT_ONCE (32u << 10) /* of an answer, to be sent at once */

#define SEVERAL 4 /* times its bound may wait in a stream while sockets still take something */

struct exchange *exchange_new(struct MHD_Connection *connection, struct stream_limits *limits)
{
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        return NULL;
    exchange->connection = connection;
    exchange->limits = limits;
    exchange->begun_ns = clock_ns();
    unread_begin(&limits->unread, &exchange->unread);
    return exchange;
}

/* Drops what waits to be taken. */
static void drop_out(struct exchange *exchange)
{
    unread_give(&exchange->limits->unread, &exchange->unread, exchange->out.len);
    exchange->taken = 0;
    buffer_deinit(&exchange->out);
}

static void free_maker(struct exchange *exchange)
{
    if (exchange->maker.make) {
        DL_DELETE2(exchange->limits->makers, exchange, maker_prev, maker_next);
        exchange->maker.free(exchange->maker.arg);
        exchange->maker = (struct exchange_maker){0};
    }
    json_out_deinit(&exchange->made);
}

static void release_held(struct exchange *exchange)
{
    unread_give(&exchange->limits->unread, &exchange->unread, exchange->held);
    exchange->held = 0;
}

struct exchange *exchange_free(struct exchange *exchange)
{
    if (!exchange)
        return NULL;
    exchange_lost(exchange);
    if (exchange->late)
        DL_DELETE(exchange->limits->late, exchange);
    if (exchange->response)
        MHD_destroy_response(exchange->response);
    free_maker(exchange);
    buffer_deinit(&exchange->body);
    drop_out(exchange);
    release_held(exchange);
    unread_end(&exchange->limits->unread, &exchange->unread);
    key_release(exchange->held_key, exchange->held_tokens);
    free(exchange->refusal);
    free(exchange);
    return NULL;
}

void exchange_hold_key(struct exchange *exchange, struct key *key_take, uint64_t tokens)
{
    exchange->held_key = key_take;
    exchange->held_tokens = tokens;
}

static void resume(struct exchange *exchange)
{
    if (!exchange->suspended)
        return;
    exchange->suspended = false;
    MHD_resume_connection(exchange->connection);
}

void exchange_suspend(struct exchange *exchange)
{
    exchange->suspended = true;
    MHD_suspend_connection(exchange->connection);
}

void exchange_when_gone(struct exchange *exchange, void (*fn)(void *arg), void *arg)
{
    exchange->on_gone = fn;
    exchange->arg = arg;
}

void exchange_lost(struct exchange *exchange)
{
    void (*fn)(void *) = exchange->on_gone;
    exchange->gone = true;
    exchange->on_gone = NULL;
    resume(exchange);
    if (fn)
        fn(exchange->arg);
}

const char *exchange_request_header(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

const char *exchange_argument(const struct exchange *exchange, const char *name)
{
    const char *value = NULL;
    const size_t len = strlen(name);
    if (MHD_lookup_connection_value_n(exchange->connection, MHD_GET_ARGUMENT_KIND, name, len, &value, NULL) !=
        MHD_YES)
        return NULL;
    return value ? value : "";
}

/* ---- clients that read too slowly ---- */

/* Ends it before its answer has been taken. */
static void cut(struct exchange *exchange, const char *what)
{
    log_warn("%s: %s %s (%s) cut off: %s, %s not sent", exchange->peer, exchange->method, exchange->path,
             exchange->request_id, what,
             amount_of_bytes(exchange->out.len - exchange->taken + exchange->held).text);
    exchange->limits->cut++;
    exchange_lost(exchange);
    exchange->unread.state = UNREAD_ENDED;
    free_maker(exchange);
    drop_out(exchange);
    release_held(exchange);
}

void exchange_no_room(struct refusal *refusal)
{
    refuse(refusal, 429, "rate_limit_exceeded", NULL, "too much output is waiting for clients to read it");
    refusal->retry_after_s = 1;
}

static void refuse_for_room(struct exchange *exchange)
{
    struct refusal refusal;
    exchange_no_room(&refusal);
    exchange_refuse(exchange, &refusal);
}

void exchange_displace(struct unread_share *share)
{
    struct exchange *exchange = (struct exchange *)((char *)share - offsetof(struct exchange, unread));
    void (*fn)(void *) = exchange->on_gone;
    if (exchange->state != EXCHANGE_WORKING) {
        cut(exchange, "all clients together read too slowly");
        return;
    }
    /* It has no reader yet, so its client is told. */
    exchange->on_gone = NULL;
    release_held(exchange);
    if (fn)
        fn(exchange->arg);
    refuse_for_room(exchange);
}

bool exchange_hold(struct exchange *exchange, size_t bytes)
{
    if (!unread_take(&exchange->limits->unread, &exchange->unread, bytes, false))
        return false;
    exchange->held += bytes;
    return true;
}

/* ---- answers ---- */

static void answer(struct exchange *exchange, unsigned status, const char *content_type,
                   struct MHD_Response *response)
{
    char seconds[16];
    exchange->on_gone = NULL;
    exchange->state = EXCHANGE_ANSWERED;
    exchange->status = status;
    exchange->response = response;
    if (!response) { /* no memory: the connection ends */
        exchange_lost(exchange);
        return;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    if (exchange->retry_after_s > 0) {
        snprintf(seconds, sizeof seconds, "%u", exchange->retry_after_s);
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    resume(exchange);
}

static ssize_t read_stream(void *cls, uint64_t at, char *ret_data, size_t most)
{
    struct exchange *exchange = cls;
    size_t n = exchange->out.len - exchange->taken;
    if (exchange->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (n == 0 && exchange->out_over)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        exchange_suspend(exchange);
        return 0;
    }
    if (n > most)
        n = most;
    memcpy(ret_data, exchange->out.data + exchange->taken, n);
    exchange->taken += n;
    exchange->unread.taken += n;
    if (exchange->taken == exchange->out.len) {
        if (exchange->out.cap > KEEP_BYTES)
            drop_out(exchange);
        unread_give(&exchange->limits->unread, &exchange->unread, exchange->out.len);
        exchange->out.len = exchange->taken = 0;
    }
    return (ssize_t)n;
}

void exchange_reply(struct exchange *exchange, unsigned status, const char *content_type,
                    struct buffer *body_take)
{
    const size_t len = body_take->len;
    release_held(exchange);
    if (len <= KEEP_BYTES) {
        unread_force(&exchange->limits->unread, &exchange->unread, len);
    } else if (!unread_take(&exchange->limits->unread, &exchange->unread, len, false)) {
        buffer_deinit(body_take);
        refuse_for_room(exchange);
        return;
    }
    exchange->out = *body_take;
    exchange->out_over = true;
    unread_offer(&exchange->unread);
    *body_take = (struct buffer){0};
    answer(exchange, status, content_type,
           MHD_create_response_from_callback(len, len > 0 && len < MOST_AT_ONCE ? len : MOST_AT_ONCE,
                                             read_stream, exchange, NULL));
}

void exchange_reply_lasting(struct exchange *exchange, unsigned status, const char *content_type,
                            struct bytes body, const struct exchange_header *headers, size_t n_headers)
{
    /* libmicrohttpd only reads what is persistent. */
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body.len, (void *)(uintptr_t)body.data, MHD_RESPMEM_PERSISTENT);
    for (size_t i = 0; response && i < n_headers; i++)
        MHD_add_response_header(response, headers[i].name, headers[i].value);
    answer(exchange, status, content_type, response);
}

void exchange_reply_json(struct exchange *exchange, unsigned status, struct json_out *json_take)
{
    if (json_take->failed) {
        struct refusal refusal;
        json_out_deinit(json_take);
        refuse_memory(&refusal);
        refusal_write(&refusal, exchange->family, json_take);
        status = 500;
    }
    exchange_reply(exchange, status, "application/json", &json_take->buffer);
    *json_take = (struct json_out){0};
}

static ssize_t read_made(void *cls, uint64_t at, char *ret_data, size_t most)
{
    struct exchange *exchange = cls;
    struct stream_limits *limits = exchange->limits;
    struct json_out *made = &exchange->made;
    if (exchange->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (exchange->made_taken == made->buffer.len && !exchange->made_over) {
        if (limits->made >= MADE_AT_ONCE) {
            limits->paced = true;
            exchange_suspend(exchange);
            return 0;
        }
        json_out_reset(made);
        exchange->made_taken = 0;
        exchange->made_over = !exchange->maker.make(exchange->maker.arg, made);
        limits->made += made->buffer.len;
        if (made->failed)
            return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    size_t n = made->buffer.len - exchange->made_taken;
    if (n == 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n > most)
        n = most;
    memcpy(ret_data, made->buffer.data + exchange->made_taken, n);
    exchange->made_taken += n;
    exchange->unread.taken += n;
    return (ssize_t)n;
}

void exchange_reply_made(struct exchange *exchange, unsigned status, const char *content_type,
                         const struct exchange_maker *maker)
{
    exchange->maker = *maker;
    unread_offer(&exchange->unread);
    DL_APPEND2(exchange->limits->makers, exchange, maker_prev, maker_next);
    answer(exchange, status, content_type,
           MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_made, exchange, NULL));
}

void exchange_make_on(struct stream_limits *limits)
{
    struct exchange *exchange;
    limits->made = 0;
    if (!limits->paced)
        return;
    limits->paced = false;
    DL_FOREACH2(limits->makers, exchange, maker_next)
    {
        resume(exchange);
    }
}

void exchange_refuse(struct exchange *exchange, const struct refusal *refusal)
{
    struct json_out out = {0};
    refusal_write(refusal, exchange->family, &out);
    exchange->retry_after_s = refusal->retry_after_s;
    request_record_error(&exchange->record, refusal->code, refusal->param, refusal->text);
    exchange_reply_json(exchange, refusal->status, &out);
}

void exchange_stream(struct exchange *exchange, const char *content_type)
{
    void (*on_gone)(void *) = exchange->on_gone;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream, exchange, NULL);
    if (response) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
        /* A proxy in between is to hand every event on at once. */
        MHD_add_response_header(response, "X-Accel-Buffering", "no");
    }
    answer(exchange, 200, content_type, response);
    if (response) {
        exchange->state = EXCHANGE_STREAMING;
        exchange->on_gone = on_gone;
    } else if (on_gone) {
        on_gone(exchange->arg);
    }
}

bool exchange_write(struct exchange *exchange, const void *data, size_t len)
{
    struct stream_limits *limits = exchange->limits;
    if (exchange->gone)
        return false;
    if (len == 0)
        return true;
    if (exchange->out.len == 0)
        unread_offer(&exchange->unread);
    /* What was taken from the front is in the way of what comes. */
    if (exchange->taken > 0 && exchange->out.len + len > exchange->out.cap) {
        unread_give(&limits->unread, &exchange->unread, exchange->taken);
        buffer_consume(&exchange->out, exchange->taken);
        exchange->taken = 0;
    }
    if (!unread_take(&limits->unread, &exchange->unread, len, true)) {
        if (!exchange->gone)
            cut(exchange, "all clients together read too slowly");
        return false;
    }
    if (buffer_append(&exchange->out, data, len) < 0) {
        unread_give(&limits->unread, &exchange->unread, len);
        cut(exchange, "out of memory");
        return false;
    }
    if (!exchange->late && exchange->out.len - exchange->taken > limits->one) {
        exchange->late = true;
        DL_APPEND(limits->late, exchange);
    }
    resume(exchange);
    return true;
}

void exchange_cut_late(struct stream_limits *limits, bool drained)
{
    struct exchange *exchange, *next;
    DL_FOREACH_SAFE(limits->late, exchange, next)
    {
        size_t left = exchange->out.len - exchange->taken;
        if (left > limits->one && !drained && left / SEVERAL <= limits->one)
            continue;
        exchange->late = false;
        DL_DELETE(limits->late, exchange);
        if (left > limits->one && !exchange->gone)
            cut(exchange, "the client reads too slowly");
    }
}

void exchange_end(struct exchange *exchange)
{
    exchange->on_gone = NULL;
    exchange->out_over = true;
    resume(exchange);
}
