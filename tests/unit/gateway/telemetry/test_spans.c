/* SPDX-License-Identifier: MIT */
/* What spans tell of a request. */

#include "gateway/telemetry/spans.h"
#include "tests/unit/run.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

/* A completion of 50 ms: 5 in the queue, 10 of prefill, 30 of decode; its first token came after 18. */
static struct request_record record_of_completion(void)
{
    struct request_record record = {.finish = "stop",
                                    .choices = 1,
                                    .prompt_tokens = 7,
                                    .cached_tokens = 3,
                                    .output_tokens = 4,
                                    .queue_ms = 5,
                                    .prefill_ms = 10,
                                    .decode_ms = 30,
                                    .first_token_ms = 18};
    return record;
}

static struct request_line line_of(const struct request_record *record, const char *traceparent)
{
    return (struct request_line){.method = "POST",
                                 .path = "/v1/completions",
                                 .peer = "127.0.0.1 port 1",
                                 .request_id = "req_1",
                                 .traceparent = traceparent,
                                 .status = 200,
                                 .seconds = 0.05,
                                 .record = record};
}

/* The body of an export of these requests, parsed. */
static json_t *export_of(const struct traced_request *requests, size_t n)
{
    struct json_out out = {0};
    json_error_t why;
    spans_write(&out, requests, n);
    ck_assert(!out.failed);
    json_t *body = json_loadb(out.buffer.data, out.buffer.len, 0, &why);
    ck_assert_msg(body, "%s", why.text);
    json_out_deinit(&out);
    return body;
}

static json_t *export_of_line(const struct request_line *line, const char *route)
{
    struct traced_request request;
    ck_assert(spans_take(line, route, &request));
    return export_of(&request, 1);
}

/* Span i of service s: gateway, broker, worker. NULL: there is none. */
static json_t *span_of(const json_t *body, size_t s, size_t i)
{
    const json_t *service = json_array_get(json_object_get(body, "resourceSpans"), s);
    const json_t *scope = json_array_get(json_object_get(service, "scopeSpans"), 0);
    return json_array_get(json_object_get(scope, "spans"), i);
}

static const char *text_of(const json_t *of, const char *key)
{
    return json_string_value(json_object_get(of, key));
}

/* The value of an attribute: {"intValue": "7"}; NULL: there is none. */
static const json_t *attribute_of(const json_t *of, const char *key)
{
    const json_t *list = json_object_get(of, "attributes");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(text_of(json_array_get(list, i), "key"), key) == 0)
            return json_object_get(json_array_get(list, i), "value");
    return NULL;
}

static const char *attribute_text(const json_t *of, const char *key)
{
    const json_t *value = attribute_of(of, key);
    return value ? json_string_value(json_object_iter_value(json_object_iter((json_t *)value))) : NULL;
}

static int64_t ms_between(const json_t *a, const char *key_a, const json_t *b, const char *key_b)
{
    return (atoll(text_of(b, key_b)) - atoll(text_of(a, key_a))) / 1000000;
}

START_TEST(a_request_is_told_by_the_service_that_did_each_part)
{
    const struct request_record record = record_of_completion();
    const struct request_line line = line_of(&record, "00-" TRACE "-" PARENT "-01");
    static const char *const services[] = {"quern-gateway", "quern-broker", "quern-worker"};
    json_t *body = export_of_line(&line, "/v1/completions");
    const json_t *server = span_of(body, 0, 0), *queue = span_of(body, 1, 0), *prefill = span_of(body, 2, 0),
                 *decode = span_of(body, 2, 1);
    ck_assert_uint_eq(json_array_size(json_object_get(body, "resourceSpans")), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *service = json_array_get(json_object_get(body, "resourceSpans"), i);
        ck_assert_str_eq(attribute_text(json_object_get(service, "resource"), "service.name"), services[i]);
    }
    ck_assert_ptr_null(span_of(body, 0, 1));
    ck_assert_ptr_null(span_of(body, 1, 1));
    ck_assert_ptr_null(span_of(body, 2, 2));
    ck_assert_str_eq(text_of(server, "name"), "POST /v1/completions");
    ck_assert_str_eq(text_of(queue, "name"), "queue");
    ck_assert_str_eq(text_of(prefill, "name"), "prefill");
    ck_assert_str_eq(text_of(decode, "name"), "decode");
    ck_assert_int_eq(json_integer_value(json_object_get(server, "kind")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(queue, "kind")), 1);
    ck_assert_str_eq(attribute_text(server, "http.response.status_code"), "200");
    ck_assert_str_eq(attribute_text(server, "http.route"), "/v1/completions");
    ck_assert_str_eq(attribute_text(server, "gen_ai.usage.input_tokens"), "7");
    ck_assert_str_eq(attribute_text(server, "gen_ai.usage.output_tokens"), "4");
    ck_assert_str_eq(attribute_text(server, "quern.request_id"), "req_1");
    ck_assert_str_eq(attribute_text(prefill, "quern.cached_tokens"), "3");
    ck_assert_ptr_null(json_object_get(server, "status"));
    json_decref(body);
}
END_TEST

