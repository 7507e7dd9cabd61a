/* SPDX-License-Identifier: MIT */
/* quern bench draft: one sequence that decodes with drafts and without, through the engine, without a pool.
 *
 * Two texts: one that repeats a phrase, so that drafts are right where the model goes on with it, and random
 * ids, after which random ids are sampled, so that drafts save nothing. Each round measures an engine
 * without drafts and then one with them, so a machine that becomes slower meanwhile slows both; the ratio is
 * the median of those of the rounds. The ratio of processor time, with one thread, hardly depends on what
 * else runs; threads beyond the first also use it while they wait for one another. Decoding is timed from the
 * first id to the last. Stop ids are not sampled: all answers have the same length. It is also said how many
 * ids were the same: all of them, unless a GPU rounds differently in larger steps. */

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/command/arguments.h"
#include "client/command/bench/bench.h"
#include "client/command/verbs.h"
#include "common/clock.h"
#include "common/program/arguments.h"
#include "engine/backend/kv_type.h"
#include "engine/engine.h"
#include "engine/prompt_lookup.h"
#include "model/model.h"
#include "proto/launch.h"

#define MOST_REPETITIONS 64
#define PHRASE           24 /* ids of what the repeating text repeats */
#define SEED             7

enum text { TEXT_REPEATING, TEXT_RANDOM, N_TEXTS };
static const char *const text_names[N_TEXTS] = {"repeating", "random"};

struct options {
    const char *path, *device;
    uint32_t n, depth, draft, n_threads, repetitions;
    enum backend_kv_type kv_type;
    bool json;
};

struct moment {
    uint64_t clock_ns, cpu_ns; /* cpu: of all threads of this process */
};

/* An answer as it comes in. */
struct answer {
    int32_t *ids;              /* [options.n] */
    uint32_t n, n_first;       /* n_first: those of the first event, before the time starts */
    struct moment first, last; /* event */
    uint32_t drafted, accepted;
    bool ended;
    char fault[256];
};

/* What one text gave. */
struct row {
    double plain[MOST_REPETITIONS], drafting[MOST_REPETITIONS]; /* ids per second */
    double ratios[MOST_REPETITIONS], cpu_ratios[MOST_REPETITIONS];
    uint32_t drafted, accepted; /* of one answer */
    uint32_t same;              /* ids before the first that is another one with drafts */
};

static const struct argp_option known[] = {
    {NULL, 'n', "N", 0, "Ids to decode (default 128)", 0},
    {"depth", 'D', "N", 0, "Ids of the prompt (default 256)", 0},
    {"draft", 'x', "N", 0, "Maximum ids of a draft (default 8)", 0},
    {"repetitions", 'r', "N", 0, "Number of measurements (default 3)", 0},
    {"threads", 'j', "N", 0, "Threads (default: all cores)", 0},
    {"device", 'd', "NAME", 0, QUERN_DEVICES " (default auto)", 0},
    {"kv-type", 'k', "TYPE", 0, "Type of keys and values: " KV_TYPE_NAMES " (default f16)", 0},
    {"json", 'J', NULL, 0, "One JSON object instead of lines", 0},
    {0}};

