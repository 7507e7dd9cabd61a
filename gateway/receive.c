/* SPDX-License-Identifier: MIT */
/* A request as it comes: its head is judged first, then its body is gathered, then a handler answers.
 *
 * What is refused by its head is answered when the body is through, so that the client is there to read it;
 * the body is dropped meanwhile. One that is far too large, or that asks first (Expect), is answered at once,
 * and the connection ends with that. A body without an end is cut off. */

#include "gateway/receive.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/amount.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/number.h"
#include "common/utf8.h"
#include "gateway/head.h"
#include "gateway/routes.h"
#include "gateway/telemetry/exporter.h"

#define DROPPED_TIMES                                                                                        \
    8 /* so much more than a body may have is read and dropped, before the client is cut off */
/* What pages of other origins may read of an answer's head. */
#define EXPOSED                                                                                              \
    "x-request-id, request-id, retry-after, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, "    \
    "x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, "                   \
    "x-ratelimit-reset-tokens, anthropic-ratelimit-requests-limit, anthropic-ratelimit-requests-remaining, " \
    "anthropic-ratelimit-requests-reset, anthropic-ratelimit-tokens-limit, "                                 \
    "anthropic-ratelimit-tokens-remaining, anthropic-ratelimit-tokens-reset"
#define FREE_BYTES (16u << 10) /* of a body, which do not count */

static void say_peer(struct MHD_Connection *connection, char *ret_peer, size_t size)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    char host[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;
    if (info && info->client_addr && info->client_addr->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)info->client_addr;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        port = ntohs(v4->sin_port);
    } else if (info && info->client_addr && info->client_addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)info->client_addr;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        port = ntohs(v6->sin6_port);
    }
    snprintf(ret_peer, size, "%s port %u", host, port);
}

static struct connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static int refuse_size(const struct gateway *gateway, struct refusal *refusal)
{
    return refuse(refusal, 413, "too_large", NULL, "a request body may have at most %zu kB",
                  gateway->body_bytes >> 10);
}

static size_t most_bytes(const struct exchange *exchange)
{
    return exchange->gateway->body_bytes;
}

/* Who asks: by "Authorization: Bearer KEY", or "x-api-key: KEY" as clients of Anthropic have it. */
static int authenticate(struct exchange *exchange, struct refusal *refusal)
{
    struct keys *keys = &exchange->gateway->keys;
    const char *said = exchange_request_header(exchange, MHD_HTTP_HEADER_AUTHORIZATION);
    if (keys->n == 0)
        return 0;
    if (said && strncasecmp(said, "Bearer ", 7) == 0)
        said += 7 + strspn(said + 7, " ");
    else
        said = exchange_request_header(exchange, "x-api-key");
    exchange->key = said ? keys_find(keys, bytes_of_string(said)) : NULL;
    if (exchange->key)
        return 0;
    return refuse(refusal, 401, "invalid_api_key", NULL, "%s",
                  said ? "unknown API key" : "an API key is required: Authorization: Bearer KEY");
}

/* A page asks in advance whether it may ask. */
static void preflight(struct exchange *exchange)
{
    struct buffer nothing = {0};
    exchange_reply(exchange, 204, "text/plain", &nothing);
}

/* It is refused before its body is complete. Most are not: the reason has memory of its own. */
static void refuse_early(struct exchange *exchange, const struct refusal *refusal)
{
    if (!exchange->refusal)
        exchange->refusal = malloc(sizeof *exchange->refusal);
    if (exchange->refusal)
        *exchange->refusal = *refusal;
    exchange->refused = true;
}

/* Judges the head. *ret_at_once: the body is not to be waited for. */
static void judge(const struct receiver *receiver, struct exchange *exchange, bool *ret_at_once)
{
    const struct route *route;
    struct refusal refusal;
    uint64_t length = 0;
    const char *said = exchange_request_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (said && number_read(said, 0, UINT64_MAX, &length, NULL) < 0)
        length = 0; /* libmicrohttpd has refused what is no number */
    /* Before the head is judged, since what is refused is told in the form of a family. */
    char allowed[sizeof exchange->allowed];
    int missing = routes_find(exchange->method, exchange->path, &route, &exchange->rest, &exchange->family,
                              allowed, &refusal);
    exchange->route = missing == 0 ? route->path : NULL;
    /* Only a head that is refused changes why. */
    if (head_judge(exchange, connection_of(exchange->connection), &receiver->origins, &refusal) != 0) {
        refuse_early(exchange, &refusal);
    } else if (exchange->gateway->options.cors && strcmp(exchange->method, MHD_HTTP_METHOD_OPTIONS) == 0) {
        exchange->handler = preflight;
    } else if (missing != 0) {
        memcpy(exchange->allowed, allowed, sizeof allowed);
        refuse_early(exchange, &refusal);
    } else if (!route->free && authenticate(exchange, &refusal) != 0) {
        refuse_early(exchange, &refusal);
    } else {
        exchange->handler = route->handler;
    }
    if (exchange->refused && exchange->last) {
        *ret_at_once = true; /* where a body would end is not known */
    } else if (length > most_bytes(exchange)) {
        refuse_size(exchange->gateway, &refusal);
        refuse_early(exchange, &refusal);
        *ret_at_once = length > DROPPED_TIMES * most_bytes(exchange) ||
                       exchange_request_header(exchange, MHD_HTTP_HEADER_EXPECT);
    }
}

