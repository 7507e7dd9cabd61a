/* SPDX-License-Identifier: MIT */
/* quern bench batch: several sequences that decode at once through the engine, without a pool.
 *
 * All prompts differ and are prefilled first. What is measured begins when every sequence has its first id
 * and ends when one has its last, so each step in between has a row for each of them. */

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/arguments.h"
#include "client/command/bench/bench.h"
#include "client/command/verbs.h"
#include "common/program/arguments.h"
#include "common/clock.h"
#include "proto/launch.h"
#include "engine/backend/kv_type.h"
#include "engine/engine.h"
#include "model/model.h"

#define MOST_SEQUENCES   256
#define MOST_COUNTS      32
#define MOST_REPETITIONS 64
#define MOST_AHEAD       4  /* ids that a sequence may have made by then, for each of the others */
#define MOST_LUCKLESS    20 /* measurements in which a sequence came upon an end before its length */

struct options {
    const char *path, *device;
    uint32_t counts[MOST_COUNTS], n_counts; /* sequences at once, one measurement each */
    uint32_t n, depth, n_threads, repetitions;
    enum backend_kv_type kv_type;
    bool json;
};

/* The engine, and what the sequences that run in it have made. */
struct batch {
    const struct options *options;
    const struct model *model;
    struct engine *engine;
    uint32_t made[MOST_SEQUENCES];
    uint32_t n, n_begun, n_ended;
    const char *fault;
};

/* What one number of sequences gave. */
struct row {
    uint32_t n;
    struct spread rate; /* ids per second, of all together */
    struct spread step; /* seconds */
};

static void parse_counts(struct argp_state *state, const char *arg, struct options *options)
{
    char *list = strdup(arg), *rest = NULL;
    options->n_counts = 0;
    for (char *item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        if (options->n_counts == MOST_COUNTS)
            argp_error(state, "--sequences: at most %d numbers are allowed", MOST_COUNTS);
        options->counts[options->n_counts++] =
            (uint32_t)argument_number(state, "--sequences", item, 1, MOST_SEQUENCES);
    }
    if (options->n_counts == 0)
        argp_error(state, "--sequences: \"%s\" has no number", arg);
    free(list);
}

static const struct argp_option known[] = {
    {"sequences", 's', "LIST", 0, "Numbers of sequences, separated by commas (default 1,2,4,8,16,32)", 0},
    {NULL, 'n', "N", 0, "Ids that each sequence decodes (default 32)", 0},
    {"depth", 'D', "N", 0, "Ids of each prompt (default 16)", 0},
    {"repetitions", 'r', "N", 0, "Number of measurements (default 3)", 0},
    {"threads", 'j', "N", 0, "Threads (default: all cores)", 0},
    {"device", 'd', "NAME", 0, QUERN_DEVICES " (default auto)", 0},
    {"kv-type", 'k', "TYPE", 0, "Type of keys and values: " KV_TYPE_NAMES " (default f16)", 0},
    {"json", 'J', NULL, 0, "One JSON object instead of lines", 0},
    {0}};

