/* SPDX-License-Identifier: MIT */
/* quern bench gateway: what HTTP costs, before a pool whose tokens are free.
 *
 * A private pool with the null device and a gateway of its own, all on this machine with this client.
 * Throughput is that of many streams, each told how many tokens it had; with frames as they are made by
 * default, and with one for every token, which is an event each. What HTTP adds to the first token is taken
 * from requests of one token, one over the pool's own protocol and one by HTTP in turn. Memory is what the
 * gateway holds for streams that have begun and wait: the worker is let run for moments only. */

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client/command/bench/bench.h"
#include "client/command/bench/http.h"
#include "client/command/terminal/interrupt.h"
#include "client/command/bench/private_gateway.h"
#include "client/command/pool/private_pool.h"
#include "client/command/verbs.h"
#include <quern.h>
#include "common/program/arguments.h"
#include "common/clock.h"
#include "common/system/topology.h"

#define GOAL_TOKENS_PER_S 200000
#define GOAL_MEMORY       (100u << 20)
#define GOAL_ADDED_US     300
#define FRAME_US          250    /* the pool's default */
#define STALL_MS          20000  /* without anything that comes: give up */
#define IDLE_TOKENS       600000 /* asked for by all the streams that are to wait */
#define PULSE_US          2000
#define SHOWN_BYTES       400 /* of an answer that is wrong */
#define QUIET_MS          100
#define MAX_STREAMS       4000
#define MAX_PROBES        100000

struct options {
    const char *model;
    uint32_t streams, tokens, idle, probes, repetitions;
    bool json;
};

struct gateway_bench {
    const struct options *options;
    struct private_pool pool;
    struct private_gateway gateway;
    struct quern *client;
    struct bench_http *streams; /* [MAX_STREAMS] */
    int epoll;
};

/* ---- a pool, its gateway and a client of each ---- */

/* All of them together fit into the half of a journal that one session may fill. */
static uint32_t idle_tokens(const struct options *options)
{
    return IDLE_TOKENS / options->idle;
}

static int start(struct gateway_bench *bench, const char *model, uint32_t frame_us, struct error *err)
{
    const struct options *options = bench->options;
    const struct pool_options pool_options = {.model = model,
                                              .device = "null",
                                              .context = options->tokens + 64 + idle_tokens(options),
                                              .slots = options->streams + options->idle + 1,
                                              .has_frame_us = true,
                                              .frame_us = frame_us};
    int r = private_pool_start(&bench->pool, &pool_options, err);
    if (r == 0)
        r = private_gateway_start(&bench->gateway, bench->pool.rundir, err);
    return r == 0 ? pool_connect(bench->pool.rundir, NULL, NULL, &bench->client, err) : r;
}

static void end(struct gateway_bench *bench)
{
    for (uint32_t i = 0; i < MAX_STREAMS; i++)
        bench_http_close(&bench->streams[i]);
    bench->client = quern_free(bench->client);
    private_gateway_end(&bench->gateway);
    private_pool_end(&bench->pool);
}

static int watch(struct gateway_bench *bench, uint32_t i, struct error *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
    return epoll_ctl(bench->epoll, EPOLL_CTL_ADD, bench->streams[i].fd, &event) < 0
               ? error_set(err, -errno, "epoll: %s", strerror(errno))
               : 0;
}

static int open_streams(struct gateway_bench *bench, uint32_t n, uint32_t tokens, struct error *err)
{
    int r = 0;
    for (uint32_t i = 0; i < n && r == 0; i++) {
        r = bench_http_open(&bench->streams[i], &bench->gateway.address, err);
        if (r == 0)
            r = watch(bench, i, err);
        if (r == 0)
            r = bench_http_ask(&bench->streams[i], i, tokens, err);
    }
    return r;
}

/* Reads what comes next; *ret_whole more of the answers are whole. */
static int read_streams(struct gateway_bench *bench, int wait_ms, uint32_t *ret_whole, struct error *err)
{
    struct epoll_event events[64];
    int n = epoll_wait(bench->epoll, events, 64, wait_ms);
    if (interrupt_signal())
        return error_set(err, -EINTR, "interrupted");
    if (n == 0)
        return error_set(err, -ETIMEDOUT, "nothing received for %d ms", wait_ms);
    for (int i = 0; i < n; i++) {
        struct bench_http *http = &bench->streams[events[i].data.u32];
        int r = bench_http_read(http, err);
        if (r < 0)
            return r;
        *ret_whole += r == 0;
    }
    return 0;
}

/* ---- throughput ---- */

struct rate {
    double tokens_per_s, events_per_s, bytes_per_token;
};

