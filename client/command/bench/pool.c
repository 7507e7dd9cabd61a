/* SPDX-License-Identifier: MIT */
/* quern bench pool: what the pool itself costs, with a backend whose tokens are free.
 *
 * A private pool with the null device, so everything but the model is real: worker, broker, journal, sockets,
 * this client. Throughput is that of many requests at once; every id is checked to be the next one, every
 * count to match its end, and each seed is used by two requests (the last of an odd number by one), whose ids
 * must be the same. Latency is that of requests of one token, from quern_generate to the end, both ways
 * through the pool: once while it is idle and once while the throughput run is under way. All of it is done
 * twice, with frames as they are made by default and with a frame for every token. */

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client/command/bench/bench.h"
#include "client/command/terminal/interrupt.h"
#include "client/command/pool/pool.h"
#include "client/command/verbs.h"
#include <quern.h>
#include "common/program/arguments.h"
#include "common/clock.h"
#include "common/system/topology.h"
#include "proto/launch.h"

#define DEFAULT_FRAME_US 250
#define STALL_NS         (20 * CLOCK_NS_PER_S) /* without any output: give up */
#define MAX_PROBES       100000

struct options {
    const char *model;
    uint32_t requests, tokens, workers, probes, repetitions;
    bool has_frame_us, json;
    uint32_t frame_us;
};

/* One request of the throughput run. */
struct stream {
    struct bench_run *run;
    uint64_t next, hash, frames;
    bool over;
};

struct bench_run {
    const struct options *options;
    struct quern *client;
    struct stream *streams;
    uint32_t open;
    uint64_t last_output_ns, frames;
    char wrong[200]; /* what a check found; empty */
};

struct result {
    double tokens_per_s, frames_per_s, ids_per_frame;
    double cpu_us_per_frame; /* of all processes, their start included */
    double latency_p50_us, latency_p99_us;
    double loaded_p50_us, loaded_p99_us;
};

static void on_output(void *arg, const struct quern_output *output)
{
    struct stream *stream = arg;
    struct bench_run *run = stream->run;
    if (output->index != stream->next)
        snprintf(run->wrong, sizeof run->wrong, "an output begins at id %" PRIu64 ", not %" PRIu64,
                 output->index, stream->next);
    for (size_t i = 0; i < output->n_ids; i++)
        stream->hash = (stream->hash ^ (uint64_t)output->ids[i]) * 0x100000001b3ull;
    stream->next += output->n_ids;
    stream->frames++;
    run->frames++;
    run->last_output_ns = clock_ns();
    if (!output->end)
        return;
    stream->over = true;
    run->open--;
    if (output->end->reason != QUERN_LENGTH)
        snprintf(run->wrong, sizeof run->wrong, "a request ended by %s %s: %.120s",
                 quern_reason_name(output->end->reason), output->end->error, output->end->text);
    else if (output->end->output_tokens != stream->next)
        snprintf(run->wrong, sizeof run->wrong, "%" PRIu64 " of %u ids arrived", stream->next,
                 output->end->output_tokens);
}

static int generate(struct bench_run *run, struct stream *stream, uint64_t seed, uint32_t tokens,
                    struct error *err)
{
    static const int32_t prompt[] = {3, 4, 5, 6};
    struct quern_request request;
    struct quern_error said = {0};
    quern_request_init(&request);
    request.ids = prompt;
    request.n_ids = sizeof prompt / sizeof *prompt;
    request.max_tokens = tokens;
    request.has_seed = true;
    request.seed = seed;
    *stream = (struct stream){.run = run};
    run->open++;
    int r = quern_generate(run->client, &request, on_output, stream, NULL, &said);
    return r < 0 ? error_set(err, r, "%s", said.text) : 0;
}

static int dispatch(struct bench_run *run, struct error *err)
{
    struct quern_error said = {0};
    int r = quern_dispatch(run->client, 1000, &said);
    if (r < 0)
        return error_set(err, r, "%s", said.text);
    if (run->wrong[0])
        return error_set(err, -EPROTO, "%s", run->wrong);
    if (interrupt_signal())
        return error_set(err, -EINTR, "interrupted");
    if (clock_ns() - run->last_output_ns > STALL_NS)
        return error_set(err, -ETIMEDOUT, "nothing received for 20 s, %u requests are open", run->open);
    return 0;
}

/* Requests of one token, one after the other, while `busy` says so or until there are n. Sorted times in µs.
 */
