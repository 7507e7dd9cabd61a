/* SPDX-License-Identifier: MIT */
/* Soak: a pool whose processes are killed and stopped at random, and clients that must not notice.
 *
 *     soak [--seconds N] [--requests N] [--model FILE] [--device NAME] [--workers N] [--clients N] [--http N]
 *          [--kv-blocks N] [--calm] [--seed N] [--every MS] [--streams N] [--kills N]
 *
 * A few requests of many kinds (requests.h) are answered undisturbed first. Then each client, a process
 * of its own, sends them again and again, several at a time, and compares every id, byte of text and log
 * probability with those answers, while the parent kills (SIGKILL) or stops (SIGSTOP) a worker, the broker or
 * a client, for a while or until somebody notices, cuts the connections of a client, or has the pool
 * reloaded, given more workers or fewer, or a worker drained and taken back. Every other client comes by TCP;
 * every fourth one is slow to read. A killed client is replaced; what it had asked for is the pool's to
 * cancel. In the end nothing runs or waits any more. Others come by HTTP (http.h), and gateways are
 * killed and stopped too. With fewer --kv-blocks than the slots can fill, sequences are preempted. With
 * --device null the tokens cost nothing, so that many more requests meet a death than a model could answer.
 *
 * Memory is watched meanwhile (memory.h): in a run of 90 s or more that of supervisor, broker, workers
 * and gateways must level off. With --calm all of them live from the beginning to the end, as nothing is done
 * but to clients: so what they would gather shows. With --streams so many answers are then read at once while
 * broker and workers are killed, and the longest silence behind each kill is printed and judged
 * (streams.h).
 *
 * Nothing may be lost, doubled or different. The one error that is allowed is the one that is promised: a
 * request that has lost two workers is not given to a fourth. Prints what was done to whom, and how long a
 * client had to wait for the next id at most; exits 1 when a promise was broken.
 *
 * The seed is printed, and the same one does the same again, as far as the processes let it.
 * $QUERN_SOAK_SECONDS and $QUERN_SOAK_SEED are taken instead of --seconds and --seed, so that a run of all
 * tests can have a longer and another one. $QUERN_TEST_SCALE (a real) makes answers shorter, for sanitizer
 * builds. */

#include <argp.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quern.h>
#include "common/clock.h"
#include "tests/integration/support/pool.h"
#include "tests/integration/soak/clients.h"
#include "tests/integration/soak/http.h"
#include "tests/integration/soak/memory.h"
#include "tests/integration/soak/promise.h"
#include "tests/integration/soak/recoveries.h"
#include "tests/integration/soak/streams.h"

enum { MOST_GATEWAYS = 16 };

#define LEAST_BLOCKS 32  /* of 32 positions: a context */
#define MOST_BLOCKS  128 /* what four slots can fill */

#define RETENTION_S "20" /* of answers that ended: so that the first third of 90 s has seen all of it */

struct options {
    int seconds, clients, http, every_ms, workers, streams, kills;
    int kv_blocks; /* of a worker */
    bool calm;
    long requests;      /* 0: as many as there are in the time */
    const char *model;  /* NULL: the tiny one */
    const char *device; /* of the workers */
    unsigned seed;
    char tcp[32]; /* where every other client connects */
};

static struct soak_clients *by_libquern; /* shared with the clients */
static struct soak_http *by_http;

static void nap_ms(int ms)
{
    usleep((useconds_t)ms * 1000);
}

static pid_t fork_client(const struct options *options, const struct pool *pool, int i, unsigned seed)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        soak_clients_be_one(by_libquern, i % 2 ? options->tcp : pool->frontend, i, seed);
    _exit(0);
}

static pid_t fork_http_client(unsigned seed)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        soak_http_be_client(by_http, seed);
    _exit(0);
}

struct deeds {
    int killed_brokers, killed_workers, killed_gateways, killed_clients, stopped, stalled, cut, reloads,
        failed_reloads;
    pid_t reload; /* that is under way; 0: none */
};