static int measure_once(struct gateway_bench *bench, struct rate *ret_rate, struct error *err)
{
    const struct options *options = bench->options;
    uint64_t start_ns = clock_ns(), bytes = 0, events = 0;
    uint32_t whole = 0;
    int r = open_streams(bench, options->streams, options->tokens, err);
    while (r == 0 && whole < options->streams)
        r = read_streams(bench, STALL_MS, &whole, err);
    double seconds = (double)(clock_ns() - start_ns) / CLOCK_NS_PER_S;
    for (uint32_t i = 0; i < options->streams && r == 0; i++) {
        struct bench_http *http = &bench->streams[i];
        if (!bench_http_had(http, options->tokens))
            r = error_set(err, -EPROTO, "a stream did not have %u tokens: …%s", options->tokens,
                          http->tail + (http->tail_len > SHOWN_BYTES ? http->tail_len - SHOWN_BYTES : 0));
        bytes += http->bytes;
        events += http->events - 2; /* with text: not the ones of the end and of the usage */
        bench_http_close(http);
    }
    double tokens = (double)options->streams * options->tokens;
    *ret_rate = (struct rate){tokens / seconds, (double)events / seconds, (double)bytes / tokens};
    return r;
}

static int compare_rates(const void *a, const void *b)
{
    return bench_compare_doubles(&((const struct rate *)a)->tokens_per_s,
                                 &((const struct rate *)b)->tokens_per_s);
}

/* The median of several runs. */
static int measure_rate(struct gateway_bench *bench, struct rate *ret_rate, struct error *err)
{
    struct rate rates[64];
    uint32_t n = bench->options->repetitions;
    int r = 0;
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = measure_once(bench, &rates[i], err);
    if (r == 0) {
        qsort(rates, n, sizeof *rates, compare_rates);
        *ret_rate = rates[n / 2];
    }
    return r;
}

/* ---- the first token ---- */

static void on_output(void *arg, const struct quern_output *output)
{
    if (output->end)
        *(bool *)arg = true;
}

/* A request of one token over the pool's own protocol, which comes with its end. */
static int ask_pool(struct gateway_bench *bench, uint32_t number, double *ret_us, struct error *err)
{
    const int32_t prompt[] = {3, 4, 5, (int32_t)(6 + number % 64)};
    struct quern_request request;
    struct quern_error said = {0};
    bool over = false;
    quern_request_init(&request);
    request.ids = prompt;
    request.n_ids = sizeof prompt / sizeof *prompt;
    request.max_tokens = 1;
    request.has_seed = true;
    request.seed = number;
    uint64_t start_ns = clock_ns();
    int r = quern_generate(bench->client, &request, on_output, &over, NULL, &said);
    while (r == 0 && !over) {
        r = quern_dispatch(bench->client, 1000, &said);
        if (r == 0 && interrupt_signal())
            return error_set(err, -EINTR, "interrupted");
        if (r == 0 && clock_ns() - start_ns > STALL_MS * CLOCK_NS_PER_MS)
            return error_set(err, -ETIMEDOUT, "nothing received for %d ms", STALL_MS);
    }
    *ret_us = (double)(clock_ns() - start_ns) / 1000;
    return r < 0 ? error_set(err, r, "%s", said.text) : 0;
}

/* The same by HTTP, on a connection that stays: until the first event, and then to the end. */
static int ask_gateway(struct bench_http *http, uint32_t number, double *ret_us, struct error *err)
{
    uint64_t start_ns = clock_ns();
    bool first = false;
    int r = bench_http_ask(http, number, 1, err);
    for (int more = 1; r == 0 && more > 0;) {
        more = bench_http_read(http, err);
        if (!first && http->events > 0) {
            first = true;
            *ret_us = (double)(clock_ns() - start_ns) / 1000;
        }
        r = more < 0 ? more : interrupt_signal() ? error_set(err, -EINTR, "interrupted") : 0;
    }
    return r;
}

struct first_token {
    double pool_us, http_us, http_p99_us; /* medians, and one 99th percentile */
};

static int measure_first_token(struct gateway_bench *bench, struct first_token *ret_first, struct error *err)
{
    uint32_t n = bench->options->probes;
    double *pool_us = calloc(n, sizeof *pool_us), *http_us = calloc(n, sizeof *http_us);
    struct bench_http *http = &bench->streams[0];
    int r = pool_us && http_us ? bench_http_open(http, &bench->gateway.address, err)
                               : error_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < n && r == 0; i++) {
        r = ask_pool(bench, i, &pool_us[i], err);
        if (r == 0)
            r = ask_gateway(http, i, &http_us[i], err);
    }
    bench_http_close(http);
    if (r == 0) {
        qsort(pool_us, n, sizeof *pool_us, bench_compare_doubles);
        qsort(http_us, n, sizeof *http_us, bench_compare_doubles);
        *ret_first = (struct first_token){pool_us[n / 2], http_us[n / 2], http_us[(uint64_t)n * 99 / 100]};
    }
    free(pool_us);
    free(http_us);
    return r;
}

