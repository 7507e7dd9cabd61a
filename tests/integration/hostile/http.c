/* SPDX-License-Identifier: MIT */
/* Hostile clients of HTTP: a real gateway before a real pool, one attack after the other, beside good
 * clients.
 *
 *   hostile_http [--seconds N] [--gap MS] [--wait MS] [--memory MIB] [CASE…]
 *
 * The pool computes nothing, but takes 4 ms a step (paced/paced_device.c), so that streams come evenly. Each
 * case has a gateway of its own. Good clients (good.h) are served in calm first; then the attack goes
 * on for so many seconds, and when it is over the gateway has ten to give its memory back, and the pool to
 * end what nobody waits for.
 *
 * A line a case: the gaps of the good client's stream in calm and under attack, beside those of a client that
 * asks the pool itself; how long five tokens took on a new connection at worst; the gateway's memory; what
 * the attackers got. A gap or a wait is the gateway's as far as it is longer than the worst of the client
 * that asks the pool itself: the rest is the machine's, or the pool's. Below it, on stderr, a sentence for
 * each promise that was broken; then the exit status is 1. With $QUERN_TEST_SCALE, under a sanitizer, no time
 * is judged, and memory not under ASan. */

#include <argp.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <quern.h>
#include "common/clock.h"
#include "tests/integration/hostile/children.h"
#include "tests/integration/hostile/trial.h"
#include "tests/integration/support/pool.h"

enum {
    PATIENCE_S = 60,     /* for what must happen */
    ATTACKER_S = 10,     /* for an attacker to notice the end */
    ATTACKER_NICE = 10,  /* in earnest they have a machine of their own */
    MOST_CALM_MS = 2000, /* of the time in calm before the attack, which is half of the attack's */
    LOOK_MS = 20
};

/* ---- the cases ---- */

static const struct hostile_case cases[] = {
    {"embeddings", "2,048 inputs of 1,000 ids, 60 at once", attack_embeddings, false},
    {"embed-leave", "the same, by clients that leave", attack_embeddings_leaving, false},
    {"choices", "128 choices of a prompt of 3.9 MB, 6 at once", attack_choices, false},
    {"shares", "800 choices of one key, again and again", attack_shares, false},
    {"bodies", "JSON of 8 MB that ends in 400, of all kinds, 48 at once", attack_bodies, false},
    {"broken", "JSON that is broken at its last byte", attack_broken, true},
    {"types", "JSON of wrong types", attack_types, true},
    {"unknown", "JSON of unknown members", attack_unknown, true},
    {"duplicates", "JSON of one member over and over", attack_duplicates, true},
    {"nesting", "JSON of brackets", attack_nesting, true},
    {"escapes", "JSON of one string of escapes", attack_escapes, true},
    {"numbers", "JSON of large numbers", attack_numbers, true},
    {"digits", "JSON of one number of 8 MB", attack_digits, true},
    {"objects", "JSON of empty objects, from one client", attack_objects, false},
    {"texts", "texts of 4 and 8 MB to tokenize", attack_texts, false},
    {"families", "large requests in the forms of Anthropic and Ollama", attack_families, false},
    {"too-large", "bodies that are refused and go on", attack_too_large, false},
    {"large-heads", "heads of a megabyte", attack_large_heads, false},
    {"unread", "whole answers that nobody reads", attack_unread_answers, false},
    {"unread-texts", "tokens of large texts, which nobody reads", attack_unread_texts, false},
    {"unread-vectors", "2,048 embeddings, which nobody reads", attack_unread_vectors, false},
    {"unread-streams", "streams that nobody reads", attack_unread_streams, false},
    {"slow-streams", "streams that are read slowly", attack_slow_streams, false},
    {"hang-ups", "clients that leave in the middle", attack_hang_ups, false},
    {"silence", "4,000 connections that say nothing, from one address", attack_silent_sockets, false},
    {"crowd", "4,000 connections that say nothing, from 250 addresses", attack_silent_crowd, false},
    {"half-heads", "2,500 heads that come slowly", attack_half_heads, false},
    {"trickles", "400 bodies that come a byte at a time", attack_trickles, false},
    {"pipelines", "300 requests in one go", attack_pipelines, false},
    {"not-found", "404, 405 and 401, 300 in one go", attack_not_found, false},
};
#define N_CASES (sizeof cases / sizeof *cases)

/* The pool of all cases; a new one is started when one did not end what it was asked. */
struct arena {
    struct pool pool;
    struct quern *watcher;
    struct good_target target;
    char model[128];
    char chat_template[RUNDIR_PATH_MAX + 32]; /* a file */
};

/* ---- the pool ---- */

