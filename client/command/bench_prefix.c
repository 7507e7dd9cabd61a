/* SPDX-License-Identifier: MIT */
/* quern bench prefix: what is saved of prompts that begin as others did.
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

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/arguments.h"
#include "client/command/bench.h"
#include "client/command/bench_llama_server.h"
#include "client/command/interrupt.h"
#include "client/command/pool.h"
#include "client/command/verbs.h"
#include <quern.h>
#include "common/clock.h"
#include "common/hash.h"

#define STALL_NS     (60 * CLOCK_NS_PER_S) /* without any end: give up */
#define BLOCK        32                    /* ids that are found at once: a KV block */
#define WORKERS      4
#define TENANTS      40
#define TENANTS_OWN  80 /* ids of each tenant's request that no other has */
#define AT_ONCE      16
#define TURN_IDS     100 /* of what is asked, and of what is answered */
#define PROMPTS_MOST 64
#define STORE_MIB    64

struct options {
    const char *model, *device, *llama_server;
    uint32_t ids, turns, requests, repetitions;
    bool json;
};

/* How requests are routed where the pool does not do it. */
enum policy { ITS_OWN, IN_TURN, LEAST_OPEN };

struct bench {
    const struct options *options;
    const char *model;           /* a file */
    struct pool *pool;           /* that is asked */
    struct pool *apart[WORKERS]; /* pools of one worker each; NULL: there are none */
    uint32_t open, open_apart[WORKERS];
    uint64_t last_end_ns;
    enum policy policy; /* of the pools apart */
    char wrong[200];    /* what ended otherwise than it should; empty */
};

/* One request, from its sending to its end. */
struct asked {
    struct bench *bench;
    uint64_t sent_ns, first_ns;
    uint32_t prompt_tokens, cached_tokens, output_tokens;
    int32_t output[TURN_IDS];
    uint32_t place; /* of its pool, among those apart */
};

/* ---- requests ---- */

static void on_output(void *arg, const struct quern_output *output)
{
    struct asked *asked = arg;
    struct bench *bench = asked->bench;
    if (asked->first_ns == 0)
        asked->first_ns = clock_ns();
    for (size_t i = 0; i < output->n_ids && asked->output_tokens < TURN_IDS; i++)
        asked->output[asked->output_tokens++] = output->ids[i];
    const struct quern_end *end = output->end;
    if (!end)
        return;
    asked->prompt_tokens = end->prompt_tokens;
    asked->cached_tokens = end->cached_tokens;
    bench->open--;
    bench->open_apart[asked->place]--;
    bench->last_end_ns = clock_ns();
    if (end->reason == QUERN_ERROR)
        snprintf(bench->wrong, sizeof bench->wrong, "a request ended by %s: %.120s", end->error, end->text);
}

/* The pools apart in turn: each for itself, and the program chooses between them. */
static uint32_t place_of(const struct bench *bench)
{
    uint32_t place = 0;
    while (place < WORKERS - 1 && bench->apart[place] != bench->pool)
        place++;
    return place;
}

static int send(struct bench *bench, struct asked *asked, const int32_t *ids, size_t n, uint32_t max_tokens,
                struct error *err)
{
    struct quern_request request;
    struct quern_error said = {0};
    quern_request_init(&request);
    request.ids = ids;
    request.n_ids = n;
    request.max_tokens = max_tokens;
    request.has_seed = true;
    *asked = (struct asked){.bench = bench, .sent_ns = clock_ns(), .place = place_of(bench)};
    bench->open++;
    bench->open_apart[asked->place]++;
    int r = quern_generate(pool_client(bench->pool), &request, on_output, asked, NULL, &said);
    return r < 0 ? error_set(err, r, "%s", said.text) : 0;
}

/* Until no more than `open` are under way. */
static int await(struct bench *bench, uint32_t open, struct error *err)
{
    struct quern_error said = {0};
    bench->last_end_ns = clock_ns();
    while (bench->open > open) {
        int r = 0;
        for (uint32_t i = 0; i < WORKERS && bench->apart[i] && r >= 0; i++)
            r = quern_dispatch(pool_client(bench->apart[i]), 1, &said);
        if (!bench->apart[0])
            r = quern_dispatch(pool_client(bench->pool), 1000, &said);
        if (r < 0)
            return error_set(err, r, "%s", said.text);
        if (bench->wrong[0])
            return error_set(err, -EPROTO, "%s", bench->wrong);
        if (interrupt_signal())
            return error_set(err, -EINTR, "interrupted");
        if (clock_ns() - bench->last_end_ns > STALL_NS)
            return error_set(err, -ETIMEDOUT, "nothing has ended for a minute, %u requests are open",
                             bench->open);
    }
    return 0;
}