static int probe(struct bench_run *run, double *ret_us, uint32_t n, bool until_idle, uint32_t *ret_n,
                 struct error *err)
{
    struct stream one;
    uint32_t background = run->open, made = 0;
    while (made < n && (!until_idle || background > 0)) {
        uint64_t start = clock_ns();
        int r = generate(run, &one, made, 1, err);
        while (r == 0 && !one.over)
            r = dispatch(run, err);
        if (r < 0)
            return r;
        ret_us[made++] = (double)(clock_ns() - start) / 1000;
        background = run->open;
    }
    qsort(ret_us, made, sizeof *ret_us, bench_compare_doubles);
    *ret_n = made;
    return 0;
}

static int throughput(struct bench_run *run, struct result *result, bool probing, double *times,
                      struct error *err)
{
    const struct options *options = run->options;
    uint64_t start = run->last_output_ns = clock_ns(), frames = 0;
    uint32_t n = 0;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < options->requests; i++)
        r = generate(run, &run->streams[i], i / 2, options->tokens, err);
    if (r == 0 && probing) {
        r = probe(run, times, options->probes, true, &n, err);
        if (r == 0 && n > 0) {
            result->loaded_p50_us = times[n / 2];
            result->loaded_p99_us = times[n * 99 / 100];
        }
    }
    while (r == 0 && run->open > 0)
        r = dispatch(run, err);
    if (r < 0)
        return r;
    double seconds = (double)(clock_ns() - start) / CLOCK_NS_PER_S;
    for (uint32_t i = 0; i < options->requests; i++) {
        frames += run->streams[i].frames;
        if (run->streams[i].next != options->tokens ||
            (i % 2 && run->streams[i].hash != run->streams[i - 1].hash))
            return error_set(err, -EPROTO, "two requests with the same seed have different ids");
    }
    if (!probing) {
        uint64_t tokens = (uint64_t)options->requests * options->tokens;
        result->tokens_per_s = (double)tokens / seconds;
        result->frames_per_s = (double)frames / seconds;
        result->ids_per_frame = (double)tokens / (double)frames;
    }
    return 0;
}

/* Processor time of this process and of those that have ended. */
static double cpu_seconds(void)
{
    double seconds = 0;
    for (int i = 0; i < 2; i++) {
        struct rusage usage;
        getrusage(i ? RUSAGE_CHILDREN : RUSAGE_SELF, &usage);
        seconds += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    }
    return seconds;
}

static int compare_results(const void *a, const void *b)
{
    return bench_compare_doubles(&((const struct result *)a)->tokens_per_s,
                                 &((const struct result *)b)->tokens_per_s);
}

/* A pool with one setting, measured `repetitions` times: the median run by throughput. */
static int measure(const struct options *options, const char *model, uint32_t frame_us,
                   struct result *ret_result, struct error *err)
{
    struct pool_options pool_options = {.model = model,
                                        .device = "null",
                                        .workers = options->workers,
                                        .context = options->tokens + 64,
                                        .slots = options->requests + 1,
                                        .has_frame_us = true,
                                        .frame_us = frame_us};
    struct pool *pool;
    struct bench_run run = {.options = options, .last_output_ns = clock_ns()};
    struct result results[64];
    uint32_t n;
    double cpu = cpu_seconds();
    int r = pool_open(&pool_options, &pool, err);
    if (r < 0)
        return r;
    run.client = pool_client(pool);
    run.streams = calloc(options->requests, sizeof *run.streams);
    double *times = calloc(MAX_PROBES, sizeof *times);
    if (!run.streams || !times)
        r = error_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; r == 0 && i < options->repetitions; i++) {
        results[i] = (struct result){0};
        r = throughput(&run, &results[i], false, times, err);
    }
    if (r == 0) {
        qsort(results, options->repetitions, sizeof *results, compare_results);
        *ret_result = results[options->repetitions / 2];
        r = throughput(&run, ret_result, true, times, err);
    }
    if (r == 0)
        r = probe(&run, times, options->probes, false, &n, err);
    if (r == 0) {
        ret_result->latency_p50_us = times[n / 2];
        ret_result->latency_p99_us = times[n * 99 / 100];
    }
    free(run.streams);
    free(times);
    pool_close(pool);
    if (r == 0)
        ret_result->cpu_us_per_frame = (cpu_seconds() - cpu) * 1e6 / (double)run.frames;
    return r;
}

