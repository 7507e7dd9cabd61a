/* SPDX-License-Identifier: MIT */
/* /metrics. Names follow Prometheus: base units, _total for what only grows. */

#include "gateway/watch/metrics.h"

#include <stdio.h>
#include <string.h>

#include "gateway/core/gateway.h"
#include "common/instruments/histogram.h"
#include "gateway/telemetry/exporter.h"
#include "proto/gauges.h"
#include "proto/histograms.h"

static void declare(struct json_out *out, const char *name, const char *type, const char *help)
{
    json_out_text(out, "# HELP ");
    json_out_text(out, name);
    json_out_text(out, " ");
    json_out_text(out, help);
    json_out_text(out, "\n# TYPE ");
    json_out_text(out, name);
    json_out_text(out, " ");
    json_out_text(out, type);
    json_out_text(out, "\n");
}

static void sample(struct json_out *out, const char *name, double value)
{
    json_out_text(out, name);
    char digits[40];
    snprintf(digits, sizeof digits, " %.17g\n", value);
    json_out_text(out, digits);
}

static void single(struct json_out *out, const char *name, const char *type, const char *help, double value)
{
    declare(out, name, type, help);
    sample(out, name, value);
}

static void sample_bucket(struct json_out *out, const char *name, const char *labels, const double *bound,
                          uint64_t count)
{
    json_out_text(out, name);
    json_out_text(out, "_bucket{");
    json_out_text(out, labels);
    json_out_text(out, labels[0] ? ",le=\"" : "le=\"");
    if (bound)
        json_out_real(out, *bound);
    else
        json_out_text(out, "+Inf");
    json_out_text(out, "\"} ");
    json_out_number(out, (int64_t)count);
    json_out_text(out, "\n");
}

static void sample_of(struct json_out *out, const char *name, const char *end, const char *labels,
                      double value)
{
    json_out_text(out, name);
    json_out_text(out, end);
    if (labels[0]) {
        json_out_text(out, "{");
        json_out_text(out, labels);
        json_out_text(out, "}");
    }
    sample(out, "", value);
}

/* Its lines; `labels` are those of all of them, "" or with commas between. */
static void write_buckets(struct json_out *out, const char *name, const char *labels, const double *bounds,
                          const uint64_t *counts, double sum)
{
    uint64_t n = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        n += counts[i];
        sample_bucket(out, name, labels, i < HISTOGRAM_BOUNDS ? &bounds[i] : NULL, n);
    }
    sample_of(out, name, "_sum", labels, sum);
    sample_of(out, name, "_count", labels, (double)n);
}

static void write_histogram(struct json_out *out, const char *name, const char *help,
                            const struct histogram *histogram)
{
    declare(out, name, "histogram", help);
    write_buckets(out, name, "", histogram_seconds.reals, histogram->counts,
                  (double)histogram->sum / histogram_seconds.per_unit);
}

/* A label's value: backslash, quote and newline are escaped; JSON's other escapes cannot come, for names have
 * no control characters. */
static void label(struct json_out *out, const char *name, const char *value)
{
    json_out_text(out, name);
    json_out_text(out, "=");
    json_out_name(out, value);
}

static void write_answers(const struct counters *counters, struct json_out *out)
{
    declare(out, "quern_http_responses_total", "counter", "HTTP responses by status.");
    for (unsigned code = 0; code < COUNTERS_CODES; code++) {
        if (counters->answers[code] == 0)
            continue;
        json_out_text(out, "quern_http_responses_total{code=\"");
        json_out_number(out, code);
        json_out_text(out, "\"} ");
        json_out_number(out, (int64_t)counters->answers[code]);
        json_out_text(out, "\n");
    }
}