/* One that is disturbed in turn may fail, and has to be taken back then. */
static void await_reload(struct deeds *deeds, int flags)
{
    int status;
    if (deeds->reload == 0 || waitpid(deeds->reload, &status, flags) != deeds->reload)
        return;
    deeds->reload = 0;
    deeds->reloads++;
    deeds->failed_reloads += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* Or changes how many workers there are, or takes one out, or all of these back. */
static void reload(const struct options *options, const struct pool *pool, struct deeds *deeds)
{
    char program[4096], number[16];
    static const char *const verbs[] = {"reload", "reload", "scale", "drain", "undrain"};
    const char *verb = verbs[rand() % 5];
    bool scales = strcmp(verb, "scale") == 0;
    snprintf(number, sizeof number, "%d",
             scales ? 1 + rand() % (options->workers + 1) : rand() % options->workers);
    await_reload(deeds, WNOHANG);
    if (deeds->reload != 0)
        return;
    snprintf(program, sizeof program, "%s", build_path("quern"));
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        execl(program, "quern", verb, "--rundir", pool->rundir, strcmp(verb, "reload") != 0 ? number : NULL,
              NULL);
        _exit(127);
    }
    deeds->reload = pid > 0 ? pid : 0;
}

/* For the pool to notice. */
static void stop_for_good(pid_t pid, struct deeds *deeds)
{
    deeds->stalled += pid > 0 && kill(pid, SIGSTOP) == 0;
}

/* A worker or broker that is stopped for less than it takes to be given up. */
static void stop_for_a_while(pid_t pid, struct deeds *deeds)
{
    if (pid <= 0 || kill(pid, SIGSTOP) < 0)
        return;
    nap_ms(200 + rand() % 800);
    kill(pid, SIGCONT);
    deeds->stopped++;
}

static void kill_gateway(const struct pool *pool, struct deeds *deeds)
{
    pid_t pid;
    if (pool_gateway_pids(pool, &pid, 1) == 0)
        return;
    __atomic_add_fetch(&by_http->deaths, 1, __ATOMIC_SEQ_CST);
    deeds->killed_gateways += kill(pid, SIGKILL) == 0;
    __atomic_add_fetch(&by_http->deaths, 1, __ATOMIC_SEQ_CST);
}

/* Waits for the end of a client, which is by no other signal than the one that it may have been killed with.
 */
static void await_client(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status) ? WTERMSIG(status) != SIGKILL : WEXITSTATUS(status) != 0)
        promise_broken("a client ended by itself, with status 0x%x", (unsigned)status);
}

static void kill_client(const struct options *options, const struct pool *pool, pid_t *clients, int i,
                        struct deeds *deeds)
{
    kill(clients[i], SIGKILL);
    await_client(clients[i]);
    clients[i] = fork_client(options, pool, i, (unsigned)rand());
    deeds->killed_clients++;
}

static void cut_client(int i, struct deeds *deeds)
{
    __atomic_store_n(&by_libquern->cut[i | 1], true, __ATOMIC_RELAXED); /* those have TCP */
    deeds->cut++;
}

/* What the pool's processes do not suffer from. */
static void disturb_clients(const struct options *options, const struct pool *pool, pid_t *clients,
                            struct deeds *deeds)
{
    int i = rand() % options->clients, what = rand() % 3;
    if (what == 0)
        kill_client(options, pool, clients, i, deeds);
    else if (what == 1)
        cut_client(i, deeds);
    else
        stop_for_a_while(clients[i], deeds);
}