static const struct argument arguments[] = {
    {'n', ARGUMENT_NUMBER, offsetof(struct options, n), 1, 1 << 16},
    {'D', ARGUMENT_NUMBER, offsetof(struct options, depth), 1, 1 << 20},
    {'r', ARGUMENT_NUMBER, offsetof(struct options, repetitions), 1, MOST_REPETITIONS},
    {'j', ARGUMENT_NUMBER, offsetof(struct options, n_threads), 1, LAUNCH_MAX_THREADS},
    {'d', ARGUMENT_TEXT, offsetof(struct options, device), 0, 0},
    {'J', ARGUMENT_FLAG, offsetof(struct options, json), 0, 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    if (key == 's')
        parse_counts(state, arg, options);
    else if (key == 'k')
        options->kv_type = argument_kv_type(state, arg);
    else if (arguments_take(arguments, known, key, arg, state, options) != 0)
        return argument_model(key, arg, state, &options->path);
    return 0;
}

static void sink(void *arg, const struct engine_event *event)
{
    struct batch *batch = arg;
    uint32_t *made = &batch->made[event->tag];
    batch->n_begun += *made == 0 && event->n_ids > 0;
    *made += event->n_ids;
    batch->n_ended += event->end != ENGINE_RUNNING;
    if (event->end == ENGINE_END_FAULT)
        batch->fault = event->fault;
}

/* Of one of n sequences. */
static uint32_t most_ids(const struct options *options, uint32_t n)
{
    return options->n + 1 + n * MOST_AHEAD;
}

static int submit(struct batch *batch, uint64_t i, uint64_t round, struct error *err)
{
    const struct options *options = batch->options;
    int32_t *prompt = calloc(options->depth, sizeof *prompt);
    if (!prompt)
        return error_set(err, -ENOMEM, "not enough memory for %u ids", options->depth);
    for (uint32_t j = 0; j < options->depth; j++)
        prompt[j] = (int32_t)(3 + (round * 131 + i * 31 + j * 7) % (batch->model->params.n_vocab - 3));
    const struct engine_request request = {.tag = i,
                                           .prompt = prompt,
                                           .n_prompt = options->depth,
                                           .max_tokens = most_ids(options, batch->n),
                                           .sampling = SAMPLING_GREEDY,
                                           .uncached = true};
    int r = engine_submit(batch->engine, &request, err);
    free(prompt);
    return r > 0 ? -EINVAL : r;
}

static int step(struct batch *batch, struct error *err)
{
    int r = engine_step(batch->engine, err);
    if (r >= 0 && batch->fault)
        return error_set(err, -EIO, "%s", batch->fault);
    return r;
}

/* Ends what is left. */
static int drain(struct batch *batch, struct error *err)
{
    for (uint32_t i = 0; i < batch->n; i++)
        engine_cancel(batch->engine, i);
    int r;
    do
        r = step(batch, err);
    while (r > 0);
    return r;
}

static uint64_t ids_made(const struct batch *batch)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < batch->n; i++)
        n += batch->made[i];
    return n;
}

/* Ids per second, and seconds of a step, of n sequences once. -EDOM: a sequence ended too early to measure;
 * another round has other prompts. */
static int measure(struct batch *batch, uint32_t n, uint64_t round, double *ret_rate, double *ret_step,
                   struct error *err)
{
    const struct options *options = batch->options;
    *batch = (struct batch){.options = options, .model = batch->model, .engine = batch->engine, .n = n};
    int r = 0;
    for (uint32_t i = 0; i < n && r >= 0; i++)
        r = submit(batch, i, round, err);
    while (r >= 0 && batch->n_begun < n && batch->n_ended == 0)
        r = step(batch, err);
    const uint64_t before = ids_made(batch), start = clock_ns();
    uint64_t steps = 0;
    for (; r >= 0 && batch->n_ended == 0 && steps < options->n; steps++)
        r = step(batch, err);
    const double seconds = (double)(clock_ns() - start) / (double)CLOCK_NS_PER_S;
    const uint64_t ids = ids_made(batch) - before;
    if (r >= 0)
        r = drain(batch, err);
    if (r < 0)
        return r;
    if (steps < (options->n + 1) / 2)
        return error_set(err, -EDOM, "with %u sequences, one always ends before it has %u ids", n,
                         options->n);
    *ret_rate = (double)ids / seconds;
    *ret_step = seconds / (double)steps;
    return 0;
}