static void write_gateway(const struct gateway *gateway, struct json_out *out)
{
    const struct counters *counters = &gateway->counters;
    struct refusal refusal;
    uint64_t spans_sent, spans_lost;
    single(out, "quern_up", "gauge", "Whether the pool responds.",
           gateway_check(gateway, NULL, &refusal) == 0);
    single(out, "quern_http_requests_in_flight", "gauge", "Requests being answered.", gateway->working);
    write_answers(counters, out);
    single(out, "quern_connections_ended_total", "counter",
           "Idle connections closed to make room for new ones.", (double)counters->connections_ended);
    single(out, "quern_connections_refused_total", "counter",
           "Connections refused because their address had too many.", (double)counters->connections_refused);
    single(out, "quern_streams_cut_total", "counter", "Streams cut off because their client read too slowly.",
           (double)gateway->streams.cut);
    single(out, "quern_stream_unread_bytes", "gauge", "Unread bytes of all answers.",
           (double)gateway->streams.unread.budget.used);
    single(out, "quern_body_bytes", "gauge", "Bytes of memory for request bodies.",
           (double)gateway->bodies.used);
    single(out, "quern_abandoned_total", "counter",
           "Generations cancelled because their client disconnected.", (double)counters->abandoned);
    single(out, "quern_prompt_tokens_total", "counter", "Prompt tokens.", (double)counters->prompt_tokens);
    single(out, "quern_cached_tokens_total", "counter", "Prompt tokens found in the prefix cache.",
           (double)counters->cached_tokens);
    single(out, "quern_generated_tokens_total", "counter", "Answer tokens.", (double)counters->output_tokens);
    single(out, "quern_request_log_lines_total", "counter", "Requests written to the request log.",
           (double)gateway->request_log.written);
    single(out, "quern_request_log_lost_total", "counter",
           "Requests that could not be written to the request log.", (double)gateway->request_log.lost);
    exporter_count(gateway->exporter, &spans_sent, &spans_lost);
    single(out, "quern_traced_requests_total", "counter", "Requests whose spans the collector accepted.",
           (double)spans_sent);
    single(out, "quern_traced_requests_lost_total", "counter",
           "Requests whose spans the collector did not accept.", (double)spans_lost);
    write_histogram(out, "quern_time_to_first_token_seconds", "Time from a request to its first token.",
                    &counters->first_token);
    write_histogram(out, "quern_inter_token_seconds", "Mean time between the tokens of an answer.",
                    &counters->between_tokens);
    write_histogram(out, "quern_queue_seconds", "Time from a request to its assignment to a worker.",
                    &counters->queue);
    write_histogram(out, "quern_generation_seconds", "Time from a request to the end of its answer.",
                    &counters->generation);
}

/* What is told of each worker beside WORKER_GAUGES (proto/gauges.h): its name, what it is, where its value
 * is from. */
#define WORKER_METRICS(ROW)                                                                                  \
    ROW("ready", "gauge", "Whether the worker accepts work.", strcmp(worker->state, "ready") == 0)           \
    ROW("slots", "gauge", "Maximum number of sequences at once.", worker->slots)                             \
    ROW("steps_total", "counter", "Steps.", (double)worker->steps)                                           \
    ROW("restarts_total", "counter", "Restarts of the worker.", worker->restarts)

static void write_workers(const struct quern_status *status, struct json_out *out)
{
#define WRITE_METRIC(metric, type, help, value)                                                              \
    declare(out, "quern_worker_" metric, type, help);                                                        \
    for (const struct quern_worker *worker = status->workers; worker < status->workers + status->n_workers;  \
         worker++) {                                                                                         \
        json_out_text(out, "quern_worker_" metric "{");                                                      \
        label(out, "worker", worker->name);                                                                  \
        json_out_text(out, ",");                                                                             \
        label(out, "model", worker->model);                                                                  \
        sample(out, "}", value);                                                                             \
    }
#define WRITE_GAUGE(wire_type, name, metric, type, help)                                                     \
    WRITE_METRIC(metric, type, help, (double)worker->name)
    WORKER_METRICS(WRITE_METRIC)
    WORKER_GAUGES(WRITE_GAUGE)
}

static void write_of_worker(const struct quern_worker *worker, const char *metric, const char *more,
                            const struct quern_histogram *histogram, struct json_out *out)
{
    struct json_out labels = {0};
    label(&labels, "worker", worker->name);
    json_out_text(&labels, ",");
    label(&labels, "model", worker->model);
    json_out_text(&labels, more[0] ? "," : "");
    json_out_text(&labels, more);
    if (labels.failed || buffer_append(&labels.buffer, "", 1) < 0)
        out->failed = true;
    else
        write_buckets(out, metric, (const char *)labels.buffer.data, histogram->bounds, histogram->counts,
                      histogram->sum);
    buffer_deinit(&labels.buffer);
}

static void write_histograms(const struct quern_status *status, struct json_out *out)
{
#define WRITE_HISTOGRAM(scale, name, metric, more, help)                                                     \
    if ((help)[0])                                                                                           \
        declare(out, "quern_worker_" metric, "histogram", help);                                             \
    for (size_t i = 0; i < status->n_workers; i++)                                                           \
        write_of_worker(&status->workers[i], "quern_worker_" metric, more, &status->workers[i].name, out);
    WORKER_HISTOGRAMS(WRITE_HISTOGRAM)
}

static void write_pool(const struct quern_status *status, struct json_out *out)
{
    single(out, "quern_pool_sessions", "gauge", "Clients of the broker.", status->sessions);
    single(out, "quern_pool_queued", "gauge", "Requests waiting for a worker.", status->queued);
    single(out, "quern_pool_running", "gauge", "Requests assigned to workers.", status->running);
    single(out, "quern_pool_admitted_total", "counter", "Requests accepted.", (double)status->admitted);
    single(out, "quern_pool_rejected_total", "counter", "Requests rejected.", (double)status->rejected);
    single(out, "quern_pool_ended_total", "counter", "Requests ended.", (double)status->ended);
    single(out, "quern_pool_moved_total", "counter", "Requests moved to another worker.",
           (double)status->moved);
    single(out, "quern_pool_journal_bytes", "gauge", "Bytes of output kept for replays.",
           (double)status->journal_bytes);
    single(out, "quern_pool_journal_limit_bytes", "gauge", "Limit of the bytes of output kept for replays.",
           (double)status->journal_limit);
    single(out, "quern_pool_journal_waiting", "gauge", "Running requests that wait for room in the journal.",
           status->journal_waiting);
    write_workers(status, out);
    write_histograms(status, out);
}

