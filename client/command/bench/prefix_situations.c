/* SPDX-License-Identifier: MIT */
/* The situations of quern bench prefix in which one prompt comes again. */

#include "client/command/bench/prefix.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/bench/bench.h"
#include "client/command/bench/llama_server.h"
#include "client/command/terminal/interrupt.h"

int measure_again(struct prefix_bench *bench, struct error *err)
{
    const struct prefix_options *options = bench->options;
    int32_t *ids = calloc(options->ids, sizeof *ids);
    double cold[PROMPTS_MOST], warm[PROMPTS_MOST];
    struct prefix_asked asked;
    int r = ids ? 0 : error_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; r == 0 && i <= options->repetitions; i++) {
        prefix_make_ids(ids, options->ids, i);
        r = prefix_ask(bench, &asked, ids, options->ids, 1, err);
        double first = (double)(asked.first_ns - asked.sent_ns);
        if (r == 0)
            r = prefix_ask(bench, &asked, ids, options->ids, 1, err);
        if (r == 0 && i > 0) { /* the very first finds a worker that has never run */
            cold[i - 1] = first;
            warm[i - 1] = (double)(asked.first_ns - asked.sent_ns);
        }
    }
    free(ids);
    if (r == 0)
        prefix_print(options, "again", "time to the first token, warm / cold",
                     spread_of(warm, options->repetitions).median /
                         spread_of(cold, options->repetitions).median,
                     0.05, false);
    return r;
}

/* The same of another program: each prompt cold and warm, the first one not counted. */
static int ask_llama_server(struct llama_server *server, const struct prefix_options *options, double *cold,
                            double *warm, struct error *err)
{
    int32_t *ids = calloc(options->ids, sizeof *ids);
    int r = ids ? 0 : error_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; r == 0 && i <= options->repetitions; i++) {
        uint64_t first = 0, second = 0;
        prefix_make_ids(ids, options->ids, i);
        r = llama_server_ask(server, ids, options->ids, &first, err);
        if (r == 0)
            r = llama_server_ask(server, ids, options->ids, &second, err);
        if (r == 0 && i > 0) {
            cold[i - 1] = (double)first;
            warm[i - 1] = (double)second;
        }
    }
    free(ids);
    return r;
}

static int time_llama_server(struct prefix_bench *bench, double *ret_value, struct error *err)
{
    const struct prefix_options *options = bench->options;
    double cold[PROMPTS_MOST], warm[PROMPTS_MOST];
    struct llama_server *server;
    int r = llama_server_start(options->llama_server, bench->model, options->ids + 64, &server, err);
    if (r < 0)
        return r;
    r = ask_llama_server(server, options, cold, warm, err);
    llama_server_end(server);
    if (r == 0)
        *ret_value =
            spread_of(warm, options->repetitions).median / spread_of(cold, options->repetitions).median;
    return r;
}

int measure_llama_server(struct prefix_bench *bench, struct error *err)
{
    double value = NAN;
    int r = bench->options->llama_server ? time_llama_server(bench, &value, err) : 0;
    if (r == 0)
        prefix_print_beside(bench->options, "llama",
                            "the same for llama-server with cache_prompt (--llama-server)", value);
    return r;
}

#define DEATHS 3 /* of workers, and prompts that outlive one */

/* Kills the worker that has computed most, and waits until nobody is in its place, or another process is. */
static int kill_worker(struct prefix_bench *bench, bool replaced, struct error *err)
{
    const struct quern_status *status;
    uint64_t start = clock_ns();
    size_t most = 0;
    int r = prefix_ask_status(bench, &status, err);
    if (r < 0)
        return r;
    for (size_t i = 1; i < status->n_workers; i++)
        if (status->workers[i].prefill_tokens > status->workers[most].prefill_tokens)
            most = i;
    const uint32_t incarnation = status->workers[most].incarnation;
    bool ready, is_new;
    kill((pid_t)status->workers[most].pid, SIGKILL);
    do {
        quern_dispatch(pool_client(bench->pool), 20, NULL);
        r = prefix_ask_status(bench, &status, err);
        if (r == 0 && clock_ns() - start > STALL_NS)
            r = error_set(err, -ETIMEDOUT, "the worker was not started again within a minute");
        if (r == 0 && interrupt_signal())
            r = error_set(err, -EINTR, "interrupted");
        ready = r == 0 && strcmp(status->workers[most].state, "ready") == 0;
        is_new = r == 0 && status->workers[most].incarnation != incarnation;
    } while (r == 0 && (replaced ? !(ready && is_new) : ready && !is_new));
    return r;
}

static bool is_ready(const struct quern_status *status)
{
    for (size_t i = 0; i < status->n_workers; i++)
        if (strcmp(status->workers[i].state, "ready") != 0)
            return false;
    return true;
}