static int ask(struct bench *bench, struct asked *asked, const int32_t *ids, size_t n, uint32_t max_tokens,
               struct error *err)
{
    int r = send(bench, asked, ids, n, max_tokens, err);
    return r == 0 ? await(bench, 0, err) : r;
}

/* Ids that every vocabulary has, and that no other `name` begins with. */
static void make_ids(int32_t *ids, size_t n, uint64_t name)
{
    for (uint64_t i = 0; i < n; i++)
        ids[i] = (int32_t)(3 + hash64(&i, sizeof i, name) % 256);
}

static int open_pool(struct bench *bench, const char *device, uint32_t workers, uint32_t store_mib,
                     struct error *err)
{
    const struct pool_options options = {
        .model = bench->model, .device = device, .workers = workers, .prefix_store = store_mib};
    bench->open = 0;
    return pool_open(&options, &bench->pool, err);
}

/* ---- what is printed ---- */

static void print(const struct options *options, const char *name, const char *what, double value,
                  double goal, bool at_least)
{
    bool reached = at_least ? value >= goal : value <= goal;
    if (!options->json) {
        printf("%-8s  %-58s  %s %.2f  %8.3f%s\n", name, what, at_least ? ">=" : "<=", goal, value,
               reached ? "" : "  missed");
        fflush(stdout);
        return;
    }
    json_t *json = json_pack("{s:s, s:s, s:s, s:f, s:s, s:f, s:b}", "bench", "prefix", "situation", name,
                             "value_of", what, "value", value, "bound", at_least ? "least" : "most", "goal",
                             goal, "reached", reached);
    json_dumpf(json, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(json);
}

/* ---- the situations ---- */

static int measure_again(struct bench *bench, struct error *err)
{
    const struct options *options = bench->options;
    int32_t *ids = calloc(options->ids, sizeof *ids);
    double cold[PROMPTS_MOST], warm[PROMPTS_MOST];
    struct asked asked;
    int r = ids ? 0 : error_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; r == 0 && i <= options->repetitions; i++) {
        make_ids(ids, options->ids, i);
        r = ask(bench, &asked, ids, options->ids, 1, err);
        double first = (double)(asked.first_ns - asked.sent_ns);
        if (r == 0)
            r = ask(bench, &asked, ids, options->ids, 1, err);
        if (r == 0 && i > 0) { /* the very first finds a worker that has never run */
            cold[i - 1] = first;
            warm[i - 1] = (double)(asked.first_ns - asked.sent_ns);
        }
    }
    free(ids);
    if (r == 0)
        print(options, "again", "time to the first token, warm / cold",
              spread_of(warm, options->repetitions).median / spread_of(cold, options->repetitions).median,
              0.05, false);
    return r;
}