static void disturb(const struct options *options, const struct pool *pool, pid_t *clients,
                    struct deeds *deeds)
{
    pid_t workers[64], worker, gateway = 0, broker = pool_broker_pid(pool);
    pool_worker_pids(pool, workers, options->workers);
    pool_gateway_pids(pool, &gateway, 1);
    worker = workers[rand() % options->workers]; /* 0: it was taken out */
    int i = rand() % options->clients, what = rand() % 100;
    if (what < 5 && options->http > 0) {
        kill_gateway(pool, deeds);
    } else if (what < 25) {
        deeds->killed_brokers += broker > 0 && kill(broker, SIGKILL) == 0;
    } else if (what < 45) {
        deeds->killed_workers += worker > 0 && kill(worker, SIGKILL) == 0;
    } else if (what < 60) {
        kill_client(options, pool, clients, i, deeds);
    } else if (what < 67) {
        stop_for_a_while(broker, deeds);
    } else if (what < 74) {
        stop_for_a_while(worker, deeds);
    } else if (what < 76) {
        stop_for_a_while(gateway, deeds);
    } else if (what < 84) {
        cut_client(i, deeds);
    } else if (what < 93) {
        reload(options, pool, deeds);
    } else if (what < 95 && options->seconds >= 30) {
        stop_for_good(what == 93 ? broker : worker, deeds);
    } else {
        stop_for_a_while(clients[i], deeds);
    }
}

/* Whether nothing runs or waits within the time: what killed clients had asked for is cancelled. */
static bool comes_to_rest(const struct pool *pool)
{
    struct quern *client = soak_connect(pool->frontend);
    uint64_t until = clock_ns() + SOAK_PATIENCE_S * CLOCK_NS_PER_S;
    bool rests = false;
    while (client && !rests && clock_ns() < until) {
        const struct quern_status *status;
        if (quern_status(client, 60000, &status, NULL) == 0)
            rests = status->queued == 0 && status->running == 0;
        quern_dispatch(client, 50, NULL);
    }
    quern_free(client);
    return rests;
}

struct memories {
    struct memory supervisor, broker, workers, gateways;
};

static void look_at_memory(const struct options *options, const struct pool *pool, struct memories *memories)
{
    pid_t workers[64], gateways[MOST_GATEWAYS], broker = pool_broker_pid(pool);
    pool_worker_pids(pool, workers, options->workers);
    int n = pool_gateway_pids(pool, gateways, MOST_GATEWAYS);
    memory_look(&memories->supervisor, &pool->broker, 1);
    memory_look(&memories->broker, &broker, 1);
    memory_look(&memories->workers, workers, options->workers);
    memory_look(&memories->gateways, gateways, n);
}

static bool all_level_off(struct memories *memories)
{
    bool supervisor = memory_levels_off(&memories->supervisor), broker = memory_levels_off(&memories->broker);
    bool workers = memory_levels_off(&memories->workers), gateways = memory_levels_off(&memories->gateways);
    return supervisor && broker && workers && gateways;
}

static void say_recoveries(const struct pool *pool)
{
    const struct recoveries recoveries = recoveries_read(pool);
    printf("moved: %ld requests of workers that died, %ld of workers that were told to end; recovered: %ld "
           "brokers, with %ld requests that ran and %ld that waited\n",
           recoveries.moved, recoveries.handed_over, recoveries.taken_over, recoveries.running,
           recoveries.waiting);
}

static void say_deeds(const struct deeds *deeds)
{
    const struct soak_http *http = by_http;
    printf(
        "%ld requests, %ld ids; killed: %d brokers, %d workers, %d gateways, %d clients; stopped: %d for a "
        "while, %d for good; reloads, scales and drains: %d, %d of them failed or refused; clients cut off: "
        "%d; moved too often: %ld; of a tenant with %d requests a minute: %ld answered, %ld refused; "
        "longest wait for an id: %ld ms\n",
        by_libquern->ended, by_libquern->ids, deeds->killed_brokers, deeds->killed_workers,
        deeds->killed_gateways, deeds->killed_clients, deeds->stopped, deeds->stalled, deeds->reloads,
        deeds->failed_reloads, deeds->cut, by_libquern->moved_out, SOAK_RPM, by_libquern->rated,
        by_libquern->over_rate, by_libquern->longest_ms);
    printf("HTTP: %ld answers, %ld of them the last of their connection; turned away without a broker: %ld; "
           "cut with a killed gateway: %ld; moved too often: %ld\n",
           http->answers, http->ends, http->turned_away, http->cut, http->moved_out);
}

