/* SPDX-License-Identifier: MIT */
/* See spans.h. Names of attributes are those of the semantic conventions for HTTP and generative AI; what
 * these have no name for begins with "quern.". */

#include "gateway/telemetry/spans.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/clock.h"
#include "common/hex.h"
#include "common/utf8.h"

/* ---- taking ---- */

/* Ids are random, and none is zero. */
static bool make_ids(struct traced_request *request)
{
    uint8_t random[16 + 8 * SPANS];
    if (getrandom(random, sizeof random, GRND_NONBLOCK) != sizeof random)
        return false;
    for (size_t i = 0; i < sizeof random; i += 8)
        random[i] |= 1;
    hex_write(random, 16, request->trace_id);
    for (size_t i = 0; i < SPANS; i++)
        hex_write(random + 16 + 8 * i, 8, request->span_ids[i]);
    return true;
}

/* 00-<trace>-<parent>-<flags>, which traceparent.h has checked; the lowest bit of the flags: sampled. */
static bool join(struct traced_request *request, const char *traceparent)
{
    if (!traceparent[0])
        return true;
    snprintf(request->trace_id, sizeof request->trace_id, "%.32s", traceparent + 3);
    snprintf(request->parent_id, sizeof request->parent_id, "%.16s", traceparent + 36);
    return strchr("13579bdf", traceparent[54]);
}

/* A method that a client made up is not told. */
static const char *known_method(const char *method)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(method, known[i]) == 0)
            return method;
    return "_OTHER";
}

static void copy_text(const char *text, size_t size, char *ret_text)
{
    utf8_printable(bytes_of_string(text ? text : ""), size, ret_text);
}