START_TEST(spans_are_joined_to_the_clients_trace)
{
    const struct request_record record = record_of_completion();
    const struct request_line line = line_of(&record, "00-" TRACE "-" PARENT "-01");
    json_t *body = export_of_line(&line, "/v1/completions");
    const json_t *server = span_of(body, 0, 0);
    const json_t *parts[] = {span_of(body, 1, 0), span_of(body, 2, 0), span_of(body, 2, 1)};
    ck_assert_str_eq(text_of(server, "traceId"), TRACE);
    ck_assert_str_eq(text_of(server, "parentSpanId"), PARENT);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(text_of(parts[i], "traceId"), TRACE);
        ck_assert_str_eq(text_of(parts[i], "parentSpanId"), text_of(server, "spanId"));
        ck_assert_str_ne(text_of(parts[i], "spanId"), text_of(server, "spanId"));
        ck_assert_str_ne(text_of(parts[i], "spanId"), text_of(parts[(i + 1) % 3], "spanId"));
    }
    json_decref(body);
}
END_TEST

START_TEST(a_request_without_a_trace_begins_one)
{
    const struct request_record record = record_of_completion();
    const struct request_line line = line_of(&record, "");
    struct traced_request requests[2];
    ck_assert(spans_take(&line, "/v1/completions", &requests[0]));
    ck_assert(spans_take(&line, "/v1/completions", &requests[1]));
    json_t *body = export_of(requests, 2);
    const json_t *first = span_of(body, 0, 0), *second = span_of(body, 0, 1);
    ck_assert_ptr_null(json_object_get(first, "parentSpanId"));
    ck_assert_uint_eq(strlen(text_of(first, "traceId")), 32);
    ck_assert_uint_eq(strspn(text_of(first, "traceId"), "0123456789abcdef"), 32);
    ck_assert_uint_eq(strlen(text_of(first, "spanId")), 16);
    ck_assert_str_ne(text_of(first, "traceId"), text_of(second, "traceId"));
    json_decref(body);
}
END_TEST

START_TEST(what_the_client_does_not_sample_is_not_told)
{
    const struct request_record record = record_of_completion();
    struct request_line line = line_of(&record, "00-" TRACE "-" PARENT "-00");
    struct traced_request request;
    ck_assert(!spans_take(&line, "/v1/completions", &request));
    line.traceparent = "00-" TRACE "-" PARENT "-fe";
    ck_assert(!spans_take(&line, "/v1/completions", &request));
    line.traceparent = "00-" TRACE "-" PARENT "-ff";
    ck_assert(spans_take(&line, "/v1/completions", &request));
}
END_TEST

START_TEST(parts_lie_about_the_first_token)
{
    const struct request_record record = record_of_completion();
    const struct request_line line = line_of(&record, "");
    json_t *body = export_of_line(&line, "/v1/completions");
    const json_t *server = span_of(body, 0, 0), *queue = span_of(body, 1, 0), *prefill = span_of(body, 2, 0),
                 *decode = span_of(body, 2, 1);
    static const char begin[] = "startTimeUnixNano", end[] = "endTimeUnixNano";
    ck_assert_int_eq(ms_between(server, begin, server, end), 50);
    ck_assert_int_eq(ms_between(server, begin, queue, begin), 3);
    ck_assert_int_eq(ms_between(queue, begin, queue, end), 5);
    ck_assert_int_eq(ms_between(queue, end, prefill, begin), 0);
    ck_assert_int_eq(ms_between(prefill, begin, prefill, end), 10);
    ck_assert_int_eq(ms_between(prefill, end, decode, begin), 0);
    ck_assert_int_eq(ms_between(decode, begin, decode, end), 30);
    json_decref(body);
}
END_TEST