/* The rate is one for all brokers that came and went. What is full at first lasts for another minute. */
static void check_rate(double seconds)
{
    const double most = SOAK_RPM * (1 + seconds / 60) + 1;
    if ((double)by_libquern->rated > most)
        promise_broken("%ld requests in %.0f s of a tenant that may have %.0f", by_libquern->rated, seconds,
                       most);
    if (seconds >= 60 && by_libquern->over_rate == 0)
        promise_broken("nothing was refused to a tenant with a rate");
}

static void soak(const struct options *options, struct pool *pool)
{
    const uint64_t begun = clock_ns();
    pid_t clients[SOAK_MOST_CLIENTS], http_clients[SOAK_MOST_CLIENTS];
    struct deeds deeds = {0};
    soak_clients_learn(by_libquern, pool->frontend);
    for (int i = 0; i < options->clients; i++)
        clients[i] = fork_client(options, pool, i, options->seed + (unsigned)i);
    if (options->http > 0)
        soak_http_learn(by_http);
    for (int i = 0; i < options->http; i++)
        http_clients[i] = fork_http_client(options->seed + (unsigned)i);
    uint64_t until = clock_ns() + (uint64_t)options->seconds * CLOCK_NS_PER_S;
    struct memories memories = {memory_begin("supervisor"), memory_begin("broker"),
                                memory_begin("largest worker"), memory_begin("largest gateway")};
    while (clock_ns() < until && promises_broken() == 0 &&
           (options->requests == 0 ||
            __atomic_load_n(&by_libquern->ended, __ATOMIC_RELAXED) < options->requests)) {
        nap_ms(options->every_ms / 2 + rand() % options->every_ms);
        if (options->calm)
            disturb_clients(options, pool, clients, &deeds);
        else
            disturb(options, pool, clients, &deeds);
        await_reload(&deeds, WNOHANG);
        look_at_memory(options, pool, &memories);
    }
    await_reload(&deeds, 0);
    __atomic_store_n(&by_libquern->ending, true, __ATOMIC_RELAXED);
    __atomic_store_n(&by_http->ending, true, __ATOMIC_RELAXED);
    for (int i = 0; i < options->http; i++)
        await_client(http_clients[i]);
    for (int i = 0; i < options->clients; i++)
        await_client(clients[i]);
    check_rate((double)(clock_ns() - begun) / CLOCK_NS_PER_S);
    if (!comes_to_rest(pool))
        promise_broken("the pool does not come to rest");
    say_deeds(&deeds);
    say_recoveries(pool);
    if (!all_level_off(&memories))
        promise_broken("memory grows");
}