/* The same of another program: each prompt cold and warm, the first one not counted. */
static int ask_llama_server(struct llama_server *server, const struct options *options, double *cold,
                            double *warm, struct error *err)
{
    int32_t *ids = calloc(options->ids, sizeof *ids);
    int r = ids ? 0 : error_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; r == 0 && i <= options->repetitions; i++) {
        uint64_t first = 0, second = 0;
        make_ids(ids, options->ids, i);
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

static int measure_llama_server(struct bench *bench, double *ret_value, struct error *err)
{
    const struct options *options = bench->options;
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

/* Beside ours; nothing that is to be reached. NAN: it was not run. */
static void print_beside(const struct options *options, const char *name, const char *what, double value)
{
    if (options->json) {
        json_t *json = json_pack("{s:s, s:s, s:s, s:o}", "bench", "prefix", "situation", name, "value_of",
                                 what, "value", isnan(value) ? json_null() : json_real(value));
        json_dumpf(json, stdout, JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(json);
    } else if (isnan(value)) {
        printf("%-8s  %-58s            not run\n", name, what);
    } else {
        printf("%-8s  %-58s           %8.3f\n", name, what, value);
    }
    fflush(stdout);
}

static int compare(struct bench *bench, struct error *err)
{
    double value = NAN;
    int r = bench->options->llama_server ? measure_llama_server(bench, &value, err) : 0;
    if (r == 0)
        print_beside(bench->options, "llama", "the same of llama-server with cache_prompt (--llama-server)",
                     value);
    return r;
}

static int ask_status(struct bench *bench, const struct quern_status **ret_status, struct error *err)
{
    struct quern_error said = {0};
    int r = quern_status(pool_client(bench->pool), 5000, ret_status, &said);
    return r < 0 ? error_set(err, r, "%s", said.text) : 0;
}

/* Kills the worker that has computed most, and waits until nobody is in its place, or another process is. */
static int kill_worker(struct bench *bench, bool replaced, struct error *err)
{
    const struct quern_status *status;
    uint64_t start = clock_ns();
    size_t most = 0;
    int r = ask_status(bench, &status, err);
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
        r = ask_status(bench, &status, err);
        if (r == 0 && clock_ns() - start > STALL_NS)
            r = error_set(err, -ETIMEDOUT, "the worker was not started again within a minute");
        if (r == 0 && interrupt_signal())
            r = error_set(err, -EINTR, "interrupted");
        ready = r == 0 && strcmp(status->workers[most].state, "ready") == 0;
        is_new = r == 0 && status->workers[most].incarnation != incarnation;
    } while (r == 0 && (replaced ? !(ready && is_new) : ready && !is_new));
    return r;
}

/* Others were asked before each, so that nothing is measured of a worker that has never run; and after the
 * cold one, so that its blocks are in the store. `replaced`: the worker itself is asked again, in its next
 * life; else another one. */
static int measure_store(struct bench *bench, bool replaced, struct error *err)
{
    const struct options *options = bench->options;
    int32_t *ids = calloc(options->ids, sizeof *ids), other[2 * BLOCK];
    struct asked asked, cold, warm;
    int r = ids ? 0 : error_set(err, -ENOMEM, "out of memory");
    for (uint64_t round = 0; r == 0 && round < 2; round++) {
        make_ids(other, 2 * BLOCK, 5000 + round);
        r = ask(bench, &asked, other, 2 * BLOCK, 16, err);
        make_ids(ids, r == 0 ? options->ids : 0, 5500);
        if (r == 0)
            r = ask(bench, round == 0 ? &cold : &warm, ids, options->ids, 1, err);
        make_ids(other, 2 * BLOCK, 6000 + round);
        if (r == 0)
            r = ask(bench, &asked, other, 2 * BLOCK, 64, err);
        if (r == 0 && round == 0)
            r = kill_worker(bench, replaced, err);
    }
    free(ids);
    if (r == 0)
        print(options, replaced ? "restart" : "other",
              replaced ? "time to the first token, from the store / cold"
                       : "the same of a worker that never saw the prompt",
              (double)(warm.first_ns - warm.sent_ns) / (double)(cold.first_ns - cold.sent_ns), 0.15, false);
    return r;
}

static int measure_restart(struct bench *bench, struct error *err)
{
    return measure_store(bench, true, err);
}

static int measure_other(struct bench *bench, struct error *err)
{
    return measure_store(bench, false, err);
}

static int measure_chat(struct bench *bench, struct error *err)
{
    const struct options *options = bench->options;
    int32_t *ids = calloc((size_t)options->turns * 2 * TURN_IDS, sizeof *ids);
    uint64_t computed = 0;
    uint32_t n = 0;
    struct asked asked = {0};
    int r = ids ? 0 : error_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; r == 0 && i < options->turns; i++) {
        memcpy(ids + n, asked.output, asked.output_tokens * sizeof *ids);
        n += asked.output_tokens;
        make_ids(ids + n, TURN_IDS, 1000 + i);
        n += TURN_IDS;
        r = ask(bench, &asked, ids, n, TURN_IDS, err);
        computed += asked.prompt_tokens - asked.cached_tokens;
    }
    free(ids);
    if (r == 0)
        print(options, "chat", "prompt tokens computed / new in their turn", (double)computed / n, 1.1,
              false);
    return r;
}

static int measure_at_once(struct bench *bench, struct error *err)
{
    const uint32_t n = bench->options->ids / 2;
    int32_t *ids = calloc(n, sizeof *ids);
    struct asked asked[AT_ONCE];
    uint64_t computed = 0;
    int r = ids ? 0 : error_set(err, -ENOMEM, "out of memory");
    if (r == 0)
        make_ids(ids, n, 2000);
    for (uint32_t i = 0; r == 0 && i < AT_ONCE; i++)
        r = send(bench, &asked[i], ids, n, 8, err);
    if (r == 0)
        r = await(bench, 0, err);
    for (uint32_t i = 0; r == 0 && i < AT_ONCE; i++)
        computed += asked[i].prompt_tokens - asked[i].cached_tokens;
    free(ids);
    if (r == 0)
        print(bench->options, "at once", "16 requests, prompt tokens computed / one prompt",
              (double)computed / n, 1.5, false);
    return r;
}

/* The k-th tenant has a share of 1/k. */
static uint32_t tenant_of(uint64_t request)
{
    double sum = 0, at = (double)(hash64(&request, sizeof request, 3) >> 11) / (double)(1ull << 53);
    for (uint32_t k = 1; k <= TENANTS; k++)
        sum += 1.0 / k;
    for (uint32_t k = 1; k < TENANTS; k++)
        if ((at -= 1.0 / k / sum) < 0)
            return k - 1;
    return TENANTS - 1;
}

/* Which of the pools apart gets the request. */
static void choose(struct bench *bench, uint32_t request)
{
    uint32_t place = request % WORKERS;
    if (bench->policy == ITS_OWN)
        return;
    if (bench->policy == LEAST_OPEN)
        for (uint32_t i = 0; i < WORKERS; i++)
            place = bench->open_apart[i] < bench->open_apart[place] ? i : place;
    bench->pool = bench->apart[place];
}

static int ask_as_tenants(struct bench *bench, struct asked *asked, double *ret_found, struct error *err)
{
    const struct options *options = bench->options;
    size_t n = options->ids + TENANTS_OWN;
    int32_t *ids = calloc(n, sizeof *ids);
    bool seen[TENANTS] = {false};
    uint64_t found = 0, could = 0;
    int r = ids ? 0 : error_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; r == 0 && i < options->requests; i++) {
        uint32_t tenant = tenant_of(i);
        make_ids(ids, options->ids, 3000 + tenant);
        make_ids(ids + options->ids, TENANTS_OWN, 4000 + i);
        choose(bench, i);
        could += seen[tenant] ? options->ids / BLOCK * BLOCK : 0;
        seen[tenant] = true;
        r = send(bench, &asked[i], ids, n, 16, err);
        if (r == 0)
            r = await(bench, AT_ONCE - 1, err);
    }
    if (r == 0)
        r = await(bench, 0, err);
    for (uint32_t i = 0; r == 0 && i < options->requests; i++)
        found += asked[i].cached_tokens;
    free(ids);
    *ret_found = could > 0 ? (double)found / (double)could : 1;
    return r;
}

