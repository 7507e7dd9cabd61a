/* SPDX-License-Identifier: MIT */
/* Soak: a pool whose processes are killed and stopped at random, and clients that must not notice.
 *
 *   soak [--seconds N] [--requests N] [--workers N] [--clients N] [--seed N] [--every MS] [--streams N]
 * [--kills N]
 *
 * A few requests are answered undisturbed first. Then each client, a process of its own, sends them again and
 * again, several at a time, and compares every id and byte of text with those answers, while the parent
 * kills (SIGKILL) or stops (SIGSTOP) a worker, the broker or a client, for a while or until somebody notices,
 * cuts the connections of a client, or has the pool reloaded. Every other client comes by TCP; every fourth
 * one is slow to read. A killed client is replaced; what it had asked for is the pool's to cancel. In the end
 * nothing runs or waits any more.
 *
 * Memory is watched meanwhile (soak_memory.h): in a run of some minutes that of supervisor and broker must
 * level off. With --streams so many answers are then read at once while broker and workers are killed, and
 * the longest silence behind each kill is printed (soak_streams.h).
 *
 * Nothing may be lost, doubled or different. The one error that is allowed is the one that is promised: a
 * request that has lost two workers is not given to a fourth. Prints what was done to whom, and how long a
 * client had to wait for the next id at most; exits 1 when a promise was broken.
 *
 * $QUERN_TEST_SCALE (a real) makes answers shorter, for sanitizer builds. */

#include <argp.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quern.h>
#include "common/clock.h"
#include "tests/integration/pool.h"
#include "tests/integration/soak_memory.h"
#include "tests/integration/soak_streams.h"

enum { KINDS = 6, AT_ONCE = 4, MOST_CLIENTS = 32, MOST_IDS = 512, MOST_TEXT = 8192, PATIENCE_S = 120 };

struct options {
    int seconds, clients, every_ms, workers, streams, kills;
    long requests; /* 0: as many as there are in the time */
    unsigned seed;
    char tcp[32]; /* where every other client connects */
};

struct expected { /* what a request is answered with */
    uint32_t n_ids, n_text;
    int32_t ids[MOST_IDS];
    char text[MOST_TEXT];
};

/* Shared by parent and clients: plain sums, each added with an atomic. */
static struct shared {
    bool ending;                /* clients send nothing more */
    bool cut[MOST_CLIENTS + 1]; /* that client is to lose a connection */
    long ended, ids, moved_out, broken, longest_ms;
    struct expected expected[KINDS];
} * shared;

static uint32_t answer_tokens = 240;

static void broken(const char *format, ...)
{
    char text[512];
    va_list args;
    __atomic_add_fetch(&shared->broken, 1, __ATOMIC_RELAXED);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "broken promise: %s\n", text);
}

/* ---- clients ---- */

struct job {
    int kind;
    bool busy, over, ended;
    uint32_t n_ids, n_text;
    uint64_t heard_ns;
    struct expected *learns; /* the first time; else it is compared */
};

static struct quern_request request_of(int kind)
{
    static const char *const prompts[] = {"once upon a time", "the mill stands", "a"};
    struct quern_request request;
    quern_request_init(&request);
    request.text = prompts[kind % 3];
    request.max_tokens = answer_tokens;
    request.temperature = kind % 2 ? 1 : 0;
    request.has_seed = true;
    request.seed = (uint64_t)kind + 1;
    return request;
}

static void take_output(struct job *job, const struct quern_output *output)
{
    struct expected *expected = job->learns ? job->learns : &shared->expected[job->kind];
    if (job->n_ids + output->n_ids > MOST_IDS || job->n_text + output->text_len > MOST_TEXT) {
        broken("an answer without end");
        return;
    }
    if (job->learns) {
        memcpy(expected->ids + job->n_ids, output->ids, output->n_ids * sizeof *output->ids);
        memcpy(expected->text + job->n_text, output->text, output->text_len);
        expected->n_ids = job->n_ids + (uint32_t)output->n_ids;
        expected->n_text = job->n_text + (uint32_t)output->text_len;
    } else if (output->index != job->n_ids || job->n_ids + output->n_ids > expected->n_ids ||
               job->n_text + output->text_len > expected->n_text ||
               memcmp(expected->ids + job->n_ids, output->ids, output->n_ids * sizeof *output->ids) != 0 ||
               memcmp(expected->text + job->n_text, output->text, output->text_len) != 0) {
        broken("request %d: another answer from id %u on", job->kind, job->n_ids);
    }
    job->n_ids += (uint32_t)output->n_ids;
    job->n_text += (uint32_t)output->text_len;
}

