/* SPDX-License-Identifier: MIT */
/* See exporter.h. The lock is held for copies only, never while something is sent. */

#include "gateway/telemetry/exporter.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/amount.h"
#include "common/clock.h"
#include "common/log.h"
#include "gateway/telemetry/endpoint.h"

#define LINGER_NS  CLOCK_NS_PER_S /* for more of a batch */
#define FIRST_NS   CLOCK_NS_PER_S /* between two attempts */
#define MOST_NS    (30 * CLOCK_NS_PER_S)
#define STOP_NS    (2 * CLOCK_NS_PER_S)
#define CONNECT_MS 5000l
#define POST_MS    10000l
#define REPLY_KEPT 4096u             /* bytes: it may say what was refused */
#define REPLY_MOST ((size_t)1 << 20) /* then the connection is closed */

struct exporter {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* on the monotonic clock */
    struct traced_request waiting[EXPORTER_WAITING];
    size_t first, n; /* a ring */
    _Atomic uint64_t sent, lost;
    bool stopping;
    _Atomic uint64_t stop_ns; /* when sending ends too; 0: not stopping */

    /* The thread's own. */
    struct endpoint endpoint;
    const struct curl_calls *curl;
    CURL *handle;
    char curl_text[CURL_ERROR_SIZE];
    struct traced_request batch[EXPORTER_BATCH];
    struct json_out body;
    char reply[REPLY_KEPT];
    size_t reply_bytes;
    bool failing;
    uint64_t lost_said;
};

enum outcome { TAKEN, REFUSED_FOR_GOOD, AGAIN };

static bool is_over(struct exporter *exporter)
{
    const uint64_t stop_ns = atomic_load(&exporter->stop_ns);
    return stop_ns > 0 && clock_ns() >= stop_ns;
}

/* ---- one POST ---- */

static size_t on_reply(char *data, size_t size, size_t n, void *arg)
{
    struct exporter *exporter = arg;
    const size_t len = size * n;
    if (exporter->reply_bytes + len > REPLY_MOST)
        return 0; /* an error */
    if (exporter->reply_bytes < REPLY_KEPT) {
        const size_t room = REPLY_KEPT - exporter->reply_bytes;
        memcpy(exporter->reply + exporter->reply_bytes, data, len < room ? len : room);
    }
    exporter->reply_bytes += len;
    return len;
}

static int on_progress(void *arg, curl_off_t down, curl_off_t downloaded, curl_off_t up, curl_off_t uploaded)
{
    return is_over(arg);
}

static bool prepare_handle(struct exporter *exporter)
{
    const struct curl_calls *curl = exporter->curl;
    CURL *handle = exporter->handle = curl->easy_init();
    return handle && curl->easy_setopt(handle, CURLOPT_URL, exporter->endpoint.url) == CURLE_OK &&
           curl->easy_setopt(handle, CURLOPT_HTTPHEADER, exporter->endpoint.headers) == CURLE_OK &&
           curl->easy_setopt(handle, CURLOPT_USERAGENT, "quern-gateway/" QUERN_VERSION) == CURLE_OK &&
           curl->easy_setopt(handle, CURLOPT_NOSIGNAL, 1l) == CURLE_OK &&
           curl->easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS) == CURLE_OK &&
           curl->easy_setopt(handle, CURLOPT_TIMEOUT_MS, POST_MS) == CURLE_OK &&
           curl->easy_setopt(handle, CURLOPT_ERRORBUFFER, exporter->curl_text) == CURLE_OK &&
           curl->easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_reply) == CURLE_OK &&
           curl->easy_setopt(handle, CURLOPT_WRITEDATA, exporter) == CURLE_OK &&
           curl->easy_setopt(handle, CURLOPT_NOPROGRESS, 0l) == CURLE_OK &&
           curl->easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, on_progress) == CURLE_OK &&
           curl->easy_setopt(handle, CURLOPT_XFERINFODATA, exporter) == CURLE_OK;
}

static void say_failing(struct exporter *exporter, const char *why)
{
    if (!exporter->failing)
        log_error("%s: %s: the collector does not accept spans", exporter->endpoint.url, why);
    exporter->failing = true;
}

