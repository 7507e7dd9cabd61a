/* SPDX-License-Identifier: MIT */
/* quern bench prefix: what the prefix cache saves.
 *
 * Six situations, each with private pools of its own and a goal beside its value. Work is counted in tokens
 * of prompts that were computed, which no load on the machine changes: what a request's usage says that it
 * had, less what was found. Time to the first token is the only time.
 *
 *     again     one prompt, a second time, on one worker: time to the first token, warm ÷ cold
 *     llama     the same of a llama-server with cache_prompt, where one is named
 *     restart   one prompt, again after its worker was killed: the pool's prefix store has it
 *     other     the same of a worker that never saw it, while nobody is in the place of the one that did
 *     chat      a conversation, each turn with all before it: what was computed ÷ what was new
 *     tenants   four workers, prompts of forty tenants, each with a long beginning of its own, some much more
 *               often than others (Zipf): what was found ÷ what one cache for all could find; and the work of
 *               the worker with most ÷ the mean. Beside it, what four pools of one worker find between which
 *               a simpler rule chooses
 *     at once   sixteen requests with one prompt at the same moment: what was computed ÷ one prompt */

#include "client/command/bench/prefix.h"

#include <argp.h>
#include <stdio.h>

#include "client/command/bench/bench.h"
#include "client/command/verbs.h"
#include "common/program/arguments.h"
#include "common/system/topology.h"

#define STORE_MIB 64

static int measure_all(void *arg, const char *model, struct error *err)
{
    struct prefix_bench *bench = arg;
    const struct {
        int (*measure)(struct prefix_bench *bench, struct error *err);
        uint32_t workers, store_mib; /* workers 0: it starts what it asks */
        bool free_tokens;            /* what is counted, not timed, needs no computing */
    } situations[] = {{measure_again, 1, 0, false},
                      {measure_llama_server, 0, 0, false},
                      {measure_restart, 1, STORE_MIB, false},
                      {measure_other, 2, STORE_MIB, false},
                      {measure_chat, 1, 0, true},
                      {measure_tenants, WORKERS, 0, true},
                      {measure_tenants_apart, 0, 0, true},
                      {measure_at_once, WORKERS, 0, false}};
    int r = 0;
    bench->model = model;
    if (!bench->options->json)
        printf("prompts of %u ids; tenants: %u requests of %u, Zipf; chat of %u turns; %u cores\n",
               bench->options->ids, bench->options->requests, TENANTS, bench->options->turns,
               topology_threads_here());
    for (size_t i = 0; r == 0 && i < sizeof situations / sizeof *situations; i++) {
        const char *device = situations[i].free_tokens ? "null" : bench->options->device;
        if (situations[i].workers > 0)
            r = prefix_open_pool(bench, device, situations[i].workers, situations[i].store_mib, err);
        if (r == 0)
            r = situations[i].measure(bench, err);
        bench->pool = pool_close(bench->pool);
    }
    return r;
}

/* ---- the command ---- */

static const struct argp_option known[] = {
    {NULL, 'n', "N", 0, "Ids of a prompt (2000); half as many for requests sent at once", 0},
    {"turns", 't', "N", 0, "Turns of the conversation (20)", 0},
    {"requests", 's', "N", 0, "Requests of the tenants (2000)", 0},
    {"repetitions", 'r', "N", 0, "Prompts to time (5)", 0},
    {"model", 'm', "FILE", 0, "The model (default: a tiny generated one)", 0},
    {"device", 'd', "NAME", 0, "The device for time measurements", 0},
    {"llama-server", 'l', "FILE", 0, "A llama-server program to compare with", 0},
    {"json", 'J', NULL, 0, "Print a JSON object per line", 0},
    {0}};

static const struct argument arguments[] = {
    {'n', ARGUMENT_NUMBER, offsetof(struct prefix_options, ids), 128, 1 << 17},
    {'t', ARGUMENT_NUMBER, offsetof(struct prefix_options, turns), 1, 1000},
    {'s', ARGUMENT_NUMBER, offsetof(struct prefix_options, requests), 1, 1 << 20},
    {'r', ARGUMENT_NUMBER, offsetof(struct prefix_options, repetitions), 1, PROMPTS_MOST},
    {'m', ARGUMENT_TEXT, offsetof(struct prefix_options, model), 0, 0},
    {'d', ARGUMENT_TEXT, offsetof(struct prefix_options, device), 0, 0},
    {'l', ARGUMENT_TEXT, offsetof(struct prefix_options, llama_server), 0, 0},
    {'J', ARGUMENT_FLAG, offsetof(struct prefix_options, json), 0, 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    return arguments_take(arguments, known, key, arg, state, state->input);
}

int bench_prefix(int argc, char **argv)
{
    static const struct argp argp = {
        .options = known,
        .parser = parse,
        .doc = "Measures the savings of the prefix cache and compares them with the goals."};
    struct prefix_options options = {.ids = 2000, .turns = 20, .requests = 2000, .repetitions = 5};
    struct prefix_bench bench = {.options = &options};
    arguments_parse(&argp, argc, argv, &options);
    return bench_with_model(options.model, "tiny", measure_all, &bench);
}