/* The tiny model has none. */
static void write_template(struct arena *arena)
{
    snprintf(arena->chat_template, sizeof arena->chat_template, "%s.template", arena->pool.rundir);
    FILE *file = fopen(arena->chat_template, "w");
    if (!file || fputs("{% for message in messages %}{{ message.content }}{% endfor %}", file) < 0 ||
        fclose(file) != 0) {
        perror(arena->chat_template);
        abort();
    }
}

static bool arena_open(struct arena *arena)
{
    const struct quern_status *status = NULL;
    struct quern_error err = {.text = ""};
    *arena = (struct arena){.pool = {.programs = "tests/integration/paced"}};
    rundir_temporary(arena->pool.rundir, NULL);
    write_template(arena);
    pool_start(&arena->pool, tiny_model(), "--device", "null", "--ctx", "1000000", "--slots", "128",
               "--chat-template", arena->chat_template, NULL);
    arena->target.key = GATEWAY_GOOD_KEY;
    arena->target.endpoint = arena->pool.frontend;
    int r = quern_connect(arena->pool.frontend, PATIENCE_S * 1000, &arena->watcher, &err);
    if (r == 0)
        r = quern_status(arena->watcher, PATIENCE_S * 1000, &status, &err);
    if (r == 0 && status->n_workers > 0)
        snprintf(arena->model, sizeof arena->model, "%s", status->workers[0].model);
    if (r == 0)
        return good_learn(&arena->target) == 0;
    fprintf(stderr, "the pool: %s\n", err.text);
    return false;
}

static void arena_close(struct arena *arena)
{
    arena->watcher = quern_free(arena->watcher);
    pool_forget(&arena->pool);
    unlink(arena->chat_template);
}

/* Requests that the pool has; UINT32_MAX when it does not say. */
static uint32_t requests_in(const struct arena *arena)
{
    const struct quern_status *status;
    if (quern_status(arena->watcher, 2000, &status, NULL) != 0)
        return UINT32_MAX;
    return status->queued + status->running;
}

/* ---- one case ---- */

static void sleep_s(double seconds)
{
    usleep((useconds_t)(seconds * 1e6));
}

/* A child that attacks until it is over. */
static pid_t start_attacker(const struct trial *t, const struct arena *arena)
{
    const struct attack_target target = {.port = t->gateway.port, .model = arena->model, .tally = t->tally};
    pid_t pid = fork_child();
    if (pid != 0)
        return pid;
    setpriority(PRIO_PROCESS, 0, ATTACKER_NICE);
    t->c->attack(&target);
    _exit(0);
}

static void attack_for(struct trial *t, const struct arena *arena, double seconds)
{
    t->before_kib = status_kib(t->gateway.pid, "VmRSS");
    pid_t attacker = start_attacker(t, arena);
    for (uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
         clock_ns() < until && __atomic_load_n(&t->tally->connections, __ATOMIC_RELAXED) == 0;)
        usleep(1000); /* it makes its bodies */
    __atomic_store_n(&t->good->phase, GOOD_ATTACKED, __ATOMIC_RELAXED);
    uint64_t until = clock_ns() + (uint64_t)(seconds * 1e9);
    while (clock_ns() < until && gateway_runs(&t->gateway)) {
        t->peak_kib = status_kib(t->gateway.pid, "VmHWM");
        quern_dispatch(arena->watcher, LOOK_MS, NULL);
    }
    __atomic_store_n(&t->tally->over, true, __ATOMIC_RELAXED);
    end_children(&attacker, 1, ATTACKER_S);
}

/* Waits until the gateway has given memory back, and the pool has nothing of the attackers. */
static void await_rest(struct trial *t, const struct arena *arena, long seconds)
{
    const uint64_t start = clock_ns(), most_ns = (uint64_t)seconds * CLOCK_NS_PER_S;
    bool back = false;
    while (!back && gateway_runs(&t->gateway) && clock_ns() - start < most_ns) {
        t->after_kib = status_kib(t->gateway.pid, "VmRSS");
        t->pool_rests = requests_in(arena) <= GOOD_CLIENTS;
        back = t->pool_rests && (!JUDGES_MEMORY || t->after_kib <= t->before_kib + (LEFT_MIB << 10));
        t->back_s = (double)(clock_ns() - start) / CLOCK_NS_PER_S;
        quern_dispatch(arena->watcher, LOOK_MS, NULL);
    }
    if (gateway_runs(&t->gateway))
        t->peak_kib = status_kib(t->gateway.pid, "VmHWM");
}

