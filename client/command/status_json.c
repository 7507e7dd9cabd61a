/* SPDX-License-Identifier: MIT */
/* Status as JSON: the protocol's lists of fields, walked over libquern's structs. A type says by itself what
 * it is in JSON. */

#include "client/command/status_json.h"

#include "proto/message.h"

static json_t *of_text(const char *text)
{
    return json_string(text);
}

static json_t *of_flag(bool flag)
{
    return json_boolean(flag);
}

static json_t *of_number(uint64_t number)
{
    return json_integer((json_int_t)number);
}

static json_t *of_real(double real)
{
    return json_real(real);
}

static json_t *of_histogram(struct quern_histogram histogram)
{
    json_t *json = json_object(), *bounds = json_array(), *counts = json_array();
    for (size_t i = 0; i < QUERN_HISTOGRAM_BOUNDS; i++)
        json_array_append_new(bounds, json_real(histogram.bounds[i]));
    for (size_t i = 0; i <= QUERN_HISTOGRAM_BOUNDS; i++)
        json_array_append_new(counts, of_number(histogram.counts[i]));
    json_object_set_new(json, "bounds", bounds);
    json_object_set_new(json, "counts", counts);
    json_object_set_new(json, "sum", of_real(histogram.sum));
    return json;
}

static json_t *of_texts(const char *const *texts)
{
    json_t *json = json_array();
    while (*texts)
        json_array_append_new(json, json_string(*texts++));
    return json;
}

#define JSON_OF(value)                                                                                       \
    _Generic((value), const char *: of_text, const char *const *: of_texts, bool: of_flag,                   \
             uint32_t: of_number, uint64_t: of_number, double: of_real,                              \
             struct quern_histogram: of_histogram)(value)

static json_t *json_of_worker(const struct quern_worker *worker)
{
    json_t *json = json_object();
#define SET_OF_WORKER(type, name, ...) json_object_set_new(json, #name, JSON_OF(worker->name));
    WORKER_STATUS_FIELDS(SET_OF_WORKER)
    return json;
}

json_t *status_json(const struct quern_status *status)
{
    json_t *json = json_object(), *workers = json_array();
#define SET_OF_POOL(type, name, ...) json_object_set_new(json, #name, JSON_OF(status->name));
    POOL_STATUS_FIELDS(SET_OF_POOL)
    for (size_t i = 0; i < status->n_workers; i++)
        json_array_append_new(workers, json_of_worker(&status->workers[i]));
    json_object_set_new(json, "workers", workers);
    return json;
}

json_t *status_json_requests(const struct quern_status *status)
{
    json_t *requests = json_array();
    for (size_t i = 0; i < status->n_requests; i++) {
        const struct quern_request_status *request = &status->requests[i];
        json_t *json = json_object();
#define SET_OF_REQUEST(type, name, ...) json_object_set_new(json, #name, JSON_OF(request->name));
        REQUEST_STATUS_FIELDS(SET_OF_REQUEST)
        json_array_append_new(requests, json);
    }
    return requests;
}