/* By the workers' own count, which comes with their next report. */
static int ask_for_work(struct bench *bench, double *ret_imbalance, struct error *err)
{
    const struct quern_status *status;
    uint64_t most = 0, sum = 0, tokens = 0, start = clock_ns();
    do {
        int r = ask_status(bench, &status, err);
        if (r < 0)
            return r;
        most = sum = tokens = 0;
        for (size_t i = 0; i < status->n_workers; i++) {
            uint64_t work = status->workers[i].prefill_tokens + status->workers[i].tokens;
            most = work > most ? work : most;
            sum += work;
            tokens += status->workers[i].tokens;
        }
    } while (tokens < status->tokens && clock_ns() - start < STALL_NS && usleep(10000) == 0);
    *ret_imbalance = sum > 0 ? (double)most * (double)status->n_workers / (double)sum : 1;
    return 0;
}

static int measure_tenants(struct bench *bench, struct error *err)
{
    struct asked *asked = calloc(bench->options->requests, sizeof *asked);
    double found = 0, imbalance = 0;
    if (!asked)
        return error_set(err, -ENOMEM, "out of memory");
    int r = ask_as_tenants(bench, asked, &found, err);
    if (r == 0)
        r = ask_for_work(bench, &imbalance, err);
    free(asked);
    if (r == 0) {
        print(bench->options, "tenants", "prompt tokens found / what one cache for all could find", found,
              0.95, true);
        print(bench->options, "tenants", "work of the busiest of 4 workers / the mean", imbalance, 1.3,
              false);
    }
    return r;
}

static int open_apart(struct bench *bench, struct error *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < WORKERS; i++) {
        r = open_pool(bench, "null", 1, 0, err);
        bench->apart[i] = r == 0 ? bench->pool : NULL;
    }
    return r;
}