static const struct argument arguments[] = {
    {'n', ARGUMENT_NUMBER, offsetof(struct options, n), 2, 1 << 16},
    {'D', ARGUMENT_NUMBER, offsetof(struct options, depth), 1, 1 << 20},
    {'x', ARGUMENT_NUMBER, offsetof(struct options, draft), 1, LAUNCH_MAX_DRAFT},
    {'r', ARGUMENT_NUMBER, offsetof(struct options, repetitions), 1, MOST_REPETITIONS},
    {'j', ARGUMENT_NUMBER, offsetof(struct options, n_threads), 1, LAUNCH_MAX_THREADS},
    {'d', ARGUMENT_TEXT, offsetof(struct options, device), 0, 0},
    {'J', ARGUMENT_FLAG, offsetof(struct options, json), 0, 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    if (key == 'k')
        options->kv_type = argument_kv_type(state, arg);
    else if (arguments_take(arguments, known, key, arg, state, options) != 0)
        return argument_model(key, arg, state, &options->path);
    return 0;
}

static struct moment now(void)
{
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (struct moment){clock_ns(), (uint64_t)cpu.tv_sec * CLOCK_NS_PER_S + (uint64_t)cpu.tv_nsec};
}

static void sink(void *arg, const struct engine_event *event)
{
    struct answer *answer = *(struct answer **)arg;
    if (event->n_ids > 0) {
        memcpy(answer->ids + answer->n, event->ids, event->n_ids * sizeof *event->ids);
        answer->last = now();
        if (answer->n == 0) {
            answer->first = answer->last;
            answer->n_first = event->n_ids;
        }
        answer->n += event->n_ids;
    }
    if (event->end == ENGINE_RUNNING)
        return;
    answer->ended = true;
    answer->drafted = event->totals->n_drafted;
    answer->accepted = event->totals->n_accepted;
    if (event->fault)
        snprintf(answer->fault, sizeof answer->fault, "%s", event->fault);
}

/* Of a linear congruential generator: no two ids in a row come again soon. */
static void make_prompt(enum text text, const struct model *model, int32_t *ids, uint32_t n)
{
    uint64_t state = SEED;
    for (uint32_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ids[i] = text == TEXT_REPEATING && i >= PHRASE ? ids[i - PHRASE]
                                                       : (int32_t)((state >> 33) % model->params.n_vocab);
    }
}

static int submit(const struct options *options, const struct model *model, struct engine *engine,
                  enum text text, struct error *err)
{
    int32_t *prompt = calloc(options->depth, sizeof *prompt);
    if (!prompt)
        return error_set(err, -ENOMEM, "not enough memory for %u ids", options->depth);
    make_prompt(text, model, prompt, options->depth);
    struct engine_request request = {.prompt = prompt,
                                     .n_prompt = options->depth,
                                     .max_tokens = options->n,
                                     .min_tokens = options->n,
                                     .sampling = SAMPLING_GREEDY,
                                     .uncached = true};
    request.sampling.seed = SEED;
    request.sampling.temperature = text == TEXT_RANDOM ? 1 : 0;
    int r = engine_submit(engine, &request, err);
    free(prompt);
    return r > 0 ? -EINVAL : r;
}

/* One text, answered once. */
static int answer_once(const struct options *options, const struct model *model, struct engine *engine,
                       enum text text, struct answer *answer, struct error *err)
{
    *answer = (struct answer){.ids = answer->ids};
    int r = submit(options, model, engine, text, err);
    while (r >= 0 && !answer->ended)
        r = engine_step(engine, err);
    if (r >= 0 && answer->fault[0])
        return error_set(err, -EIO, "%s", answer->fault);
    if (r >= 0 && (answer->n < options->n || answer->n_first == answer->n))
        return error_set(err, -EIO, "the answer to the %s text ended after %u of %u ids", text_names[text],
                         answer->n, options->n);
    return r < 0 ? r : 0;
}

static double rate_of(const struct answer *answer)
{
    return (double)(answer->n - answer->n_first) * (double)CLOCK_NS_PER_S /
           (double)(answer->last.clock_ns - answer->first.clock_ns);
}

/* Ids per second of processor time. */
static double cpu_rate_of(const struct answer *answer)
{
    return (double)(answer->n - answer->n_first) * (double)CLOCK_NS_PER_S /
           (double)(answer->last.cpu_ns - answer->first.cpu_ns);
}

/* Both texts, by an engine of its own, with drafts or without. The first answer to each warms up. */
static int answer_all(const struct options *options, const struct model *model, struct backend_choice *choice,
                      bool drafts, struct answer *answers, struct backend_info *ret_info, struct error *err)
{
    const uint32_t context = options->depth + options->n;
    struct engine_config config = {.model = model,
                                   .backend_config = {.n_slots = 1,
                                                      .n_context = context,
                                                      .n_blocks = backend_blocks_for(context),
                                                      .kv_type = options->kv_type,
                                                      .cpu = {.n_threads = options->n_threads}},
                                   .draft = drafts ? prompt_lookup : NULL,
                                   .most_draft = options->draft,
                                   .max_waiting = 1};
    struct engine *engine;
    struct answer *current;
    int r = bench_open_engine(&config, choice, sink, &current, &engine, err);
    if (r < 0)
        return r;
    *ret_info = *engine_backend_info(engine);
    for (enum text text = 0; text < N_TEXTS && r == 0; text++) {
        current = &answers[text];
        r = answer_once(options, model, engine, text, current, err);
        if (r == 0)
            r = answer_once(options, model, engine, text, current, err);
    }
    engine_free(engine);
    return r;
}

/* One round. */
static int measure(const struct options *options, const struct model *model, struct backend_choice *choice,
                   struct answer (*answers)[N_TEXTS], uint32_t round, struct row *rows,
                   struct backend_info *ret_info, struct error *err)
{
    int r = answer_all(options, model, choice, false, answers[0], ret_info, err);
    if (r == 0)
        r = answer_all(options, model, choice, true, answers[1], ret_info, err);
    for (enum text text = 0; text < N_TEXTS && r == 0; text++) {
        const struct answer *plain = &answers[0][text], *drafting = &answers[1][text];
        struct row *row = &rows[text];
        row->plain[round] = rate_of(plain);
        row->drafting[round] = rate_of(drafting);
        row->ratios[round] = row->drafting[round] / row->plain[round];
        row->cpu_ratios[round] = cpu_rate_of(drafting) / cpu_rate_of(plain);
        row->drafted = drafting->drafted;
        row->accepted = drafting->accepted;
        row->same = 0;
        while (row->same < options->n && plain->ids[row->same] == drafting->ids[row->same])
            row->same++;
    }
    return r;
}

static void print_rows(const struct options *options, const struct backend_info *info, struct row *rows)
{
    printf("model    %s\n", options->path);
    printf("device   %s, keys and values in %s\n", info->device, kv_type_name(info->kv_type));
    printf("measured %u ids after %u, drafts of at most %u, median of %u\n\n", options->n, options->depth,
           options->draft, options->repetitions);
    static const char *const heading[2][8] = {
        {"", "tokens/s", "tokens/s", "ratio", "CPU", "", "", "same"},
        {"text", "without", "with drafts", "(least to most)", "time", "drafted", "accepted", "ids"}};
    for (int i = 0; i < 2; i++)
        printf("%-10s %11s %13s   %-22s %4s %9s %10s %6s\n", heading[i][0], heading[i][1], heading[i][2],
               heading[i][3], heading[i][4], heading[i][5], heading[i][6], heading[i][7]);
    for (enum text text = 0; text < N_TEXTS; text++) {
        struct row *row = &rows[text];
        const struct spread ratio = spread_of(row->ratios, options->repetitions);
        char range[48];
        snprintf(range, sizeof range, "%.2f (%.2f to %.2f)", ratio.median, ratio.min, ratio.max);
        printf("%-10s %11.2f %13.2f   %-22s %4.2f %9u %10u %6u\n", text_names[text],
               spread_of(row->plain, options->repetitions).median,
               spread_of(row->drafting, options->repetitions).median, range,
               spread_of(row->cpu_ratios, options->repetitions).median, row->drafted, row->accepted,
               row->same);
    }
}

static json_t *row_json(enum text text, struct row *row, uint32_t repetitions)
{
    const struct spread ratio = spread_of(row->ratios, repetitions);
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:i, s:i}", "text", text_names[text],
                     "tokens_per_second_without", spread_of(row->plain, repetitions).median,
                     "tokens_per_second", spread_of(row->drafting, repetitions).median, "ratio", ratio.median,
                     "ratio_min", ratio.min, "ratio_max", ratio.max, "cpu_ratio",
                     spread_of(row->cpu_ratios, repetitions).median, "drafted", (int)row->drafted, "accepted",
                     (int)row->accepted, "same_ids", (int)row->same);
}