static void take_end(struct job *job, const struct quern_end *end)
{
    const struct expected *expected = &shared->expected[job->kind];
    bool promised = end->reason == QUERN_ERROR && strcmp(end->error, "worker_lost") == 0 &&
                    strstr(end->text, "it had lost 2 workers before");
    if (promised)
        __atomic_add_fetch(&shared->moved_out, 1, __ATOMIC_RELAXED);
    else if (end->reason == QUERN_ERROR)
        broken("request %d: %s: %s", job->kind, end->error, end->text);
    else if (!job->learns && (job->n_ids != expected->n_ids || job->n_text != expected->n_text))
        broken("request %d: %u of %u ids, %u of %u bytes, ended by reason %d", job->kind, job->n_ids,
               expected->n_ids, job->n_text, expected->n_text, end->reason);
    __atomic_add_fetch(&shared->ended, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&shared->ids, job->n_ids, __ATOMIC_RELAXED);
    job->ended = true;
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct job *job = arg;
    uint64_t now = clock_ns();
    long ms = (long)((now - job->heard_ns) / CLOCK_NS_PER_MS);
    if (job->ended) {
        broken("request %d: it goes on behind its end", job->kind);
        return;
    }
    if (job->n_ids > 0 && ms > __atomic_load_n(&shared->longest_ms, __ATOMIC_RELAXED))
        __atomic_store_n(&shared->longest_ms, ms, __ATOMIC_RELAXED);
    job->heard_ns = now;
    take_output(job, output);
    if (output->end) {
        take_end(job, output->end);
        job->busy = false;
    }
}

static void send_job(struct quern *client, struct job *job, int kind, struct expected *learns)
{
    struct quern_request request = request_of(kind);
    struct quern_error err = {0};
    *job = (struct job){.kind = kind, .busy = true, .heard_ns = clock_ns(), .learns = learns};
    if (quern_generate(client, &request, on_output, job, NULL, &err) == 0)
        return;
    broken("generate: %s", err.text);
    job->busy = false;
}

static struct quern *connect_to(const char *endpoint)
{
    struct quern *client = NULL;
    struct quern_error err = {0};
    if (quern_connect(endpoint, PATIENCE_S * 1000, &client, &err) != 0) {
        broken("connect: %s", err.text);
        return NULL;
    }
    quern_set_patience(client, PATIENCE_S * 1000);
    return client;
}

/* True when the client is of no more use. */
static bool dispatch(struct quern *client)
{
    struct quern_error err = {0};
    if (quern_dispatch(client, 100, &err) >= 0)
        return false;
    broken("dispatch: %s", err.text);
    return true;
}

static bool is_tcp(int fd)
{
    int domain = 0;
    socklen_t size = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
           (domain == AF_INET || domain == AF_INET6);
}

/* Shuts one of our TCP connections, as a network that fails does: neither libzmq nor the broker is asked. One
 * that loses both at once has left, for all that the broker can see. */
static void cut_connection(void)
{
    int fds[256], n = 0;
    for (int fd = 3; fd < 256; fd++)
        if (is_tcp(fd))
            fds[n++] = fd;
    if (n > 0)
        shutdown(fds[rand() % n], SHUT_RDWR);
}

static void nap_ms(int ms)
{
    usleep((useconds_t)ms * 1000);
}