/* ---- memory ---- */

static void on_status(void *arg, const struct quern_answer *answer)
{
    if (answer->code == 0 && answer->status->n_workers > 0)
        *(uint32_t *)arg = answer->status->workers[0].pid;
}

static int worker_pid(struct gateway_bench *bench, uint32_t *ret_pid, struct error *err)
{
    struct quern_error said = {0};
    *ret_pid = 0;
    int r = quern_ask_status(bench->client, 5000, on_status, ret_pid, &said);
    for (uint64_t until = clock_ns() + 5 * CLOCK_NS_PER_S; r == 0 && *ret_pid == 0 && clock_ns() < until;)
        r = quern_dispatch(bench->client, 100, &said);
    if (r < 0)
        return error_set(err, r, "%s", said.text);
    return *ret_pid > 0 ? 0 : error_set(err, -ETIMEDOUT, "the pool names no worker");
}

struct memory {
    uint64_t before, with; /* bytes */
};

/* Reads until nothing comes any more. */
static int read_all(struct gateway_bench *bench, uint32_t *whole, struct error *err)
{
    int r = 0;
    while (r == 0)
        r = read_streams(bench, QUIET_MS, whole, err);
    return r == -ETIMEDOUT ? 0 : r;
}

/* Lets the worker run for moments, until every stream has begun. One that was over by then begins again. */
static int begin_all(struct gateway_bench *bench, pid_t worker, struct error *err)
{
    uint32_t n = bench->options->idle, begun = 0, whole = 0;
    uint64_t until = clock_ns() + STALL_MS * CLOCK_NS_PER_MS;
    int r = 0;
    while (r == 0 && begun < n) {
        kill(worker, SIGCONT);
        usleep(PULSE_US);
        kill(worker, SIGSTOP);
        r = read_all(bench, &whole, err);
        begun = 0;
        for (uint32_t i = 0; i < n && r == 0; i++) {
            struct bench_http *http = &bench->streams[i];
            if (http->whole)
                r = bench_http_ask(http, i, idle_tokens(bench->options), err);
            begun += http->events > 0;
        }
        if (r == 0 && clock_ns() > until)
            r = error_set(err, -ETIMEDOUT, "%u of %u streams began within %d ms", begun, n, STALL_MS);
    }
    return r;
}

/* Streams that have begun, while nothing is made for them. */
static int measure_memory(struct gateway_bench *bench, struct memory *ret_memory, struct error *err)
{
    uint32_t n = bench->options->idle, pid = 0;
    int r = worker_pid(bench, &pid, err);
    if (r < 0)
        return r;
    ret_memory->before = private_gateway_memory(&bench->gateway);
    kill((pid_t)pid, SIGSTOP);
    r = open_streams(bench, n, idle_tokens(bench->options), err);
    if (r == 0)
        r = begin_all(bench, (pid_t)pid, err);
    ret_memory->with = private_gateway_memory(&bench->gateway);
    kill((pid_t)pid, SIGCONT);
    for (uint32_t i = 0; i < n; i++)
        bench_http_close(&bench->streams[i]);
    return r;
}

/* ---- all of it ---- */

static const char *verdict(bool good)
{
    return good ? "reached" : "missed";
}