/* Until somebody is in every place. */
static int await_workers(struct prefix_bench *bench, struct error *err)
{
    const struct quern_status *status = NULL;
    const uint64_t start = clock_ns();
    int r = prefix_ask_status(bench, &status, err);
    while (r == 0 && !is_ready(status)) {
        quern_dispatch(pool_client(bench->pool), 20, NULL);
        r = prefix_ask_status(bench, &status, err);
        if (r == 0 && clock_ns() - start > STALL_NS)
            r = error_set(err, -ETIMEDOUT, "a worker was not started again within a minute");
        if (r == 0 && interrupt_signal())
            r = error_set(err, -EINTR, "interrupted");
    }
    return r;
}

/* Asks for something else, so that nothing is measured of a worker that has never run, and so that what was
 * asked before is in the store. */
static int ask_for_another(struct prefix_bench *bench, uint64_t name, uint32_t max_tokens, struct error *err)
{
    int32_t ids[2 * BLOCK];
    struct prefix_asked asked;
    prefix_make_ids(ids, 2 * BLOCK, name);
    return prefix_ask(bench, &asked, ids, 2 * BLOCK, max_tokens, err);
}

static int take_time(struct prefix_bench *bench, const int32_t *ids, double *ret_ns, struct error *err)
{
    struct prefix_asked asked;
    int r = prefix_ask(bench, &asked, ids, bench->options->ids, 1, err);
    *ret_ns = (double)(asked.first_ns - asked.sent_ns);
    return r;
}

/* Each prompt before a worker's death and after it. `replaced`: the worker itself is asked again, in its next
 * life; else another one, and once the next has come to its place the next prompt. */
static int measure_store(struct prefix_bench *bench, bool replaced, struct error *err)
{
    const struct prefix_options *options = bench->options;
    int32_t *ids = calloc(options->ids, sizeof *ids);
    double cold[DEATHS], warm[DEATHS];
    int r = ids ? 0 : error_set(err, -ENOMEM, "out of memory");
    for (uint64_t i = 0; r == 0 && i < DEATHS; i++) {
        prefix_make_ids(ids, options->ids, 5500 + i);
        r = ask_for_another(bench, 6000 + 4 * i, 16, err);
        if (r == 0)
            r = take_time(bench, ids, &cold[i], err);
        if (r == 0)
            r = ask_for_another(bench, 6001 + 4 * i, 64, err);
        if (r == 0)
            r = kill_worker(bench, replaced, err);
        if (r == 0)
            r = ask_for_another(bench, 6002 + 4 * i, 16, err);
        if (r == 0)
            r = take_time(bench, ids, &warm[i], err);
        if (r == 0 && !replaced)
            r = await_workers(bench, err);
    }
    free(ids);
    if (r == 0)
        prefix_print(options, replaced ? "restart" : "other",
                     replaced ? "time to the first token, from the store / cold"
                              : "the same for a worker that never saw the prompt",
                     spread_of(warm, DEATHS).median / spread_of(cold, DEATHS).median, 0.15, false);
    return r;
}

int measure_restart(struct prefix_bench *bench, struct error *err)
{
    return measure_store(bench, true, err);
}

int measure_other(struct prefix_bench *bench, struct error *err)
{
    return measure_store(bench, false, err);
}

int measure_chat(struct prefix_bench *bench, struct error *err)
{
    const struct prefix_options *options = bench->options;
    int32_t *ids = calloc((size_t)options->turns * 2 * TURN_IDS, sizeof *ids);
    uint64_t computed = 0;
    uint32_t n = 0;
    struct prefix_asked asked = {0};
    int r = ids ? 0 : error_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; r == 0 && i < options->turns; i++) {
        memcpy(ids + n, asked.output, asked.output_tokens * sizeof *ids);
        n += asked.output_tokens;
        prefix_make_ids(ids + n, TURN_IDS, 1000 + i);
        n += TURN_IDS;
        r = prefix_ask(bench, &asked, ids, n, TURN_IDS, err);
        computed += asked.prompt_tokens - asked.cached_tokens;
    }
    free(ids);
    if (r == 0)
        prefix_print(options, "chat", "prompt tokens computed / new in their turn", (double)computed / n, 1.1,
                     false);
    return r;
}

int measure_at_once(struct prefix_bench *bench, struct error *err)
{
    const uint32_t n = bench->options->ids / 2;
    int32_t *ids = calloc(n, sizeof *ids);
    struct prefix_asked asked[AT_ONCE];
    uint64_t computed = 0;
    int r = ids ? 0 : error_set(err, -ENOMEM, "out of memory");
    if (r == 0)
        prefix_make_ids(ids, n, 2000);
    for (uint32_t i = 0; r == 0 && i < AT_ONCE; i++)
        r = prefix_send(bench, &asked[i], ids, n, 8, err);
    if (r == 0)
        r = prefix_await(bench, 0, err);
    for (uint32_t i = 0; r == 0 && i < AT_ONCE; i++)
        computed += asked[i].prompt_tokens - asked[i].cached_tokens;
    free(ids);
    if (r == 0)
        prefix_print(bench->options, "at once", "16 requests, prompt tokens computed / one prompt",
                     (double)computed / n, 1.5, false);
    return r;
}