static void be_client(const char *endpoint, int index, unsigned seed)
{
    static struct job jobs[AT_ONCE];
    struct quern *client = connect_to(endpoint);
    bool busy = client != NULL;
    srand(seed);
    while (busy) {
        busy = false;
        for (int i = 0; i < AT_ONCE; i++) {
            if (!jobs[i].busy && !__atomic_load_n(&shared->ending, __ATOMIC_RELAXED))
                send_job(client, &jobs[i], rand() % KINDS, NULL);
            busy |= jobs[i].busy;
        }
        if (dispatch(client))
            break;
        if (__atomic_exchange_n(&shared->cut[index], false, __ATOMIC_RELAXED))
            cut_connection();
        if (index % 4 == 3)
            nap_ms(rand() % (rand() % 20 ? 100 : 2000));
    }
    quern_free(client);
}

static void learn(struct quern *client)
{
    static struct job jobs[KINDS];
    bool busy = true;
    for (int i = 0; i < KINDS; i++)
        send_job(client, &jobs[i], i, &shared->expected[i]);
    while (busy) {
        busy = false;
        for (int i = 0; i < KINDS; i++)
            busy |= jobs[i].busy;
        if (dispatch(client))
            break;
    }
    shared->ended = shared->ids = shared->longest_ms = 0;
}

/* ---- the parent ---- */

static pid_t fork_client(const struct options *options, const struct pool *pool, int i, unsigned seed)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        be_client(i % 2 ? options->tcp : pool->frontend, i, seed);
    _exit(0);
}

