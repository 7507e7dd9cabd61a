/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_TELEMETRY_SPANS_H
#define GATEWAY_TELEMETRY_SPANS_H

/* A request as spans of OpenTelemetry, in JSON as OTLP/HTTP 1.x takes it (opentelemetry-proto, trace.proto,
 * "JSON Protobuf Encoding"):
 *
 *   quern-gateway  POST /v1/chat/completions  ├──────────────────────────────────────┤   kind: server
 *   quern-broker   queue                        ├────┤
 *   quern-worker   prefill                           ├─────────┤
 *   quern-worker   decode                                      ├───────────────────┤
 *
 * Broker and workers measure their parts themselves (`timing` in the protocol), and the gateway, which alone
 * knows the client's trace, places them on its own clock: the first token is where the client was sent it.
 * Of several choices the longest parts are told. A request that never reached a worker is the first span
 * alone.
 *
 * The spans have the trace and the parent of the client's `traceparent`, or begin a trace. They contain
 * nothing of prompts and answers, as the request log. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/http/request_id.h"
#include "gateway/http/request_log.h"
#include "gateway/json/json_out.h"

enum { SPAN_SERVER, SPAN_QUEUE, SPAN_PREFILL, SPAN_DECODE, SPANS };

/* A request that has ended: its own copy of all that its spans tell. */
struct traced_request {
    char trace_id[33], parent_id[17]; /* hexadecimal; parent "": it begins the trace */
    char span_ids[SPANS][17];
    uint64_t begun_ns, ended_ns; /* since 1970 */
    char method[16];
    char route[64]; /* "": none has this path */
    char key[64];   /* its name; "": none */
    char request_id[REQUEST_ID_BYTES];
    unsigned status;
    bool gone;
    struct request_record record;
};

/* Copies the request, which ends now. `route` is the path that the gateway serves it by, a constant; NULL:
 * none. False: the client's `traceparent` says that it is not sampled, or it cannot get ids; nothing is to be
 * told of it. */
bool spans_take(const struct request_line *line, const char *route, struct traced_request *ret_request);

/* Writes the body of one export (ExportTraceServiceRequest): all spans of requests[n]. */
void spans_write(struct json_out *out, const struct traced_request *requests, size_t n);

#endif