static void print_json(const struct options *options, const struct backend_info *info, struct row *rows)
{
    json_t *list = json_array();
    for (enum text text = 0; text < N_TEXTS; text++)
        json_array_append_new(list, row_json(text, &rows[text], options->repetitions));
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:o}", "bench", "draft", "model", options->path,
                  "device", info->device, "kv_type", kv_type_name(info->kv_type), "n", (int)options->n,
                  "depth", (int)options->depth, "draft", (int)options->draft, "texts", list);
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
}

static int run(const struct options *options, const struct model *model, struct backend_choice *choice,
               struct error *err)
{
    static struct row rows[N_TEXTS];
    struct answer answers[2][N_TEXTS] = {0};
    struct backend_info info;
    int32_t *ids = calloc(2 * N_TEXTS, options->n * sizeof *ids);
    int r = ids ? 0 : error_set(err, -ENOMEM, "not enough memory for %u ids", options->n);
    for (int i = 0; i < 2 * N_TEXTS && ids; i++)
        answers[i / N_TEXTS][i % N_TEXTS].ids = ids + (size_t)i * options->n;
    for (uint32_t i = 0; i < options->repetitions && r == 0; i++)
        r = measure(options, model, choice, answers, i, rows, &info, err);
    if (r == 0)
        (options->json ? print_json : print_rows)(options, &info, rows);
    free(ids);
    return r;
}

int bench_draft(int argc, char **argv)
{
    static const struct argp argp = {
        .options = known,
        .parser = parse,
        .args_doc = "MODEL",
        .doc = "Measures one sequence that decodes with drafts and without, on a text that repeats a phrase "
               "and on a random one, without a pool."};
    struct options options = {.device = "auto", .n = 128, .depth = 256, .draft = 8, .repetitions = 3};
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