static struct exchange *begin(struct receiver *receiver, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version)
{
    struct connection *known = connection_of(connection);
    struct exchange *exchange = known ? exchange_new(connection, &receiver->gateway->streams) : NULL;
    if (!exchange)
        return NULL;
    exchange->gateway = receiver->gateway;
    exchange->path = url;
    exchange->method = method;
    exchange->version = version;
    say_peer(connection, exchange->peer, sizeof exchange->peer);
    request_id_take(exchange_request_header(exchange, "x-request-id"), exchange->request_id);
    traceparent_take(exchange_request_header(exchange, "traceparent"), exchange->traceparent);
    connection_asked(known, exchange);
    return exchange;
}

static void drop_body(struct exchange *exchange)
{
    budget_give(exchange_bodies(exchange), exchange->body_counted);
    exchange->body_counted = 0;
    buffer_deinit(&exchange->body);
}

/* Counts so many more bytes of the body. The first few are free, so that small requests get through whatever
 * is going on. */
static bool count_body(struct exchange *exchange, size_t len)
{
    const size_t all = exchange->body.len + len;
    const size_t more = all > FREE_BYTES ? all - FREE_BYTES - exchange->body_counted : 0;
    if (!budget_take(exchange_bodies(exchange), more))
        return false;
    exchange->body_counted += more;
    return true;
}

/* Takes a part of the body. False: the connection is to be closed. */
static bool take(struct receiver *receiver, struct exchange *exchange, const char *data, size_t len)
{
    exchange->received += len;
    if (exchange->received > DROPPED_TIMES * most_bytes(exchange)) {
        log_info("%s: a body of more than %s: closing the connection", exchange->peer,
                 amount_of_bytes(DROPPED_TIMES * most_bytes(exchange)).text);
        return false;
    }
    if (exchange->refused)
        return true;
    struct refusal refusal;
    if (exchange->received > most_bytes(exchange)) {
        refuse_size(receiver->gateway, &refusal);
    } else if (!count_body(exchange, len)) {
        refuse(&refusal, 429, "rate_limit_exceeded", NULL, "the gateway is receiving too much data");
        refusal.retry_after_s = 1;
    } else if (buffer_append(&exchange->body, data, len) < 0) {
        refuse_memory(&refusal);
    } else {
        return true;
    }
    refuse_early(exchange, &refusal);
    drop_body(exchange);
    return true;
}

static void answer(struct receiver *receiver, struct exchange *exchange)
{
    struct connection *known = connection_of(exchange->connection);
    if (known)
        connection_whole(known);
    exchange->state = EXCHANGE_WORKING;
    receiver->gateway->working++;
    exchange->counted = true;
    struct refusal refusal;
    if (exchange->refused && !exchange->refusal)
        refuse_memory(&refusal);
    if (exchange->refused)
        exchange_refuse(exchange, exchange->refusal ? exchange->refusal : &refusal);
    else
        exchange->handler(exchange);
    drop_body(exchange);
}

static void allow_origin(const struct exchange *exchange)
{
    const char *origin = exchange->gateway->options.cors;
    struct MHD_Response *response = exchange->response;
    if (!origin)
        return;
    MHD_add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if (strcmp(origin, "*") != 0)
        MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Origin");
    MHD_add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    if (strcmp(exchange->method, MHD_HTTP_METHOD_OPTIONS) != 0)
        return;
    MHD_add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST");
    MHD_add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_HEADERS, "*, Authorization");
    MHD_add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_MAX_AGE, "600");
}

/* By what it is found again, and what is left of its key's limits. */
static void say_request(const struct exchange *exchange)
{
    struct MHD_Response *response = exchange->response;
    MHD_add_response_header(response, "x-request-id", exchange->request_id);
    if (exchange->family == FAMILY_ANTHROPIC) {
        MHD_add_response_header(response, "request-id", exchange->request_id);
        quotas_add_anthropic(&exchange->quotas, response);
    }
    quotas_add_openai(&exchange->quotas, response);
}