static void print(const struct options *options, uint32_t frame_us, const struct result *r)
{
    if (!options->json) {
        printf("%8u %12.0f %12.0f %9.2f %9.2f %9.0f %9.0f %9.0f %9.0f\n", frame_us, r->tokens_per_s,
               r->frames_per_s, r->ids_per_frame, r->cpu_us_per_frame, r->latency_p50_us, r->latency_p99_us,
               r->loaded_p50_us, r->loaded_p99_us);
        return;
    }
    json_t *json =
        json_pack("{s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "bench", "pool",
                  "requests", (int)options->requests, "tokens", (int)options->tokens, "workers",
                  (int)options->workers, "frame_us", (int)frame_us, "tokens_per_s", r->tokens_per_s,
                  "frames_per_s", r->frames_per_s, "ids_per_frame", r->ids_per_frame, "cpu_us_per_frame",
                  r->cpu_us_per_frame, "latency_p50_us", r->latency_p50_us, "latency_p99_us",
                  r->latency_p99_us, "loaded_p50_us", r->loaded_p50_us, "loaded_p99_us", r->loaded_p99_us);
    json_dumpf(json, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(json);
}

/* "µ" is two bytes and one column: written out, not left to a width. */
static void print_heading(const struct options *options)
{
    printf("%u requests of %u tokens, %u worker%s, null backend, %u cores, median of %u; latency of one "
           "token, to the worker and back\n",
           options->requests, options->tokens, options->workers, options->workers == 1 ? "" : "s",
           topology_threads_here(), options->repetitions);
    printf(
        "                                                cpu µs      idle      idle    loaded    loaded\n"
        "frame µs     tokens/s     frames/s ids/frame    /frame    p50 µs    p99 µs    p50 µs    p99 µs\n");
}

static int measure_all(void *arg, const char *model, struct error *err)
{
    const struct options *options = arg;
    const uint32_t settings[] = {options->has_frame_us ? options->frame_us : DEFAULT_FRAME_US, 0};
    size_t n_settings = options->has_frame_us ? 1 : 2;
    if (!options->json)
        print_heading(options);
    for (size_t i = 0; i < n_settings; i++) {
        struct result result = {0};
        int r = measure(options, model, settings[i], &result, err);
        if (r < 0)
            return r;
        print(options, settings[i], &result);
        fflush(stdout);
    }
    return 0;
}

static const struct argp_option known[] = {
    {"requests", 's', "N", 0, "Requests at once (64)", 0},
    {NULL, 'n', "N", 0, "Tokens of each (4096)", 0},
    {"workers", 'w', "N", 0, "Workers (1)", 0},
    {"probes", 'p', "N", 0, "Requests of one token, to measure latency (1000)", 0},
    {"repetitions", 'r', "N", 0, "Number of throughput measurements (5)", 0},
    {"frame-us", 'f', "N", 0,
     "Tokens generated within N microseconds share a frame (default: 250, then 0: a frame for each token)",
     0},
    {"model", 'm', "FILE", 0, "Any model, for its vocabulary (default: a generated one)", 0},
    {"json", 'J', NULL, 0, "Print a JSON object per line", 0},
    {0}};

static const struct argument arguments[] = {
    {'s', ARGUMENT_NUMBER, offsetof(struct options, requests), 2, 4096},
    {'n', ARGUMENT_NUMBER, offsetof(struct options, tokens), 1, 1 << 20},
    {'w', ARGUMENT_NUMBER, offsetof(struct options, workers), 1, 64},
    {'p', ARGUMENT_NUMBER, offsetof(struct options, probes), 1, MAX_PROBES},
    {'r', ARGUMENT_NUMBER, offsetof(struct options, repetitions), 1, 64},
    {'f', ARGUMENT_NUMBER, offsetof(struct options, frame_us), 0, LAUNCH_MAX_FRAME_US},
    {'m', ARGUMENT_TEXT, offsetof(struct options, model), 0, 0},
    {'J', ARGUMENT_FLAG, offsetof(struct options, json), 0, 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    options->has_frame_us |= key == 'f';
    return arguments_take(arguments, known, key, arg, state, options);
}

int bench_pool(int argc, char **argv)
{
    static const struct argp argp = {.options = known,
                                     .parser = parse,
                                     .doc = "Measures the cost of worker, broker and client, with a backend "
                                            "that generates tokens at no cost. Every token is checked."};
    struct options options = {.requests = 64, .tokens = 4096, .workers = 1, .probes = 1000, .repetitions = 5};
    arguments_parse(&argp, argc, argv, &options);
    return bench_with_model(options.model, "null", measure_all, &options);
}