bool spans_take(const struct request_line *line, const char *route, struct traced_request *ret_request)
{
    struct traced_request *request = ret_request;
    struct timespec now;
    *request = (struct traced_request){.status = line->status, .gone = line->gone, .record = *line->record};
    if (!make_ids(request) || !join(request, line->traceparent))
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    request->ended_ns = (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec;
    request->begun_ns = request->ended_ns - (uint64_t)(line->seconds * CLOCK_NS_PER_S);
    copy_text(known_method(line->method), sizeof request->method, request->method);
    copy_text(route, sizeof request->route, request->route);
    copy_text(line->key, sizeof request->key, request->key);
    copy_text(line->request_id, sizeof request->request_id, request->request_id);
    return true;
}

/* ---- when ---- */

struct interval {
    uint64_t begin_ns, end_ns; /* since 1970 */
};

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t ns_of(double ms)
{
    return ms > 0 ? (uint64_t)(ms * CLOCK_NS_PER_MS) : 0;
}

/* Whether the pool has told how long its parts took. */
static bool is_timed(const struct traced_request *request)
{
    return request->record.queue_ms > 0 || request->record.prefill_ms > 0;
}

/* The parts lie before and behind the first token, or, where there are no tokens, before the end; none lies
 * outside the request. */
static struct interval interval_of(const struct traced_request *request, int span)
{
    const struct request_record *record = &request->record;
    const uint64_t first =
        record->first_token_ms > 0 ? request->begun_ns + ns_of(record->first_token_ms) : request->ended_ns;
    const uint64_t prefill = first - earlier(ns_of(record->prefill_ms), first);
    struct interval found = {request->begun_ns, request->ended_ns};
    if (span == SPAN_QUEUE)
        found = (struct interval){prefill - earlier(ns_of(record->queue_ms), prefill), prefill};
    else if (span == SPAN_PREFILL)
        found = (struct interval){prefill, first};
    else if (span == SPAN_DECODE)
        found = (struct interval){first, first + ns_of(record->decode_ms)};
    found.begin_ns = earlier(later(found.begin_ns, request->begun_ns), request->ended_ns);
    found.end_ns = earlier(later(found.end_ns, found.begin_ns), request->ended_ns);
    return found;
}

/* ---- attributes: each is written with a comma before it, except the first of a list ---- */

struct attributes {
    struct json_out *out;
    size_t n;
};

static void begin_attribute(struct attributes *list, const char *key)
{
    json_out_text(list->out, list->n++ > 0 ? ",{\"key\":\"" : "{\"key\":\"");
    json_out_text(list->out, key);
}

/* "": it is left out. */
static void add_text(struct attributes *list, const char *key, const char *value)
{
    if (!value || !value[0])
        return;
    begin_attribute(list, key);
    json_out_text(list->out, "\",\"value\":{\"stringValue\":");
    json_out_name(list->out, value);
    json_out_text(list->out, "}}");
}

/* 64-bit numbers are texts in this encoding. */
static void add_number(struct attributes *list, const char *key, uint64_t value)
{
    char text[80];
    begin_attribute(list, key);
    snprintf(text, sizeof text, "\",\"value\":{\"intValue\":\"%" PRIu64 "\"}}", value);
    json_out_text(list->out, text);
}

static void add_milliseconds(struct attributes *list, const char *key, double value)
{
    char text[80];
    begin_attribute(list, key);
    snprintf(text, sizeof text, "\",\"value\":{\"doubleValue\":%.3f}}", value);
    json_out_text(list->out, text);
}

static void add_bool(struct attributes *list, const char *key, bool value)
{
    begin_attribute(list, key);
    json_out_text(list->out,
                  value ? "\",\"value\":{\"boolValue\":true}}" : "\",\"value\":{\"boolValue\":false}}");
}

static void add_texts(struct attributes *list, const char *key, const char *value)
{
    if (!value)
        return;
    begin_attribute(list, key);
    json_out_text(list->out, "\",\"value\":{\"arrayValue\":{\"values\":[{\"stringValue\":");
    json_out_name(list->out, value);
    json_out_text(list->out, "}]}}}");
}

static void add_of_server(struct attributes *list, const struct traced_request *request)
{
    const struct request_record *record = &request->record;
    add_text(list, "http.request.method", request->method);
    add_text(list, "http.route", request->route);
    if (request->status > 0)
        add_number(list, "http.response.status_code", request->status);
    add_text(list, "error.type", record->code);
    add_text(list, "quern.request_id", request->request_id);
    add_text(list, "quern.key", request->key);
    if (request->gone)
        add_bool(list, "quern.client_gone", true);
    if (record->choices == 0)
        return;
    add_text(list, "gen_ai.provider.name", "quern");
    add_text(list, "gen_ai.request.model", record->model);
    add_number(list, "gen_ai.usage.input_tokens", record->prompt_tokens);
    add_number(list, "gen_ai.usage.output_tokens", record->output_tokens);
    add_texts(list, "gen_ai.response.finish_reasons", record->finish);
    add_number(list, "quern.choices", record->choices);
    add_bool(list, "quern.stream", record->stream);
}

static void add_of_span(struct attributes *list, const struct traced_request *request, int span)
{
    const struct request_record *record = &request->record;
    if (span == SPAN_SERVER) {
        add_of_server(list, request);
    } else if (span == SPAN_PREFILL) {
        add_number(list, "quern.prompt_tokens", record->prompt_tokens);
        add_number(list, "quern.cached_tokens", record->cached_tokens);
        add_milliseconds(list, "quern.prepare_ms", record->prepare_ms);
        add_milliseconds(list, "quern.wait_ms", record->wait_ms);
        add_milliseconds(list, "quern.lookup_ms", record->lookup_ms);
    } else if (span == SPAN_DECODE) {
        add_number(list, "quern.output_tokens", record->output_tokens);
    }
}

/* ---- spans ---- */

static void write_time(struct json_out *out, const char *key, uint64_t ns)
{
    char text[80];
    snprintf(text, sizeof text, ",\"%s\":\"%" PRIu64 "\"", key, ns);
    json_out_text(out, text);
}

/* "POST /v1/completions"; the method alone where no route has the path, of which there may be any number. */
static void write_name(struct json_out *out, const struct traced_request *request, int span)
{
    static const char *const parts[SPANS] = {"", "queue", "prefill", "decode"};
    char text[96];
    snprintf(text, sizeof text, "%s%s%s", request->method, request->route[0] ? " " : "", request->route);
    json_out_name(out, span == SPAN_SERVER ? text : parts[span]);
}

static void write_id(struct json_out *out, const char *key, const char *id)
{
    json_out_text(out, key);
    json_out_text(out, id);
    json_out_text(out, "\"");
}

/* By the conventions what a client did wrong is no error of the server's. */
static void write_status(struct json_out *out, const struct traced_request *request)
{
    const struct request_record *record = &request->record;
    const bool failed = record->finish && strcmp(record->finish, "error") == 0;
    if (request->status < 500 && !failed)
        return;
    json_out_text(out, ",\"status\":{\"code\":2,\"message\":");
    json_out_name(out, record->message);
    json_out_text(out, "}");
}

static void write_span(struct json_out *out, const struct traced_request *request, int span)
{
    const struct interval interval = interval_of(request, span);
    const char *parent = span == SPAN_SERVER ? request->parent_id : request->span_ids[SPAN_SERVER];
    struct attributes list = {.out = out};
    write_id(out, "{\"traceId\":\"", request->trace_id);
    write_id(out, ",\"spanId\":\"", request->span_ids[span]);
    if (parent[0])
        write_id(out, ",\"parentSpanId\":\"", parent);
    json_out_text(out, ",\"name\":");
    write_name(out, request, span);
    json_out_text(out, span == SPAN_SERVER ? ",\"kind\":2" : ",\"kind\":1");
    write_time(out, "startTimeUnixNano", interval.begin_ns);
    write_time(out, "endTimeUnixNano", interval.end_ns);
    json_out_text(out, ",\"attributes\":[");
    add_of_span(&list, request, span);
    json_out_text(out, "]");
    if (span == SPAN_SERVER)
        write_status(out, request);
    json_out_text(out, "}");
}

static bool has_span(const struct traced_request *request, int span)
{
    if (span == SPAN_SERVER)
        return true;
    return is_timed(request) && (span != SPAN_DECODE || request->record.decode_ms > 0);
}

/* The spans of one service: those from first to last. */
static void write_service(struct json_out *out, const char *name, int first, int last,
                          const struct traced_request *requests, size_t n)
{
    size_t written = 0;
    struct attributes list = {.out = out};
    json_out_text(out, "{\"resource\":{\"attributes\":[");
    add_text(&list, "service.namespace", "quern");
    add_text(&list, "service.name", name);
    add_text(&list, "service.version", QUERN_VERSION);
    json_out_text(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"quern\"},\"spans\":[");
    for (size_t i = 0; i < n; i++)
        for (int span = first; span <= last; span++) {
            if (!has_span(&requests[i], span))
                continue;
            if (written++ > 0)
                json_out_text(out, ",");
            write_span(out, &requests[i], span);
        }
    json_out_text(out, "]}]}");
}

void spans_write(struct json_out *out, const struct traced_request *requests, size_t n)
{
    json_out_text(out, "{\"resourceSpans\":[");
    write_service(out, "quern-gateway", SPAN_SERVER, SPAN_SERVER, requests, n);
    json_out_text(out, ",");
    write_service(out, "quern-broker", SPAN_QUEUE, SPAN_QUEUE, requests, n);
    json_out_text(out, ",");
    write_service(out, "quern-worker", SPAN_PREFILL, SPAN_DECODE, requests, n);
    json_out_text(out, "]}");
}