static enum MHD_Result queue(struct exchange *exchange)
{
    allow_origin(exchange);
    say_request(exchange);
    if (exchange->status < COUNTERS_CODES)
        exchange->gateway->counters.answers[exchange->status]++;
    if (exchange->gateway->retired || exchange->gateway->draining || exchange->last)
        MHD_add_response_header(exchange->response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (exchange->status == 401)
        MHD_add_response_header(exchange->response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (exchange->allowed[0])
        MHD_add_response_header(exchange->response, MHD_HTTP_HEADER_ALLOW, exchange->allowed);
    enum MHD_Result r = MHD_queue_response(exchange->connection, exchange->status, exchange->response);
    MHD_destroy_response(exchange->response); /* libmicrohttpd keeps its own reference */
    exchange->response = NULL;
    exchange->queued = true;
    return r;
}

enum MHD_Result receive_accept(void *cls, const struct sockaddr *from, socklen_t len)
{
    struct receiver *receiver = cls;
    return connections_admit(&receiver->connections, from) ? MHD_YES : MHD_NO;
}

enum MHD_Result receive_access(void *cls, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data, size_t *len,
                               void **ret_exchange)
{
    struct receiver *receiver = cls;
    struct exchange *exchange = *ret_exchange;
    if (receiver->closing || (exchange && exchange->gone))
        return MHD_NO;
    if (!exchange) {
        bool at_once = false;
        *ret_exchange = exchange = begin(receiver, connection, url, method, version);
        if (!exchange)
            return MHD_NO;
        judge(receiver, exchange, &at_once);
        if (!at_once)
            return MHD_YES;
        answer(receiver, exchange);
        return exchange->response ? queue(exchange) : MHD_NO;
    }
    if (*len > 0) {
        bool taken = take(receiver, exchange, data, *len);
        *len = 0;
        return taken ? MHD_YES : MHD_NO;
    }
    if (exchange->state == EXCHANGE_RECEIVING)
        answer(receiver, exchange);
    if (exchange->gone)
        return MHD_NO;
    if (exchange->response)
        return queue(exchange);
    if (!exchange->queued)
        exchange_suspend(exchange);
    return MHD_YES;
}

static void export_spans(const struct exchange *exchange, const struct request_line *line)
{
    struct traced_request request;
    if (exchange->gateway->exporter && spans_take(line, exchange->route, &request))
        exporter_add(exchange->gateway->exporter, &request);
}

/* A line of the request log, and spans. Probes of health and metrics, which come every few seconds, have
 * none. */
static void write_down(const struct exchange *exchange)
{
    const struct request_line line = {.method = exchange->method,
                                      .path = exchange->path,
                                      .peer = exchange->peer,
                                      .key = exchange->key ? exchange->key->name : NULL,
                                      .request_id = exchange->request_id,
                                      .traceparent = exchange->traceparent,
                                      .status = exchange->status,
                                      .gone = exchange->gone,
                                      .seconds = (double)(clock_ns() - exchange->begun_ns) / CLOCK_NS_PER_S,
                                      .record = &exchange->record};
    if (strcmp(exchange->path, "/metrics") == 0 || strncmp(exchange->path, "/health", 7) == 0)
        return;
    request_log_write(&exchange->gateway->request_log, &line);
    export_spans(exchange, &line);
}

void receive_completed(void *cls, struct MHD_Connection *connection, void **ret_exchange,
                       enum MHD_RequestTerminationCode how)
{
    struct receiver *receiver = cls;
    struct exchange *exchange = *ret_exchange;
    struct connection *known = connection_of(connection);
    if (!exchange)
        return;
    drop_body(exchange);
    if (how != MHD_REQUEST_TERMINATED_COMPLETED_OK)
        exchange_lost(exchange); /* what was done of its work goes into the record */
    write_down(exchange);
    receiver->gateway->working -= exchange->counted;
    *ret_exchange = exchange_free(exchange);
    if (known)
        connection_answered(known);
}

void receive_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode what)
{
    struct receiver *receiver = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        /* Taken one after the other: a later call may reuse what an earlier one returned. */
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        int fd = info ? info->connect_fd : -1;
        info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        const struct sockaddr *from = info ? info->client_addr : NULL;
        *socket_context = fd >= 0 ? connection_new(&receiver->connections, fd, from) : NULL;
    } else {
        connection_free(&receiver->connections, *socket_context);
        *socket_context = NULL;
    }
}