static void run(struct trial *t, const struct arena *arena, const struct trial_options *options)
{
    pid_t worker, worker_after;
    const pid_t broker = pool_broker_pid(&arena->pool);
    pool_worker_pids(&arena->pool, &worker, 1);
    t->served = good_start(t->good, &arena->target, t->good_pids);
    if (t->served) {
        sleep_s(fmin(options->seconds / 2, MOST_CALM_MS / 1e3));
        attack_for(t, arena, options->seconds);
        await_rest(t, arena, options->back_s);
    }
    t->died = !gateway_runs(&t->gateway);
    t->lost_pool = gateway_says(&t->gateway, "the pool is connected") > 1 ||
                   gateway_says(&t->gateway, "the pool does not answer") > 0;
    pool_worker_pids(&arena->pool, &worker_after, 1);
    t->pool_died = pool_broker_pid(&arena->pool) != broker || worker_after != worker;
    __atomic_store_n(&t->good->over, true, __ATOMIC_RELAXED);
    end_children(t->good_pids, GOOD_CLIENTS, ATTACKER_S);
}

/* True when it went well. */
static bool run_case(const struct hostile_case *c, struct arena *arena, const struct trial_options *options)
{
    struct trial t = {.c = c,
                      .good = shared_memory(sizeof *t.good),
                      .tally = shared_memory(sizeof *t.tally),
                      .back_s = (double)options->back_s};
    bool well = gateway_start(&t.gateway, &arena->pool);
    if (well) {
        arena->target.port = t.gateway.port;
        run(&t, arena, options);
        t.status = gateway_end(&t.gateway, PATIENCE_S);
        trial_print(&t);
        well = trial_judge(&t, options);
    }
    gateway_forget(&t.gateway);
    munmap(t.good, sizeof *t.good);
    munmap(t.tally, sizeof *t.tally);
    if (t.pool_rests && requests_in(arena) <= GOOD_CLIENTS)
        return well;
    arena_close(arena);
    if (!arena_open(arena))
        exit(1);
    return well;
}

/* ---- the command ---- */

static const struct hostile_case *find_case(const char *name)
{
    for (size_t i = 0; i < N_CASES; i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    return NULL;
}

static void list_cases(void)
{
    for (size_t i = 0; i < N_CASES; i++)
        printf("%-14s %s%s\n", cases[i].name, cases[i].what, cases[i].single ? " (by name only)" : "");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct trial_options *options = state->input;
    switch (key) {
    case 's':
        options->seconds = atof(arg);
        return 0;
    case 'g':
        options->gap_ms = atol(arg);
        return 0;
    case 'w':
        options->wait_ms = atol(arg);
        return 0;
    case 'm':
        options->memory_mib = atol(arg);
        return 0;
    case 'b':
        options->back_s = atol(arg);
        return 0;
    case 'l':
        list_cases();
        exit(0);
    case ARGP_KEY_ARG:
        cases_choose(&options->chosen, arg, find_case(arg), state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool is_chosen(const struct trial_options *options, const struct hostile_case *c)
{
    return options->chosen.n > 0 ? cases_are_chosen(&options->chosen, c->name) : !c->single;
}

int main(int argc, char **argv)
{
    static const struct argp_option help[] = {
        {"seconds", 's', "N", 0, "how long each case bothers the gateway (5)", 0},
        {"gap", 'g', "MS", 0,
         "most between two chunks of the good client's stream, beyond the pool's own (100)", 0},
        {"wait", 'w', "MS", 0, "most until the good client has five tokens, likewise (3000)", 0},
        {"memory", 'm', "MIB", 0, "resident memory that the gateway may reach (300)", 0},
        {"back", 'b', "SECONDS", 0,
         "most until memory and pool are as before the attack (10; with sanitizers 120)", 0},
        {"list", 'l', NULL, 0, "print the cases", 0},
        {0}};
    struct trial_options options = {.seconds = 5,
                                    .gap_ms = 100,
                                    .wait_ms = 3000,
                                    .memory_mib = 300,
                                    .back_s = BACK_S,
                                    .judges_time = !getenv("QUERN_TEST_SCALE")};
    struct argp argp = {help, parse, "[CASE…]", "A gateway under attack, beside clients that behave.",
                        NULL, NULL,  NULL};
    struct arena arena;
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0)
        return 2;
    raise_files();
    signal(SIGPIPE, SIG_IGN);
    if (!arena_open(&arena))
        return 1;
    printf("%.1f s each; most: a gap of %ld ms, a wait of %ld ms, %ld MiB\n", options.seconds, options.gap_ms,
           options.wait_ms, options.memory_mib);
    trial_print_columns();
    bool well = true;
    for (size_t i = 0; i < N_CASES; i++)
        if (is_chosen(&options, &cases[i]))
            well = run_case(&cases[i], &arena, &options) && well;
    arena_close(&arena);
    return well ? 0 : 1;
}