enum of_workers { SLOTS, KV_FREE, KV_TOTAL, HITS, COMPUTED };

/* The sum over a pool's workers, by its last status. */
static double of_workers(const struct fleet_pool *pool, enum of_workers what)
{
    double sum = 0;
    for (size_t i = 0; pool->pool.status && i < pool->pool.status->n_workers; i++) {
        const struct quern_worker *worker = &pool->pool.status->workers[i];
        const double values[] = {worker->slots, worker->kv_free, worker->kv_total, (double)worker->cache_hits,
                                 (double)worker->prefill_tokens};
        sum += values[what];
    }
    return sum;
}

/* What is told of each member of a fleet: its name, what it is, where its value is from. */
#define FLEET_METRICS(ROW)                                                                                   \
    ROW("up", "gauge", "Whether the pool responds.", fleet_pool_is_up(pool))                                 \
    ROW("draining", "gauge", "Whether the pool gets no new requests because it is ending or was removed.",   \
        pool->leaving || pool->pool.draining)                                                                \
    ROW("requests", "gauge", "Requests of this gateway at the pool.", pool->n_requests)                      \
    ROW("load_tokens", "gauge", "Tokens that the pool has to process and generate for this gateway.",        \
        pool->load)                                                                                          \
    ROW("foreign_requests", "gauge", "Requests of others at the pool, by its last status.", pool->foreign)   \
    ROW("foreign_load_tokens", "gauge", "Tokens that the pool has to process and generate for others.",      \
        fleet_foreign_load(pool))                                                                            \
    ROW("prefix_pieces", "gauge", "Pieces of prompts that the pool has cached, as it reports.",              \
        pool->published.pieces)                                                                              \
    ROW("queued", "gauge", "Requests waiting for a worker of the pool, by its last status.",                 \
        pool->pool.status ? pool->pool.status->queued : 0)                                                   \
    ROW("running", "gauge", "Requests assigned to the pool's workers, by its last status.",                  \
        pool->pool.status ? pool->pool.status->running : 0)                                                  \
    ROW("slots", "gauge", "Maximum number of requests that the pool's workers run at once.",                 \
        of_workers(pool, SLOTS))                                                                             \
    ROW("kv_free_blocks", "gauge", "Free blocks of the pool's KV caches.", of_workers(pool, KV_FREE))        \
    ROW("kv_blocks", "gauge", "Blocks of the pool's KV caches.", of_workers(pool, KV_TOTAL))                 \
    ROW("cache_hits_total", "counter", "Prompt tokens that the pool found in caches.",                       \
        of_workers(pool, HITS))                                                                              \
    ROW("prefill_tokens_total", "counter", "Prompt tokens that the pool computed.",                          \
        of_workers(pool, COMPUTED))                                                                          \
    ROW("chosen_total", "counter", "Requests sent to the pool.", (double)pool->chosen)                       \
    ROW("moved_total", "counter", "Requests moved from the pool to another one.", (double)pool->moved)       \
    ROW("moved_unequal_total", "counter", "Requests moved from the pool to one with different arithmetic.",  \
        (double)pool->moved_unequal)

static void write_fleet(const struct fleet *fleet, struct json_out *out)
{
    single(out, "quern_fleet_members", "gauge", "Pools of the fleet.", (double)fleet->n_pools);
    single(out, "quern_fleet_cut_off", "gauge", "Whether most pools stopped responding at the same time.",
           fleet_is_cut_off(fleet));
#define WRITE_FLEET_METRIC(metric, type, help, value)                                                        \
    declare(out, "quern_fleet_" metric, type, help);                                                         \
    for (size_t i = 0; i < fleet->n_pools; i++) {                                                            \
        const struct fleet_pool *pool = fleet->pools[i];                                                     \
        if (fleet_is_outlived(fleet, i))                                                                     \
            continue;                                                                                        \
        json_out_text(out, "quern_fleet_" metric "{");                                                       \
        label(out, "pool", pool->member.name);                                                               \
        sample(out, "}", value);                                                                             \
    }
    FLEET_METRICS(WRITE_FLEET_METRIC)
}

void metrics_handle(struct exchange *exchange)
{
    const struct gateway *gateway = exchange->gateway;
    struct json_out out = {0};
    write_gateway(gateway, &out);
    const struct fleet *fleet = &gateway->fleet;
    if (fleet_is_many(fleet))
        write_fleet(fleet, &out);
    else if (fleet->pools[0]->pool.status)
        write_pool(fleet->pools[0]->pool.status, &out);
    if (out.failed)
        exchange_reply_json(exchange, 500, &out);
    else
        exchange_reply(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", &out.buffer);
}