struct deeds {
    int killed_brokers, killed_workers, killed_clients, stopped, stalled, cut, reloads, failed_reloads;
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

static void reload(const struct pool *pool, struct deeds *deeds)
{
    char program[4096];
    await_reload(deeds, WNOHANG);
    if (deeds->reload != 0)
        return;
    snprintf(program, sizeof program, "%s", build_path("quern"));
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        execl(program, "quern", "reload", "--rundir", pool->rundir, NULL);
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

static void disturb(const struct options *options, const struct pool *pool, pid_t *clients,
                    struct deeds *deeds)
{
    pid_t workers[64], worker, broker = pool_broker_pid(pool);
    pool_worker_pids(pool, workers, options->workers);
    worker = workers[rand() % options->workers];
    int i = rand() % options->clients, what = rand() % 100;
    if (what < 25) {
        deeds->killed_brokers += broker > 0 && kill(broker, SIGKILL) == 0;
    } else if (what < 45) {
        deeds->killed_workers += worker > 0 && kill(worker, SIGKILL) == 0;
    } else if (what < 60) {
        kill(clients[i], SIGKILL);
        waitpid(clients[i], NULL, 0);
        clients[i] = fork_client(options, pool, i, (unsigned)rand());
        deeds->killed_clients++;
    } else if (what < 68) {
        stop_for_a_while(broker, deeds);
    } else if (what < 76) {
        stop_for_a_while(worker, deeds);
    } else if (what < 84) {
        __atomic_store_n(&shared->cut[i | 1], true, __ATOMIC_RELAXED); /* those have TCP */
        deeds->cut++;
    } else if (what < 93) {
        reload(pool, deeds);
    } else if (what < 95 && options->seconds >= 30) {
        stop_for_good(what == 93 ? broker : worker, deeds);
    } else {
        stop_for_a_while(clients[i], deeds);
    }
}

/* Whether nothing runs or waits within the time: what killed clients had asked for is cancelled. */
static bool comes_to_rest(const struct pool *pool)
{
    struct quern *client = connect_to(pool->frontend);
    uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    bool rests = false;
    while (client && !rests && clock_ns() < until) {
        const struct quern_status *status;
        if (quern_status(client, 5000, &status, NULL) == 0)
            rests = status->queued == 0 && status->running == 0;
        quern_dispatch(client, 50, NULL);
    }
    quern_free(client);
    return rests;
}

static void soak(const struct options *options, struct pool *pool)
{
    pid_t clients[MOST_CLIENTS];
    struct deeds deeds = {0};
    struct quern *client = connect_to(pool->frontend);
    if (client)
        learn(client);
    quern_free(client);
    for (int i = 0; i < options->clients; i++)
        clients[i] = fork_client(options, pool, i, options->seed + (unsigned)i);
    uint64_t until = clock_ns() + (uint64_t)options->seconds * CLOCK_NS_PER_S;
    struct memory supervisor = memory_begin("supervisor"), broker = memory_begin("broker");
    while (
        clock_ns() < until && shared->broken == 0 &&
        (options->requests == 0 || __atomic_load_n(&shared->ended, __ATOMIC_RELAXED) < options->requests)) {
        nap_ms(options->every_ms / 2 + rand() % options->every_ms);
        disturb(options, pool, clients, &deeds);
        await_reload(&deeds, WNOHANG);
        memory_look(&supervisor, pool->broker);
        memory_look(&broker, pool_broker_pid(pool));
    }
    await_reload(&deeds, 0);
    __atomic_store_n(&shared->ending, true, __ATOMIC_RELAXED);
    for (int i = 0; i < options->clients; i++)
        waitpid(clients[i], NULL, 0);
    if (!comes_to_rest(pool))
        broken("the pool does not come to rest");
    printf("%ld requests, %ld ids; killed: %d brokers, %d workers, %d clients; stopped: %d for a while, %d "
           "for good; "
           "reloads: %d, %d of them failed; clients cut off: %d; moved too often: %ld; longest wait for an "
           "id: %ld ms\n",
           shared->ended, shared->ids, deeds.killed_brokers, deeds.killed_workers, deeds.killed_clients,
           deeds.stopped, deeds.stalled, deeds.reloads, deeds.failed_reloads, deeds.cut, shared->moved_out,
           shared->longest_ms);
    if (!memory_levels_off(&supervisor) || !memory_levels_off(&broker))
        broken("memory grows");
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
    case 'e':
        options->every_ms = atoi(arg);
        break;
    case 'n':
        options->requests = atol(arg);
        break;
    case 'S':
        options->streams = atoi(arg);
        break;
    case 'k':
        options->kills = atoi(arg);
        break;
    case 'r':
        options->seed = (unsigned)atoi(arg);
        break;
    case ARGP_KEY_END:
        if (options->seconds < 1 || options->workers < 1 || options->workers > 64 || options->clients < 1 ||
            options->clients > MOST_CLIENTS || options->every_ms < 1 || options->requests < 0 ||
            options->streams < 0 || options->streams > SOAK_MOST_STREAMS || options->kills < 1)
            argp_error(state, "a number is out of range");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option table[] = {
        {"seconds", 's', "N", 0, "of disturbance (60)", 0},
        {"requests", 'n', "N", 0, "end after so many of them", 0},
        {"streams", 'S', "N", 0, "read at once while processes are killed (0)", 0},
        {"kills", 'k', "N", 0, "of broker and workers then, each (10)", 0},
        {"workers", 'w', "N", 0, "of the pool (2)", 0},
        {"clients", 'c', "N", 0, "processes (4)", 0},
        {"every", 'e', "MS", 0, "between two deeds, about (700)", 0},
        {"seed", 'r', "N", 0, "of what is done to whom (1)", 0},
        {0}};
    const struct argp argp = {table, parse, NULL, "Kills and stops a pool's processes, and compares answers.",
                              NULL,  NULL,  NULL};
    struct options options = {
        .seconds = 60, .workers = 2, .clients = 4, .every_ms = 700, .seed = 1, .kills = 10};
    struct pool pool = {0};
    char workers[16];
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return EXIT_FAILURE;
    if (getenv("QUERN_TEST_SCALE"))
        answer_tokens = 60;
    srand(options.seed);
    snprintf(workers, sizeof workers, "%d", options.workers);
    int port = pool_free_ports();
    snprintf(options.tcp, sizeof options.tcp, "tcp://127.0.0.1:%d", port);
    pool_start(&pool, tiny_model(), "--workers", workers, "--ctx", "1024", "--slots", "4", "--tcp",
               options.tcp + strlen("tcp://"), NULL);
    soak(&options, &pool);
    int status = pool_stop(&pool, SIGTERM, 60);
    if (status != 0)
        broken("the pool ended with %d", status);
    if (shared->broken > 0)
        fprintf(stderr, "the pool's log:\n%s", pool_log(&pool));
    pool_forget(&pool);
    if (options.streams > 0 && !soak_streams(options.streams, options.workers, options.kills))
        broken("a stream ended, or was silent for too long");
    return shared->broken > 0;
}