static void take_environment(struct options *options)
{
    const char *seconds = getenv("QUERN_SOAK_SECONDS"), *seed = getenv("QUERN_SOAK_SEED");
    if (seconds)
        options->seconds = atoi(seconds);
    if (seed)
        options->seed = (unsigned)strtoul(seed, NULL, 10);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 's':
        options->seconds = atoi(arg);
        break;
    case 'w':
        options->workers = atoi(arg);
        break;
    case 'c':
        options->clients = atoi(arg);
        break;
    case 'H':
        options->http = atoi(arg);
        break;
    case 'b':
        options->kv_blocks = atoi(arg);
        break;
    case 'C':
        options->calm = true;
        break;
    case 'e':
        options->every_ms = atoi(arg);
        break;
    case 'n':
        options->requests = atol(arg);
        break;
    case 'm':
        options->model = arg;
        break;
    case 'd':
        options->device = arg;
        break;
    case 'S':
        options->streams = atoi(arg);
        break;
    case 'k':
        options->kills = atoi(arg);
        break;
    case 'r':
        options->seed = (unsigned)strtoul(arg, NULL, 10);
        break;
    case ARGP_KEY_END:
        take_environment(options);
        if (options->seconds < 1 || options->workers < 1 || options->workers > 64 || options->clients < 1 ||
            options->clients > SOAK_MOST_CLIENTS || options->kv_blocks < LEAST_BLOCKS || options->http < 0 ||
            options->http > SOAK_MOST_CLIENTS || options->every_ms < 1 || options->requests < 0 ||
            options->streams < 0 || options->streams > SOAK_MOST_STREAMS || options->kills < 1)
            argp_error(state, "a number is out of range");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static uint16_t gateway_port(const struct pool *pool)
{
    static const char says[] = "ready: http://127.0.0.1:";
    if (!pool_says(pool, says, SOAK_PATIENCE_S)) {
        promise_broken("there is no gateway");
        return 0;
    }
    return (uint16_t)atoi(strstr(pool_log(pool), says) + strlen(says));
}

int main(int argc, char **argv)
{
    static const struct argp_option table[] = {
        {"seconds", 's', "N", 0, "of disturbance (60)", 0},
        {"requests", 'n', "N", 0, "end after so many of them", 0},
        {"model", 'm', "FILE", 0, "instead of a tiny one without a chat template", 0},
        {"device", 'd', "NAME", 0, "of the workers: cpu, or null for tokens that cost nothing (cpu)", 0},
        {"streams", 'S', "N", 0, "read at once while processes are killed (0)", 0},
        {"kills", 'k', "N", 0, "of broker and workers then, each (10)", 0},
        {"workers", 'w', "N", 0, "of the pool (2)", 0},
        {"clients", 'c', "N", 0, "processes (4)", 0},
        {"http", 'H', "N", 0, "processes that come by HTTP (2, where there is a gateway)", 0},
        {"kv-blocks", 'b', "N", 0, "of a worker; 32 are a context, 128 what its slots can fill (128)", 0},
        {"calm", 'C', NULL, 0, "Leave the pool's processes alone, for their memory to be seen", 0},
        {"every", 'e', "MS", 0, "between two deeds, about (700)", 0},
        {"seed", 'r', "N", 0, "of what is done to whom (1)", 0},
        {0}};
    const struct argp argp = {table, parse, NULL, "Kills and stops a pool's processes, and compares answers.",
                              NULL,  NULL,  NULL};
    struct options options = {.seconds = 60,
                              .device = "cpu",
                              .workers = 2,
                              .clients = 4,
                              .http = 2,
                              .kv_blocks = MOST_BLOCKS,
                              .every_ms = 700,
                              .seed = 1,
                              .kills = 10};
    struct pool pool = {0};
    char workers[16], kv_blocks[16];
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    printf("%d s with the seed %u\n", options.seconds, options.seed);
    fflush(stdout);
    memory_commitments_init();
    by_libquern = shared_memory(sizeof *by_libquern);
    by_http = shared_memory(sizeof *by_http);
    by_libquern->tokens = getenv("QUERN_TEST_SCALE") ? 60 : 240;
    srand(options.seed);
    snprintf(workers, sizeof workers, "%d", options.workers);
    snprintf(kv_blocks, sizeof kv_blocks, "%d", options.kv_blocks);
    int port = pool_free_ports();
    snprintf(options.tcp, sizeof options.tcp, "tcp://127.0.0.1:%d", port);
    if (access(build_path("quern-gateway"), X_OK) < 0)
        options.http = 0;
    pool_start(&pool, options.model ? options.model : tiny_model(), "--device", options.device, "--workers",
               workers, "--ctx", "1024", "--slots", "4", "--kv-blocks", kv_blocks, "--retention", RETENTION_S,
               "--tcp", options.tcp + strlen("tcp://"), options.http > 0 ? "--http" : NULL, "127.0.0.1:0",
               NULL);
    by_http->tokens = (int)by_libquern->tokens;
    by_http->port = options.http > 0 ? gateway_port(&pool) : 0;
    soak(&options, &pool);
    int status = pool_stop(&pool, SIGTERM, 60);
    if (status != 0)
        promise_broken("the pool ended with %d", status);
    if (promises_broken() > 0)
        fprintf(stderr, "the pool's log:\n%s", pool_log(&pool));
    pool_forget(&pool);
    if (options.streams > 0 && !soak_streams(options.streams, options.workers, options.kills))
        promise_broken("a stream ended, or was silent for too long");
    return promises_broken() > 0;
}