static int measure_row(struct batch *batch, struct row *row, struct error *err)
{
    const uint32_t repetitions = batch->options->repetitions;
    double rates[MOST_REPETITIONS + 1], steps[MOST_REPETITIONS + 1];
    uint32_t n = 0, n_luckless = 0;
    while (n <= repetitions) { /* the first warms up */
        int r = measure(batch, row->n, n + n_luckless, &rates[n], &steps[n], err);
        if (r < 0 && (r != -EDOM || ++n_luckless > MOST_LUCKLESS))
            return r;
        n += r == 0;
    }
    row->rate = spread_of(rates + 1, repetitions);
    row->step = spread_of(steps + 1, repetitions);
    return 0;
}

static void print_rows(const struct options *options, const struct backend_info *info, const struct row *rows)
{
    printf("model    %s\n", options->path);
    printf("device   %s, keys and values in %s\n", info->device, kv_type_name(info->kv_type));
    printf("measured %u ids of each sequence after %u, median of %u\n\n", options->n, options->depth,
           options->repetitions);
    printf("sequences   tok/s (least to most)       step, ms   tok/s beside one sequence\n");
    for (uint32_t i = 0; i < options->n_counts; i++)
        printf("%9u %9.2f (%.2f to %.2f) %*.2f %9.2f\n", rows[i].n, rows[i].rate.median, rows[i].rate.min,
               rows[i].rate.max, 12, 1e3 * rows[i].step.median, rows[i].rate.median / rows[0].rate.median);
}

static void print_json(const struct options *options, const struct backend_info *info, const struct row *rows)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < options->n_counts; i++)
        json_array_append_new(
            list, json_pack("{s:i, s:f, s:f, s:f, s:f}", "sequences", (int)rows[i].n, "tokens_per_second",
                            rows[i].rate.median, "tokens_per_second_min", rows[i].rate.min,
                            "tokens_per_second_max", rows[i].rate.max, "step_seconds", rows[i].step.median));
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:o}", "bench", "batch", "model",
                               options->path, "device", info->device, "kv_type", kv_type_name(info->kv_type),
                               "n", (int)options->n, "depth", (int)options->depth, "batches", list);
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
}

static uint32_t most_sequences(const struct options *options)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < options->n_counts; i++)
        most = options->counts[i] > most ? options->counts[i] : most;
    return most;
}

static int run(const struct options *options, const struct model *model, struct backend_choice *choice,
               struct error *err)
{
    const uint32_t most = most_sequences(options), context = options->depth + most_ids(options, most);
    struct engine_config config = {.model = model,
                                   .backend_config = {.n_slots = most,
                                                      .n_context = context,
                                                      .n_blocks = most * backend_blocks_for(context),
                                                      .kv_type = options->kv_type,
                                                      .cpu = {.n_threads = options->n_threads}},
                                   .max_waiting = MOST_SEQUENCES};
    struct row rows[MOST_COUNTS];
    static struct batch batch;
    batch = (struct batch){.options = options, .model = model};
    int r = bench_open_engine(&config, choice, sink, &batch, &batch.engine, err);
    for (uint32_t i = 0; i < options->n_counts && r == 0; i++) {
        rows[i].n = options->counts[i];
        r = measure_row(&batch, &rows[i], err);
    }
    if (r == 0)
        (options->json ? print_json : print_rows)(options, engine_backend_info(batch.engine), rows);
    engine_free(batch.engine);
    return r;
}

int bench_batch(int argc, char **argv)
{
    static const struct argp argp = {
        .options = known,
        .parser = parse,
        .args_doc = "MODEL",
        .doc = "Measures several sequences that decode at once on a device, without a pool."};
    struct options options = {.device = "auto",
                              .counts = {1, 2, 4, 8, 16, 32},
                              .n_counts = 6,
                              .n = 32,
                              .depth = 16,
                              .repetitions = 3};
    arguments_parse(&argp, argc, argv, &options);
    struct error err = {0};
    struct model *model = NULL;
    struct backend_choice choice;
    int r = bench_open_model(options.path, options.device, &model, &choice, &err);
    if (r == 0)
        r = run(&options, model, &choice, &err);
    model_free(model);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
