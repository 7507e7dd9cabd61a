/* SPDX-License-Identifier: MIT */
/* quern bench decode and prefill: one sequence on a backend, without engine or pool.
 *
 * What they measure stands beside the read bandwidth that the machine gave in the same run: a decoded id
 * reads every weight once. Medians of several repetitions, since a shared machine's single figures lie. */

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/arguments.h"
#include "client/command/bench/bench.h"
#include "client/command/bench/profile.h"
#include "client/command/lone_sequence.h"
#include "client/command/terminal/progress.h"
#include "client/command/verbs.h"
#include "common/program/arguments.h"
#include "common/clock.h"
#include "proto/launch.h"
#include "engine/backend/kv_type.h"
#include "model/model.h"

#define MAX_REPETITIONS 64

struct options {
    const char *path, *device;
    uint32_t n, n_threads, repetitions, depth, chunk;
    enum backend_kv_type kv_type;
    uint32_t library_rows;
    bool json, portable, profile;
};

/* What one benchmark of a model measures: ids per second, once. */
typedef int measurement(struct lone_sequence *sequence, const struct options *options, double *ret_rate,
                        struct error *err);

static const struct argp_option known[] = {
    {NULL, 'n', "N", 0, "Ids decoded (default 32) or prefilled (default 128) per measurement", 0},
    {"depth", 'D', "N", 0, "Ids already in the cache (default 0)", 0},
    {"repetitions", 'r', "N", 0, "Number of measurements (default 5)", 0},
    {"threads", 'j', "N", 0, "Threads (default: all cores)", 0},
    {"chunk", 'c', "N", 0, "Maximum ids of one prefill step (default 512)", 0},
    {"device", 'd', "NAME", 0, QUERN_DEVICES " (default auto)", 0},
    {"kv-type", 'k', "TYPE", 0, "Type of keys and values: " KV_TYPE_NAMES " (default f16)", 0},
    {"cublas", 'b', "ROWS", 0,
     "Use cuBLASLt for prompt steps of ROWS rows or more: off, auto or a number (default off)", 0},
    {"portable", 'p', NULL, 0, "Use the plain C kernels", 0},
    {"profile", 'P', NULL, 0, "Report the work of each kernel, measured separately; this slows decoding", 0},
    {"json", 'J', NULL, 0, "One JSON object instead of lines", 0},
    {0}};

static const struct argument arguments[] = {
    {'n', ARGUMENT_NUMBER, offsetof(struct options, n), 1, 1 << 20},
    {'j', ARGUMENT_NUMBER, offsetof(struct options, n_threads), 1, LAUNCH_MAX_THREADS},
    {'r', ARGUMENT_NUMBER, offsetof(struct options, repetitions), 1, MAX_REPETITIONS},
    {'D', ARGUMENT_NUMBER, offsetof(struct options, depth), 0, 1 << 20},
    {'c', ARGUMENT_NUMBER, offsetof(struct options, chunk), 1, 4096},
    {'d', ARGUMENT_TEXT, offsetof(struct options, device), 0, 0},
    {'p', ARGUMENT_FLAG, offsetof(struct options, portable), 0, 0},
    {'P', ARGUMENT_FLAG, offsetof(struct options, profile), 0, 0},
    {'J', ARGUMENT_FLAG, offsetof(struct options, json), 0, 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    if (key == 'k')
        options->kv_type = argument_kv_type(state, arg);
    else if (key == 'b')
        options->library_rows = argument_library_rows(state, arg);
    else if (arguments_take(arguments, known, key, arg, state, options) != 0)
        return argument_model(key, arg, state, &options->path);
    return 0;
}

/* With `sampled` the first id behind them is computed too. */
static int feed_any(struct lone_sequence *sequence, uint32_t n, bool sampled, struct error *err)
{
    int32_t *ids = calloc(n + 1, sizeof *ids), next;
    if (!ids)
        return error_set(err, -ENOMEM, "not enough memory for %u ids", n);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int32_t)(3 + i * 7 % 300);
    int r = sampled ? lone_sequence_prefill(sequence, ids, n, &next, err)
                    : lone_sequence_feed(sequence, ids, n, false, NULL, err);
    free(ids);
    return r;
}

static int measure_decode(struct lone_sequence *sequence, const struct options *options, double *ret_rate,
                          struct error *err)
{
    lone_sequence_rewind(sequence, options->depth);
    int32_t id = 3;
    uint64_t start = clock_ns();
    for (uint32_t i = 0; i < options->n; i++) {
        int r = lone_sequence_decode(sequence, &id, err);
        if (r < 0)
            return r;
    }
    *ret_rate = options->n * 1e9 / (double)(clock_ns() - start);
    return 0;
}

static int measure_prefill(struct lone_sequence *sequence, const struct options *options, double *ret_rate,
                           struct error *err)
{
    lone_sequence_rewind(sequence, options->depth);
    uint64_t start = clock_ns();
    int r = feed_any(sequence, options->n, true, err);
    if (r < 0)
        return r;
    *ret_rate = options->n * 1e9 / (double)(clock_ns() - start);
    return 0;
}

/* What was measured. */
struct report {
    struct backend_info info;
    struct spread rate, bandwidth;
    double roof; /* what the device can read, bytes a second; 0: not known */
    double load_seconds;
    const struct backend_kernel *kernels; /* [n_kernels] */
    uint32_t n_kernels;
};