/* As the parts of several choices may be: none leaves the request. */
START_TEST(parts_that_are_too_long_end_with_the_request)
{
    struct request_record record = record_of_completion();
    record.queue_ms = 1e9;
    record.prefill_ms = 1e9;
    record.decode_ms = 1e12;
    const struct request_line line = line_of(&record, "");
    json_t *body = export_of_line(&line, "/v1/completions");
    const json_t *server = span_of(body, 0, 0);
    for (size_t s = 1; s < 3; s++) {
        const json_t *span = span_of(body, s, 0);
        ck_assert_int_ge(ms_between(server, "startTimeUnixNano", span, "startTimeUnixNano"), 0);
        ck_assert_int_ge(ms_between(span, "startTimeUnixNano", span, "endTimeUnixNano"), 0);
        ck_assert_int_ge(ms_between(span, "endTimeUnixNano", server, "endTimeUnixNano"), 0);
    }
    const json_t *decode = span_of(body, 2, 1);
    ck_assert_int_eq(ms_between(decode, "endTimeUnixNano", server, "endTimeUnixNano"), 0);
    json_decref(body);
}
END_TEST

START_TEST(embeddings_have_no_decode_and_rejected_ones_no_parts)
{
    struct request_record record = record_of_completion();
    record.decode_ms = record.first_token_ms = 0;
    struct request_line line = line_of(&record, "");
    json_t *body = export_of_line(&line, "/v1/embeddings");
    ck_assert_ptr_nonnull(span_of(body, 2, 0));
    ck_assert_ptr_null(span_of(body, 2, 1));
    ck_assert_int_eq(
        ms_between(span_of(body, 2, 0), "endTimeUnixNano", span_of(body, 0, 0), "endTimeUnixNano"), 0);
    json_decref(body);
    const struct request_record nothing = {0};
    line.record = &nothing;
    line.status = 400;
    body = export_of_line(&line, "/v1/embeddings");
    ck_assert_ptr_null(span_of(body, 1, 0));
    ck_assert_ptr_null(span_of(body, 2, 0));
    ck_assert_ptr_null(attribute_of(span_of(body, 0, 0), "gen_ai.usage.input_tokens"));
    ck_assert_ptr_null(json_object_get(span_of(body, 0, 0), "status"));
    json_decref(body);
}
END_TEST

START_TEST(an_error_of_the_server_is_one)
{
    struct request_record record = record_of_completion();
    request_record_error(&record, "worker_lost", "", "the worker died\n\"three\" times");
    struct request_line line = line_of(&record, "");
    line.status = 503;
    json_t *body = export_of_line(&line, "/v1/completions");
    const json_t *server = span_of(body, 0, 0), *status = json_object_get(server, "status");
    ck_assert_int_eq(json_integer_value(json_object_get(status, "code")), 2);
    ck_assert_ptr_nonnull(strstr(text_of(status, "message"), "\"three\" times"));
    ck_assert_str_eq(attribute_text(server, "error.type"), "worker_lost");
    json_decref(body);
    line.status = 200; /* a stream that had begun */
    record.finish = "error";
    body = export_of_line(&line, "/v1/completions");
    ck_assert_ptr_nonnull(json_object_get(span_of(body, 0, 0), "status"));
    json_decref(body);
}
END_TEST

/* Names of spans are few, whatever paths and methods there are. */
START_TEST(a_strange_request_is_told_without_its_texts)
{
    const struct request_record nothing = {0};
    struct request_line line = line_of(&nothing, "");
    line.method = "BREW";
    line.path = "/secret";
    line.status = 404;
    line.gone = true;
    json_t *body = export_of_line(&line, NULL);
    const json_t *server = span_of(body, 0, 0);
    ck_assert_str_eq(text_of(server, "name"), "_OTHER");
    ck_assert_ptr_null(attribute_of(server, "http.route"));
    ck_assert(json_is_true(json_object_get(attribute_of(server, "quern.client_gone"), "boolValue")));
    json_decref(body);
}
END_TEST

static void add(TCase *tcase)
{
    tcase_add_test(tcase, a_request_is_told_by_the_service_that_did_each_part);
    tcase_add_test(tcase, spans_are_joined_to_the_clients_trace);
    tcase_add_test(tcase, a_request_without_a_trace_begins_one);
    tcase_add_test(tcase, what_the_client_does_not_sample_is_not_told);
    tcase_add_test(tcase, parts_lie_about_the_first_token);
    tcase_add_test(tcase, parts_that_are_too_long_end_with_the_request);
    tcase_add_test(tcase, embeddings_have_no_decode_and_rejected_ones_no_parts);
    tcase_add_test(tcase, an_error_of_the_server_is_one);
    tcase_add_test(tcase, a_strange_request_is_told_without_its_texts);
}

int main(void)
{
    return run_tests("gateway/telemetry/spans", add);
}