/* The same requests to four pools of one worker, between which a simpler rule chooses. */
static int measure_apart(struct bench *bench, enum policy policy, const char *what, struct error *err)
{
    struct asked *asked = calloc(bench->options->requests, sizeof *asked);
    double found = 0;
    int r = asked ? open_apart(bench, err) : error_set(err, -ENOMEM, "out of memory");
    bench->policy = policy;
    if (r == 0)
        r = ask_as_tenants(bench, asked, &found, err);
    bench->policy = ITS_OWN;
    for (uint32_t i = 0; i < WORKERS; i++)
        bench->apart[i] = pool_close(bench->apart[i]);
    bench->pool = NULL;
    free(asked);
    if (r == 0)
        print_beside(bench->options, "tenants", what, found);
    return r;
}

static int measure_all(struct bench *bench, struct error *err)
{
    const struct {
        int (*measure)(struct bench *bench, struct error *err);
        uint32_t workers, store_mib;
        bool free_tokens; /* what is counted, not timed, needs no computing */
    } situations[] = {{measure_again, 1, 0, false},         {measure_restart, 1, STORE_MIB, false},
                      {measure_other, 2, STORE_MIB, false}, {measure_chat, 1, 0, true},
                      {measure_tenants, WORKERS, 0, true},  {measure_at_once, WORKERS, 0, false}};
    int r = 0;
    if (!bench->options->json)
        printf("prompts of %u ids; tenants: %u requests of %u, Zipf; chat of %u turns; %ld cores\n",
               bench->options->ids, bench->options->requests, TENANTS, bench->options->turns,
               sysconf(_SC_NPROCESSORS_ONLN));
    for (size_t i = 0; r == 0 && i < sizeof situations / sizeof *situations; i++) {
        const char *device = situations[i].free_tokens ? "null" : bench->options->device;
        r = open_pool(bench, device, situations[i].workers, situations[i].store_mib, err);
        if (r == 0)
            r = situations[i].measure(bench, err);
        bench->pool = pool_close(bench->pool);
        if (r == 0 && situations[i].measure == measure_again)
            r = compare(bench, err);
        if (r == 0 && situations[i].measure == measure_tenants)
            r = measure_apart(bench, LEAST_OPEN, "found where the worker with the fewest requests is asked",
                              err);
        if (r == 0 && situations[i].measure == measure_tenants)
            r = measure_apart(bench, IN_TURN, "found where each worker is asked in turn", err);
    }
    return r;
}

/* ---- the command ---- */

static int parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 'n':
        options->ids = (uint32_t)argument_number(state, "-n", arg, 128, 1 << 17);
        return 0;
    case 't':
        options->turns = (uint32_t)argument_number(state, "--turns", arg, 1, 1000);
        return 0;
    case 's':
        options->requests = (uint32_t)argument_number(state, "--requests", arg, 1, 1 << 20);
        return 0;
    case 'r':
        options->repetitions = (uint32_t)argument_number(state, "--repetitions", arg, 1, PROMPTS_MOST);
        return 0;
    case 'm':
        options->model = arg;
        return 0;
    case 'd':
        options->device = arg;
        return 0;
    case 'l':
        options->llama_server = arg;
        return 0;
    case 'J':
        options->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int bench_prefix(int argc, char **argv)
{
    static const struct argp_option known[] = {
        {NULL, 'n', "N", 0, "Ids of a prompt (2000); of those sent at once, half of it", 0},
        {"turns", 't', "N", 0, "Turns of the conversation (20)", 0},
        {"requests", 's', "N", 0, "Requests of the tenants (2000)", 0},
        {"repetitions", 'r', "N", 0, "Prompts to take times of (5)", 0},
        {"model", 'm', "FILE", 0, "The model (default: a tiny one made for this)", 0},
        {"device", 'd', "NAME", 0, "The device, where times or moments matter", 0},
        {"llama-server", 'l', "FILE", 0, "A llama-server, to ask it the same", 0},
        {"json", 'J', NULL, 0, "One JSON object a line", 0},
        {0}};
    static const struct argp argp = {
        .options = known,
        .parser = parse,
        .doc = "Measures what is saved of prompts that begin as others did, beside the goals."};
    struct options options = {.ids = 2000, .turns = 20, .requests = 2000, .repetitions = 5};
    struct bench bench = {.options = &options};
    struct error err = {0};
    char path[PATH_MAX] = "";
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    interrupt_catch();
    int r = options.model ? 0 : bench_make_model("tiny", path, &err);
    bench.model = options.model ? options.model : path;
    if (r == 0)
        r = measure_all(&bench, &err);
    if (path[0])
        unlink(path);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