/* Of a whole answer: {"partialSuccess": {"rejectedSpans": "3", "errorMessage": "…"}}. */
static void look_for_rejects(struct exporter *exporter)
{
    const size_t len = exporter->reply_bytes < REPLY_KEPT ? exporter->reply_bytes : REPLY_KEPT;
    json_t *reply = json_loadb(exporter->reply, len, 0, NULL);
    const json_t *part = json_object_get(reply, "partialSuccess"),
                 *n = json_object_get(part, "rejectedSpans");
    const char *text = json_string_value(json_object_get(part, "errorMessage"));
    const long long rejected = json_is_string(n) ? atoll(json_string_value(n)) : json_integer_value(n);
    if (rejected > 0)
        log_warn("%s: %lld spans were rejected: %.200s", exporter->endpoint.url, rejected, text ? text : "");
    json_decref(reply);
}

/* By the specification, 429, 502, 503 and 504 are to be sent again, and no other answer. */
static enum outcome judge_status(struct exporter *exporter, long status, uint64_t *ret_wait_ns)
{
    curl_off_t retry_after_s = 0;
    struct error why;
    if (status >= 200 && status < 300) {
        look_for_rejects(exporter);
        const uint64_t lost = exporter->lost;
        if (exporter->failing)
            log_info("%s: the collector accepts spans again; %s lost", exporter->endpoint.url,
                     amount_of(lost - exporter->lost_said, "request").text);
        exporter->lost_said = lost;
        exporter->failing = false;
        return TAKEN;
    }
    error_set(&why, 0, "status %ld", status);
    say_failing(exporter, why.text);
    if (status != 429 && status != 502 && status != 503 && status != 504)
        return REFUSED_FOR_GOOD;
    exporter->curl->easy_getinfo(exporter->handle, CURLINFO_RETRY_AFTER, &retry_after_s);
    if (retry_after_s > 0)
        *ret_wait_ns = retry_after_s < 60 ? (uint64_t)retry_after_s * CLOCK_NS_PER_S : 60 * CLOCK_NS_PER_S;
    return AGAIN;
}

static enum outcome post(struct exporter *exporter, uint64_t *ret_wait_ns)
{
    const struct curl_calls *curl = exporter->curl;
    const struct buffer *body = &exporter->body.buffer;
    long status = 0;
    exporter->reply_bytes = 0;
    exporter->curl_text[0] = 0;
    curl->easy_setopt(exporter->handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->len);
    curl->easy_setopt(exporter->handle, CURLOPT_POSTFIELDS, body->data);
    const CURLcode code = curl->easy_perform(exporter->handle);
    curl->easy_getinfo(exporter->handle, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && status > 0)) {
        say_failing(exporter, exporter->curl_text[0] ? exporter->curl_text : curl->easy_strerror(code));
        return AGAIN;
    }
    return judge_status(exporter, status, ret_wait_ns);
}

/* ---- the thread ---- */

static void wait_until(struct exporter *exporter, uint64_t ns)
{
    const struct timespec until = {.tv_sec = (time_t)(ns / CLOCK_NS_PER_S),
                                   .tv_nsec = (long)(ns % CLOCK_NS_PER_S)};
    pthread_cond_timedwait(&exporter->changed, &exporter->lock, &until);
}

/* Requests for a POST; 0: it is stopping, and there are none. */
static size_t take_batch(struct exporter *exporter)
{
    pthread_mutex_lock(&exporter->lock);
    while (exporter->n == 0 && !exporter->stopping)
        pthread_cond_wait(&exporter->changed, &exporter->lock);
    const uint64_t until = clock_ns() + LINGER_NS;
    while (exporter->n < EXPORTER_BATCH && !exporter->stopping && clock_ns() < until)
        wait_until(exporter, until);
    const size_t n = exporter->n < EXPORTER_BATCH ? exporter->n : EXPORTER_BATCH;
    for (size_t i = 0; i < n; i++)
        exporter->batch[i] = exporter->waiting[(exporter->first + i) % EXPORTER_WAITING];
    exporter->first = (exporter->first + n) % EXPORTER_WAITING;
    exporter->n -= n;
    pthread_mutex_unlock(&exporter->lock);
    return n;
}

/* False: it is stopping. */
static bool rest(struct exporter *exporter, uint64_t ns)
{
    const uint64_t until = clock_ns() + ns;
    pthread_mutex_lock(&exporter->lock);
    while (!exporter->stopping && clock_ns() < until)
        wait_until(exporter, until);
    const bool goes_on = !exporter->stopping;
    pthread_mutex_unlock(&exporter->lock);
    return goes_on;
}