static void print_report(const char *what, const struct options *options, const struct report *report)
{
    const struct backend_info *info = &report->info;
    const struct spread rate = report->rate, bandwidth = report->bandwidth;
    const double load_seconds = report->load_seconds;
    double share = rate.median * (double)info->weight_bytes / bandwidth.median;
    bool decode = strcmp(what, "decode") == 0;
    if (options->json) {
        json_t *rows = options->library_rows == BACKEND_LIBRARY_MEASURED
                           ? json_string("auto")
                           : json_integer(options->library_rows);
        json_t *object = json_pack(
            "{s:s, s:s, s:s, s:s, s:o, s:i, s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "bench", what,
            "model", options->path, "device", info->device, "kv_type", kv_type_name(info->kv_type),
            "library_rows", rows, "n", (int)options->n, "depth", (int)options->depth, "bytes_per_token",
            (json_int_t)info->weight_bytes, "load_seconds", load_seconds, "tokens_per_second", rate.median,
            "tokens_per_second_min", rate.min, "tokens_per_second_max", rate.max, "bandwidth",
            bandwidth.median, "bandwidth_min", bandwidth.min, "bandwidth_max", bandwidth.max);
        if (decode)
            json_object_set_new(object, "bandwidth_share", json_real(share));
        if (options->profile)
            json_object_set_new(object, "kernels",
                                bench_kernels_json(report->kernels, report->n_kernels, report->roof));
        json_dumpf(object, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(object);
        return;
    }
    printf("model            %s\n", options->path);
    printf("device           %s, weights packed in %.1f s\n", info->device, load_seconds);
    printf("keys and values  %s\n", kv_type_name(info->kv_type));
    printf("bytes per token  %.3f GB\n", (double)info->weight_bytes / 1e9);
    printf("read bandwidth   %.1f GB/s (%.1f to %.1f)\n", bandwidth.median / 1e9, bandwidth.min / 1e9,
           bandwidth.max / 1e9);
    printf("%-16s %.2f tok/s (%.2f to %.2f), %u ids after %u, median of %u\n", what, rate.median, rate.min,
           rate.max, options->n, options->depth, options->repetitions);
    if (decode)
        printf("bandwidth share  %.1f %%\n", 100 * share);
    if (options->profile)
        bench_print_kernels(report->kernels, report->n_kernels, report->roof);
}

/* As the driver has it of the first GPU; as it was measured of the processor. */
static double roof_of(const struct backend_choice *backend, const struct lone_sequence *sequence,
                      const struct report *report)
{
    struct device_description device = {0};
    struct error unused;
    if (lone_sequence_fell_back(sequence))
        return report->bandwidth.median;
    if (backend->n_devices == 0)
        return backend->ops->weight_packing ? report->bandwidth.median : 0;
    return backend->describe(0, &device, &unused) < 0 ? 0 : (double)device.bandwidth;
}

static int run(const char *what, measurement *measure, const struct options *options,
               const struct model *model, const struct backend_choice *backend, struct error *err)
{
    struct progress progress;
    struct lone_sequence_config config = {.model = model,
                                          .backend = *backend,
                                          .n_context = options->depth + options->n + 1,
                                          .chunk = options->chunk,
                                          .n_threads = options->n_threads,
                                          .kv_type = options->kv_type,
                                          .library_rows = options->library_rows,
                                          .portable = options->portable,
                                          .profile = options->profile,
                                          .loaded = progress_loaded,
                                          .loaded_arg = &progress};
    struct report report = {0};
    struct lone_sequence *sequence = NULL;
    double rates[MAX_REPETITIONS], warm_up;
    uint64_t start = clock_ns();
    progress_start(&progress);
    int r = lone_sequence_new(&config, &sequence, err);
    progress_end(&progress);
    report.load_seconds = (double)(clock_ns() - start) / (double)CLOCK_NS_PER_S;
    if (r == 0)
        r = bench_read_bandwidth(options->n_threads, &report.bandwidth, err);
    if (r == 0)
        report.roof = roof_of(backend, sequence, &report);
    if (r == 0)
        r = feed_any(sequence, options->depth, false, err);
    if (r == 0)
        r = measure(sequence, options, &warm_up, err);
    if (r == 0)
        lone_sequence_profile(sequence, &report.kernels); /* from here on */
    for (uint32_t i = 0; i < options->repetitions && r == 0; i++)
        r = measure(sequence, options, &rates[i], err);
    if (r == 0) {
        report.rate = spread_of(rates, options->repetitions);
        report.n_kernels = lone_sequence_profile(sequence, &report.kernels);
        lone_sequence_info(sequence, &report.info);
        print_report(what, options, &report);
    }
    lone_sequence_free(sequence);
    return r;
}

static int bench_model(int argc, char **argv, const char *what, measurement *measure, uint32_t n)
{
    static const struct argp argp = {.options = known,
                                     .parser = parse,
                                     .args_doc = "MODEL",
                                     .doc = "Measures one sequence on a device, without a pool."};
    struct options options = {.device = "auto", .n = n, .repetitions = 5, .chunk = 512};
    arguments_parse(&argp, argc, argv, &options);
    struct error err = {0};
    struct model *model = NULL;
    struct backend_choice backend;
    /* In a build folder another build of the emulated device counts more, which takes time. */
    if (options.profile && strcmp(options.device, "emu") == 0 &&
        backend_choose("emu-counting", NULL, &backend, &err) == 0)
        options.device = "emu-counting";
    int r = lone_sequence_open_model(options.path, options.device, &model, &backend, &err);
    if (r == 0)
        r = run(what, measure, &options, model, &backend, &err);
    model_free(model);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}

int bench_decode(int argc, char **argv)
{
    return bench_model(argc, argv, "decode", measure_decode, 32);
}

int bench_prefill(int argc, char **argv)
{
    return bench_model(argc, argv, "prefill", measure_prefill, 128);
}
