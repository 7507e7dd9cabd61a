/* SPDX-License-Identifier: MIT */
/* /status: how the pool is, as it said within the last second or so, under the protocol's names: what
 * `quern status --json` prints, and when it was said. */

#include "gateway/watch/status.h"

#include "gateway/core/gateway.h"
#include "gateway/core/named_pool.h"
#include "proto/message.h"

static void of_text(struct json_out *out, const char *text)
{
    json_out_name(out, text);
}

static void of_flag(struct json_out *out, bool flag)
{
    json_out_bool(out, flag);
}

static void of_number(struct json_out *out, uint64_t number)
{
    json_out_number(out, (int64_t)number);
}

static void of_real(struct json_out *out, double real)
{
    json_out_real(out, real);
}

static void of_histogram(struct json_out *out, struct quern_histogram histogram)
{
    json_out_text(out, "{\"bounds\":[");
    for (size_t i = 0; i < QUERN_HISTOGRAM_BOUNDS; i++) {
        json_out_text(out, i ? "," : "");
        json_out_real(out, histogram.bounds[i]);
    }
    json_out_text(out, "],\"counts\":[");
    for (size_t i = 0; i <= QUERN_HISTOGRAM_BOUNDS; i++) {
        json_out_text(out, i ? "," : "");
        of_number(out, histogram.counts[i]);
    }
    json_out_text(out, "],\"sum\":");
    json_out_real(out, histogram.sum);
    json_out_text(out, "}");
}

static void of_texts(struct json_out *out, const char *const *texts)
{
    json_out_text(out, "[");
    for (size_t i = 0; texts[i]; i++) {
        json_out_text(out, i ? "," : "");
        json_out_name(out, texts[i]);
    }
    json_out_text(out, "]");
}

#define WRITE_VALUE(out, value)                                                                              \
    _Generic((value), const char *: of_text, const char *const *: of_texts, bool: of_flag,                   \
             uint32_t: of_number, uint64_t: of_number, double: of_real,                              \
             struct quern_histogram: of_histogram)(out, value)

/* A member, behind what stands before it: an opening brace, then commas. */
#define WRITE_MEMBER(from, name)                                                                             \
    json_out_text(out, before);                                                                              \
    json_out_text(out, "\"" #name "\":");                                                                    \
    WRITE_VALUE(out, (from)->name);                                                                          \
    before = ",";

static void write_worker(const struct quern_worker *worker, struct json_out *out)
{
    const char *before = "{";
#define WORKER_MEMBER(type, name, ...) WRITE_MEMBER(worker, name)
    WORKER_STATUS_FIELDS(WORKER_MEMBER)
    json_out_text(out, "}");
}

static void write_member(const struct fleet_pool *pool, struct json_out *out)
{
    const struct quern_status *status = pool->pool.status;
    json_out_text(out, "{\"name\":");
    json_out_name(out, pool->member.name);
    json_out_text(out, ",\"connect\":");
    json_out_name(out, pool->member.file.connect);
    json_out_text(out, ",\"up\":");
    json_out_bool(out, fleet_pool_is_up(pool));
    json_out_text(out, ",\"draining\":");
    json_out_bool(out, pool->leaving || pool->pool.draining);
    json_out_text(out, ",\"running\":");
    json_out_number(out, status ? status->running : 0);
    json_out_text(out, ",\"queued\":");
    json_out_number(out, status ? status->queued : 0);
    json_out_text(out, ",\"requests\":");
    json_out_number(out, pool->n_requests);
    json_out_text(out, ",\"chosen\":");
    json_out_number(out, (int64_t)pool->chosen);
    json_out_text(out, ",\"moved\":");
    json_out_number(out, (int64_t)pool->moved);
    json_out_text(out, "}");
}

/* The members of a fleet as this gateway sees them. */
static void write_members(const struct fleet *fleet, struct json_out *out)
{
    const char *before = "";
    json_out_text(out, ",\"pools\":[");
    for (size_t i = 0; i < fleet->n_pools; i++) {
        if (fleet_is_outlived(fleet, i))
            continue;
        json_out_text(out, before);
        write_member(fleet->pools[i], out);
        before = ",";
    }
    json_out_text(out, "]");
}

static void write_status(const struct quern_status *status, int64_t time_ms, const struct fleet *fleet,
                         struct json_out *out)
{
    const char *before = ",";
    json_out_text(out, "{\"time_ms\":");
    json_out_number(out, time_ms);
#define POOL_MEMBER(type, name, ...) WRITE_MEMBER(status, name)
    POOL_STATUS_FIELDS(POOL_MEMBER)
    json_out_text(out, ",\"workers\":[");
    for (size_t i = 0; i < status->n_workers; i++) {
        json_out_text(out, i ? "," : "");
        write_worker(&status->workers[i], out);
    }
    json_out_text(out, "]");
    if (fleet_is_many(fleet))
        write_members(fleet, out);
    json_out_text(out, "}");
}

void status_handle(struct exchange *exchange)
{
    const struct fleet_pool *pool;
    const struct quern_status *status;
    struct refusal refusal;
    struct json_out out = {0};
    if (named_pool_status(exchange, &pool, &status, &refusal) != 0) {
        exchange_refuse(exchange, &refusal);
        return;
    }
    write_status(status, pool->pool.status_ms, &exchange->gateway->fleet, &out);
    exchange_reply_json(exchange, 200, &out);
}