static void print(const struct options *options, const struct rate *shared, const struct rate *single,
                  const struct first_token *first, const struct memory *memory)
{
    double added = first->http_us - first->pool_us;
    if (options->json) {
        json_t *json =
            json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:I, s:I}", "bench", "gateway",
                      "streams", (int)options->streams, "tokens", (int)options->tokens, "tokens_per_s",
                      shared->tokens_per_s, "events_per_s", shared->events_per_s, "single_tokens_per_s",
                      single->tokens_per_s, "single_events_per_s", single->events_per_s, "first_pool_us",
                      first->pool_us, "first_http_us", first->http_us, "first_http_p99_us",
                      first->http_p99_us, "idle_streams", (int)options->idle, "memory_before",
                      (json_int_t)memory->before, "memory", (json_int_t)memory->with);
        json_dumpf(json, stdout, JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(json);
        return;
    }
    printf("%u streams of %u tokens, null backend, %u cores, median of %u\n", options->streams,
           options->tokens, topology_threads_here(), options->repetitions);
    printf(
        "frames of 250 µs      %10.0f tokens/s  %9.0f events/s  %4.0f bytes/token   goal %d tokens/s: %s\n",
        shared->tokens_per_s, shared->events_per_s, shared->bytes_per_token, GOAL_TOKENS_PER_S,
        verdict(shared->tokens_per_s >= GOAL_TOKENS_PER_S));
    printf(
        "a frame for each token%10.0f tokens/s  %9.0f events/s  %4.0f bytes/token   goal %d tokens/s: %s\n",
        single->tokens_per_s, single->events_per_s, single->bytes_per_token, GOAL_TOKENS_PER_S,
        verdict(single->tokens_per_s >= GOAL_TOKENS_PER_S));
    printf("first token           %7.0f µs by HTTP, %.0f µs without, p50 of %u; p99 %.0f µs   goal +%d µs: "
           "+%.0f µs, %s\n",
           first->http_us, first->pool_us, options->probes, first->http_p99_us, GOAL_ADDED_US, added,
           verdict(added < GOAL_ADDED_US));
    printf("memory                %7.1f MB of the gateway with %u streams that wait, %.1f MB without   goal "
           "100 MB: "
           "%s\n",
           (double)memory->with / 1e6, options->idle, (double)memory->before / 1e6,
           verdict(memory->with > 0 && memory->with < GOAL_MEMORY));
}

static int measure_all(struct gateway_bench *bench, const char *model, struct error *err)
{
    struct rate shared = {0}, single = {0};
    struct first_token first = {0};
    struct memory memory = {0};
    int r = start(bench, model, FRAME_US, err);
    if (r == 0)
        r = measure_first_token(bench, &first, err);
    if (r == 0)
        r = measure_rate(bench, &shared, err);
    end(bench);
    if (r == 0)
        r = start(bench, model, 0, err);
    if (r == 0)
        r = measure_rate(bench, &single, err);
    end(bench);
    if (r == 0)
        r = start(bench, model, FRAME_US, err);
    if (r == 0)
        r = measure_memory(bench, &memory, err);
    end(bench);
    if (r == 0)
        print(bench->options, &shared, &single, &first, &memory);
    return r;
}

static int run(void *options, const char *model, struct error *err)
{
    struct gateway_bench bench = {
        .options = options, .gateway.log = -1, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files); /* one for each stream */
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    bench.streams = calloc(MAX_STREAMS, sizeof *bench.streams);
    int r = bench.streams && bench.epoll >= 0 ? 0 : error_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < MAX_STREAMS && r == 0; i++)
        bench.streams[i].fd = -1;
    if (r == 0)
        r = measure_all(&bench, model, err);
    if (bench.epoll >= 0)
        close(bench.epoll);
    free(bench.streams);
    return r;
}

static const struct argp_option known[] = {
    {"streams", 's', "N", 0, "Streams at once (64)", 0},
    {NULL, 'n', "N", 0, "Tokens of each (4096)", 0},
    {"idle", 'i', "N", 0, "Waiting streams, to measure memory (2000)", 0},
    {"probes", 'p', "N", 0, "Requests of one token, with HTTP and without (1000)", 0},
    {"repetitions", 'r', "N", 0, "Number of throughput measurements (5)", 0},
    {"model", 'm', "FILE", 0, "Any model, for its vocabulary (default: a generated one)", 0},
    {"json", 'J', NULL, 0, "One JSON object", 0},
    {0}};

static const struct argument arguments[] = {
    {'s', ARGUMENT_NUMBER, offsetof(struct options, streams), 1, MAX_STREAMS / 2},
    {'n', ARGUMENT_NUMBER, offsetof(struct options, tokens), 1, 1 << 20},
    {'i', ARGUMENT_NUMBER, offsetof(struct options, idle), 1, MAX_STREAMS / 2},
    {'p', ARGUMENT_NUMBER, offsetof(struct options, probes), 1, MAX_PROBES},
    {'r', ARGUMENT_NUMBER, offsetof(struct options, repetitions), 1, 64},
    {'m', ARGUMENT_TEXT, offsetof(struct options, model), 0, 0},
    {'J', ARGUMENT_FLAG, offsetof(struct options, json), 0, 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    return arguments_take(arguments, known, key, arg, state, state->input);
}

int bench_gateway(int argc, char **argv)
{
    static const struct argp argp = {
        .options = known,
        .parser = parse,
        .doc =
            "Measures the cost of HTTP, with a backend that generates tokens at no cost: tokens per second "
            "of many streams, the latency added to the first token, and the memory of waiting streams."};
    struct options options = {.streams = 64, .tokens = 4096, .idle = 2000, .probes = 1000, .repetitions = 5};
    arguments_parse(&argp, argc, argv, &options);
    return bench_with_model(options.model, "null", run, &options);
}
