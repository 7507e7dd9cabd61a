/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_TELEMETRY_EXPORTER_H
#define GATEWAY_TELEMETRY_EXPORTER_H

/* Sends the spans of requests (spans.h) to a collector of OpenTelemetry: OTLP over HTTP, in JSON.
 *
 *   exporter_add ──▶ queue of EXPORTER_WAITING ──the exporter's thread, every second or EXPORTER_BATCH──▶
 * POST
 *
 * Requests never wait for it. While the collector does not answer or is overloaded (429, 502, 503, 504), the
 * batch is sent again, 1 to 30 seconds apart, or after its Retry-After. Requests that find the queue full, or
 * that the collector refuses, are lost and counted. The log says when that begins and when it ends. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "gateway/telemetry/spans.h"

#define EXPORTER_WAITING 2048 /* requests; 2.5 MB */
#define EXPORTER_BATCH   256  /* of one POST: 0.5 MB */

struct exporter;

struct exporter_options {
    const char *url; /* of the collector, http or https; /v1/traces is added to the path if it is missing */
    const char *headers; /* file of lines "Name: value" for each POST; NULL: none */
};

/* Whether it could be started with these options: 0 or -errno with a reason (-ENOTSUP: no libcurl). Sends
 * nothing. */
int exporter_check(const struct exporter_options *options, struct error *err);

/* Starts the thread. 0 or -errno with a reason. */
int exporter_start(const struct exporter_options *options, struct exporter **ret_exporter, struct error *err);

/* Queues a copy of the request, or counts it as lost. */
void exporter_add(struct exporter *exporter, const struct traced_request *request);

/* The number of requests whose spans the collector has accepted, and of lost ones. Takes NULL. */
void exporter_count(const struct exporter *exporter, uint64_t *ret_sent, uint64_t *ret_lost);

/* Sends what is queued, for at most two seconds, and ends the thread. Takes NULL; returns NULL. */
struct exporter *exporter_stop(struct exporter *exporter);

#endif
