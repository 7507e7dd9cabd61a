/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_TELEMETRY_SPANS_H
#define GATEWAY_TELEMETRY_SPANS_H

/* Writes a request as OpenTelemetry spans, in the JSON of OTLP/HTTP 1.x (opentelemetry-proto, trace.proto,
 * "JSON Protobuf Encoding"):
 *
 *   quern-gateway  POST /v1/chat/completions  ├──────────────────────────────────────┤   kind: server
 *   quern-broker   queue                        ├────┤
 *   quern-worker   prefill                           ├─────────┤
 *   quern-worker   decode                                      ├───────────────────┤
 *
 * Broker and workers measure their parts themselves (`timing` in the protocol), and the gateway, which alone
 * knows the client's trace, places them on its own clock: the first token is at the time when it was sent to
 * the client. Of several choices, the longest parts are reported. A request that never reached a worker has
 * only the first span.
 *
 * The spans have the trace and the parent of the client's `traceparent`, or begin a trace. Like the request
 * log, they contain no text of prompts and answers. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/http/request_id.h"
#include "gateway/http/request_log.h"
#include "gateway/json/json_out.h"

enum { SPAN_SERVER, SPAN_QUEUE, SPAN_PREFILL, SPAN_DECODE, SPANS };

/* An ended request: a copy of everything that its spans contain. */
struct traced_request {
    char trace_id[33], parent_id[17]; /* hexadecimal; parent "": it begins the trace */
    char span_ids[SPANS][17];
    uint64_t begun_ns, ended_ns; /* since 1970 */
    char method[16];
    char route[64]; /* "": no route has this path */
    char key[64];   /* its name; "": none */
    char request_id[REQUEST_ID_BYTES];
    unsigned status;
    bool gone;
    struct request_record record;
};

/* Copies the request, which ends now. `route`, a constant, is the path of its route; NULL: none. False: do
 * not export it, because the client's `traceparent` says that it is not sampled, or because no ids could be
 * made. */
bool spans_take(const struct request_line *line, const char *route, struct traced_request *ret_request);

/* Writes the body of one export (ExportTraceServiceRequest): all spans of requests[n]. */
void spans_write(struct json_out *out, const struct traced_request *requests, size_t n);

#endif