static enum outcome deliver(struct exporter *exporter)
{
    uint64_t pause_ns = FIRST_NS;
    for (;;) {
        uint64_t wait_ns = pause_ns;
        const enum outcome outcome = post(exporter, &wait_ns);
        if (outcome != AGAIN)
            return outcome;
        if (!rest(exporter, wait_ns))
            return REFUSED_FOR_GOOD;
        pause_ns = pause_ns < MOST_NS / 2 ? 2 * pause_ns : MOST_NS;
    }
}

static void *run(void *arg)
{
    struct exporter *exporter = arg;
    size_t n;
    while ((n = take_batch(exporter)) > 0) {
        json_out_reset(&exporter->body);
        spans_write(&exporter->body, exporter->batch, n);
        const bool taken = !exporter->body.failed && !is_over(exporter) && deliver(exporter) == TAKEN;
        exporter->sent += taken ? n : 0;
        exporter->lost += taken ? 0 : n;
    }
    return NULL;
}

/* ---- the loop ---- */

int exporter_check(const struct exporter_options *options, struct error *err)
{
    struct endpoint endpoint = {0};
    int r = endpoint_read(options->url, options->headers, &endpoint, err);
    endpoint_deinit(&endpoint);
    return r;
}

static void init_changed(struct exporter *exporter)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&exporter->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static struct exporter *free_exporter(struct exporter *exporter)
{
    const struct curl_calls *curl = exporter->curl;
    if (exporter->handle)
        curl->easy_cleanup(exporter->handle);
    endpoint_deinit(&exporter->endpoint);
    json_out_deinit(&exporter->body);
    pthread_cond_destroy(&exporter->changed);
    pthread_mutex_destroy(&exporter->lock);
    free(exporter);
    curl->global_cleanup();
    return NULL;
}

int exporter_start(const struct exporter_options *options, struct exporter **ret_exporter, struct error *err)
{
    const struct curl_calls *curl = curl_calls_load(err);
    if (!curl)
        return -ENOTSUP;
    struct exporter *exporter = calloc(1, sizeof *exporter);
    if (!exporter)
        return error_set(err, -ENOMEM, "out of memory");
    exporter->curl = curl;
    pthread_mutex_init(&exporter->lock, NULL);
    init_changed(exporter);
    int r = curl->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK
                ? endpoint_read(options->url, options->headers, &exporter->endpoint, err)
                : error_set(err, -ENOMEM, "libcurl cannot be initialized");
    if (r == 0 && !prepare_handle(exporter))
        r = error_set(err, -ENOMEM, "out of memory");
    if (r == 0 && (r = -pthread_create(&exporter->thread, NULL, run, exporter)) < 0)
        error_set(err, r, "a thread for spans: %s", strerror(-r));
    if (r < 0)
        free_exporter(exporter);
    else
        *ret_exporter = exporter;
    return r;
}

void exporter_add(struct exporter *exporter, const struct traced_request *request)
{
    pthread_mutex_lock(&exporter->lock);
    if (exporter->n == EXPORTER_WAITING) {
        exporter->lost++;
    } else {
        exporter->waiting[(exporter->first + exporter->n++) % EXPORTER_WAITING] = *request;
        if (exporter->n == 1 || exporter->n == EXPORTER_BATCH)
            pthread_cond_signal(&exporter->changed);
    }
    pthread_mutex_unlock(&exporter->lock);
}

void exporter_count(const struct exporter *exporter, uint64_t *ret_sent, uint64_t *ret_lost)
{
    *ret_sent = exporter ? exporter->sent : 0;
    *ret_lost = exporter ? exporter->lost : 0;
}

struct exporter *exporter_stop(struct exporter *exporter)
{
    if (!exporter)
        return NULL;
    atomic_store(&exporter->stop_ns, clock_ns() + STOP_NS);
    pthread_mutex_lock(&exporter->lock);
    exporter->stopping = true;
    pthread_cond_signal(&exporter->changed);
    pthread_mutex_unlock(&exporter->lock);
    pthread_join(exporter->thread, NULL);
    if (exporter->lost > exporter->lost_said)
        log_warn("%s: the collector did not accept the spans of %s", exporter->endpoint.url,
                 amount_of(exporter->lost - exporter->lost_said, "request").text);
    return free_exporter(exporter);
}
