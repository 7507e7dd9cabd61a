/* SPDX-License-Identifier: MIT */
/* Hostile neighbours: a real pool that runs out of things, one case after the other, beside a good client.
 *
 *   hostile [--seconds N] [--memory MIB] [CASE…]
 *
 * Each case has a pool of its own, whose broker may have so many MiB of address space (RLIMIT_AS) and what
 * the case says. Attackers bother it from other processes while one client, which is as libquern makes them,
 * sends one small request after the other. A line a case: what the broker held at most (resident MiB,
 * descriptors, sessions), what was refused, and what the good client saw. It is told to wait like anybody
 * when the pool is full, which counts as time, not as failure.
 *
 * Exits 1 when a pool died or did not end well, when a request of the good client failed, or when the broker
 * held more memory than the bound. Times are printed and not judged: the machine has a part in them. */

#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quern.h>
#include "common/clock.h"
#include "tests/integration/hostile.h"

/* Sanitizers take address space by the terabyte, and keep freed memory on purpose. */
#ifdef __SANITIZE_ADDRESS__
enum { JUDGES_MEMORY = 0 };
#else
enum { JUDGES_MEMORY = 1 };
#endif

enum { ATTACKERS = 2, FEW_FILES = 256, PATIENCE_MS = 60000, ATTACKER_S = 10, MAX_LATENCIES = 1 << 16 };

/* ---- the cases ---- */

enum standard_error { TO_LOG, TO_FULL_PIPE, TO_FULL_DISK };

static const struct hostile_case {
    const char *name, *what;
    attack *attack;
    bool few_files; /* the broker may open FEW_FILES */
    enum standard_error standard_error;
    const char *refusal; /* what becomes of what is refused */
    bool is_long;        /* not among all: it takes thousands of files, and the time to open them */
} cases[] = {
    {"descriptors", "more connections than descriptors", attack_connections, true, TO_LOG, "closed", false},
    {"silence", "connections that say nothing", attack_silence, false, TO_LOG, "closed after 10 s", false},
    {"garbage", "bytes that are no messages", attack_garbage, false, TO_LOG, "closed", false},
    {"strangers", "5,000 connections, silent or garbage", attack_strangers, false, TO_LOG, "closed", true},
    {"subscriptions", "topics without end", attack_subscriptions, false, TO_LOG, "closed", false},
    {"topics", "100,000 topics from one connection", attack_topics, false, TO_LOG, "closed", false},
    {"parts", "messages of parts without end", attack_parts, false, TO_LOG, "closed", false},
    {"halves", "large messages that do not end", attack_halves, false, TO_LOG, "closed", false},
    {"prompts", "prompts of 4 MiB", attack_prompts, false, TO_LOG, "error", false},
    {"requests", "small requests", attack_requests, false, TO_LOG, "error", false},
    {"sessions", "sessions", attack_sessions, false, TO_LOG, "closed", false},
    {"crowd", "5,000 sessions that never read", attack_crowd, false, TO_LOG, "closed", true},
    {"tokenize", "texts of 4 MiB to tokenize", attack_tokenize, false, TO_LOG, "error, unread", false},
    {"unread", "tokens and answers that nobody reads", attack_unread, false, TO_LOG, "closed", false},
    {"stderr", "stderr that nobody reads, and garbage", attack_garbage, false, TO_FULL_PIPE, "closed", false},
    {"disk", "stderr on a full disk, and halves", attack_halves, false, TO_FULL_DISK, "closed", false},
};
#define N_CASES (sizeof cases / sizeof *cases)

struct options {
    double seconds;
    long memory_mib, bound_mib;
    const char *chosen[N_CASES];
    size_t n_chosen;
};

/* Shared by parent and good client. */
struct good {
    bool over;
    long n, told_to_wait, failed;
    uint32_t latencies_us[MAX_LATENCIES];
    char failure[600];
};

struct held { /* by the broker, at most */
    long resident_kib, files;
    uint32_t sessions;
};

/* ---- the good client ---- */

static void fail(struct good *good, const char *what, const char *why)
{
    good->failed++;
    snprintf(good->failure, sizeof good->failure, "%s: %s", what, why);
}

struct asked {
    struct good *good;
    uint64_t again_ns; /* when the pool said to come back */
};

static void answered(void *arg, const struct quern_output *output)
{
    struct asked *asked = arg;
    if (!output->end)
        return;
    if (output->end->reason == QUERN_ERROR && strcmp(output->end->error, "overloaded") == 0) {
        asked->good->told_to_wait++;
        asked->again_ns = clock_ns() + (output->end->retry_after_ms + 1) * CLOCK_NS_PER_MS;
    } else if (output->end->reason != QUERN_LENGTH && output->end->reason != QUERN_STOP) {
        fail(asked->good, quern_reason_name(output->end->reason), output->end->text);
    }
}

/* One request, from the first asking to its end. */
static void ask_once(struct quern *client, struct good *good)
{
    struct quern_request request;
    struct quern_error err = {{0}};
    quern_request_init(&request);
    request.text = "Why?";
    request.max_tokens = 4;
    uint64_t start = clock_ns();
    struct asked asked = {.good = good, .again_ns = start};
    while (asked.again_ns && good->failed == 0) {
        while (clock_ns() < asked.again_ns)
            if (quern_dispatch(client, 5, &err) < 0)
                return fail(good, "dispatch", err.text);
        asked.again_ns = 0;
        if (quern_generate_wait(client, &request, answered, &asked, &err) != 0)
            return fail(good, "generate", err.text);
    }
    if (good->n < MAX_LATENCIES)
        good->latencies_us[good->n++] = (uint32_t)((clock_ns() - start) / 1000);
}

static void be_good(struct quern *client, struct good *good)
{
    while (!__atomic_load_n(&good->over, __ATOMIC_RELAXED) && good->failed == 0) {
        ask_once(client, good);
        usleep(2000);
    }
    quern_free(client);
}

/* ---- what the broker holds ---- */

static long status_kib(pid_t pid, const char *key)
{
    char path[64], line[256];
    long value = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            value = atol(line + strlen(key) + 1);
    if (file)
        fclose(file);
    return value;
}

static long open_files(pid_t pid)
{
    char path[64];
    long n = -2; /* . and .. */
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n > 0 ? n : 0;
}

static void look(const struct pool *pool, struct quern *watcher, struct held *held)
{
    const struct quern_status *status;
    long files = open_files(pool_broker_pid(pool)), resident = status_kib(pool_broker_pid(pool), "VmHWM");
    held->files = files > held->files ? files : held->files;
    held->resident_kib = resident > held->resident_kib ? resident : held->resident_kib;
    if (watcher && quern_status(watcher, 2000, &status, NULL) == 0 && status->sessions > held->sessions)
        held->sessions = status->sessions;
}

/* ---- one case ---- */

/* -1: the log. */
static int open_stderr(enum standard_error where)
{
    int fds[2];
    char full[4096] = {0};
    if (where == TO_FULL_DISK)
        return open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (where != TO_FULL_PIPE || pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    while (write(fds[1], full, sizeof full) > 0)
        ;
    fcntl(fds[1], F_SETFL, 0);
    return fds[1]; /* the other end stays open, and nobody reads it */
}

static void limit(pid_t pid, int what, rlim_t most)
{
    struct rlimit limit;
    if (prlimit(pid, (enum __rlimit_resource)what, NULL, &limit) < 0)
        return;
    limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
    prlimit(pid, (enum __rlimit_resource)what, &limit, NULL);
}

static void start(struct pool *pool, const struct hostile_case *c, const struct options *options)
{
    pool->stderr_fd = open_stderr(c->standard_error);
    if (pool->stderr_fd > 0)
        pool_spawn(pool, tiny_model(), "--device", "null", "--ctx", "100000", NULL);
    else
        pool_start(pool, tiny_model(), "--device", "null", "--ctx", "100000", NULL);
    if (pool->stderr_fd > 0)
        close(pool->stderr_fd);
    if (c->few_files)
        limit(pool_broker_pid(pool), RLIMIT_NOFILE, FEW_FILES);
    if (JUDGES_MEMORY)
        limit(pool_broker_pid(pool), RLIMIT_AS, (rlim_t)options->memory_mib << 20);
}

static struct quern *connect_to(const struct pool *pool)
{
    struct quern *client = NULL;
    struct quern_error err = {{0}};
    uint64_t until = clock_ns() + PATIENCE_MS * CLOCK_NS_PER_MS;
    while (quern_connect(pool->frontend, 5000, &client, &err) != 0 && clock_ns() < until)
        usleep(20000);
    if (!client)
        fprintf(stderr, "connect: %s\n", err.text);
    return client;
}

static pid_t fork_child(void)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

static void start_attackers(const struct hostile_case *c, const struct pool *pool, struct score *score,
                            pid_t *ret_pids)
{
    for (int i = 0; i < ATTACKERS; i++) {
        ret_pids[i] = fork_child();
        if (ret_pids[i] != 0)
            continue;
        srand((unsigned)i + 1);
        c->attack(pool, score);
        _exit(0);
    }
}

/* False when one had to be killed. */
static bool end_children(pid_t *pids, size_t n, uint64_t patience_s)
{
    bool ended = true;
    uint64_t until = clock_ns() + patience_s * CLOCK_NS_PER_S;
    for (size_t i = 0; i < n; i++) {
        int status;
        while (waitpid(pids[i], &status, WNOHANG) == 0) {
            if (clock_ns() > until) {
                ended = false;
                kill(pids[i], SIGKILL);
            }
            usleep(5000);
        }
    }
    return ended;
}

/* Asks the pool to end: its status, 128 + the signal that ended it, or -1 when it does not. */
static int end_pool(struct pool *pool)
{
    int status;
    kill(pool->broker, SIGTERM);
    for (uint64_t until = clock_ns() + 60 * CLOCK_NS_PER_S; clock_ns() < until; usleep(10000)) {
        if (waitpid(pool->broker, &status, WNOHANG) != pool->broker)
            continue;
        pool->broker = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return -1;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double percentile_ms(struct good *good, double part)
{
    if (good->n == 0)
        return 0;
    qsort(good->latencies_us, (size_t)good->n, sizeof *good->latencies_us, compare);
    return good->latencies_us[(long)(part * (double)(good->n - 1))] / 1e3;
}

static bool print(const struct hostile_case *c, const struct options *options, const struct held *held,
                  const struct score *score, struct good *good, int status)
{
    printf("%-14s %7ld %6ld %8u %9ld %9ld  %-17s %7ld %6ld %8.1f %8.1f\n", c->name, held->resident_kib >> 10,
           held->files, held->sessions, score->attempts, score->refused, c->refusal, good->n,
           good->told_to_wait, percentile_ms(good, 0.99), percentile_ms(good, 1));
    fflush(stdout);
    bool large = JUDGES_MEMORY && held->resident_kib >> 10 > options->bound_mib;
    if (status < 0)
        fprintf(stderr, "%s: the pool does not end\n", c->name);
    else if (status > 0)
        fprintf(stderr, "%s: the pool ended with %d\n", c->name, status);
    if (good->failed > 0)
        fprintf(stderr, "%s: a request of the good client failed: %s\n", c->name, good->failure);
    if (good->failed == 0 && good->n == 0)
        fprintf(stderr, "%s: the good client was not served at all\n", c->name);
    if (large)
        fprintf(stderr, "%s: the broker held %ld MiB, more than %ld\n", c->name, held->resident_kib >> 10,
                options->bound_mib);
    return status == 0 && good->failed == 0 && good->n > 0 && !large;
}

static void *shared(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

/* True when it went well. */
static bool run_case(const struct hostile_case *c, const struct options *options)
{
    struct score *score = shared(sizeof *score);
    struct good *good = shared(sizeof *good);
    struct pool pool = {0};
    struct held held = {0};
    pid_t pids[ATTACKERS + 1];
    start(&pool, c, options);
    pids[ATTACKERS] = fork_child();
    if (pids[ATTACKERS] == 0) {
        struct quern *client = connect_to(&pool);
        if (client)
            be_good(client, good);
        _exit(0);
    }
    struct quern *watcher = connect_to(&pool);
    /* Who is there already must be served on; with no descriptor left nobody new can come. */
    for (int i = 0; i < PATIENCE_MS && __atomic_load_n(&good->n, __ATOMIC_RELAXED) == 0; i++)
        usleep(1000);
    start_attackers(c, &pool, score, pids);
    uint64_t until = clock_ns() + (uint64_t)(options->seconds * 1e9);
    while (clock_ns() < until && kill(pool.broker, 0) == 0) {
        look(&pool, watcher, &held);
        if (watcher)
            quern_dispatch(watcher, 50, NULL);
    }
    __atomic_store_n(&score->over, true, __ATOMIC_RELAXED);
    end_children(pids, ATTACKERS, ATTACKER_S); /* one may be stuck in what the broker does not read */
    __atomic_store_n(&good->over, true, __ATOMIC_RELAXED);
    if (!end_children(pids + ATTACKERS, 1, PATIENCE_MS / 1000))
        fail(good, "generate", "it did not end");
    look(&pool, NULL, &held);
    quern_free(watcher);
    bool well = print(c, options, &held, score, good, end_pool(&pool));
    pool_forget(&pool);
    munmap(score, sizeof *score);
    munmap(good, sizeof *good);
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

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 's':
        options->seconds = atof(arg);
        return 0;
    case 'm':
        options->memory_mib = atol(arg);
        return 0;
    case 'b':
        options->bound_mib = atol(arg);
        return 0;
    case ARGP_KEY_ARG:
        if (!find_case(arg))
            argp_error(state, "there is no case \"%s\"", arg);
        if (options->n_chosen == N_CASES)
            argp_error(state, "too many cases");
        options->chosen[options->n_chosen++] = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool is_chosen(const struct options *options, const struct hostile_case *c)
{
    for (size_t i = 0; i < options->n_chosen; i++)
        if (strcmp(options->chosen[i], c->name) == 0)
            return true;
    return options->n_chosen == 0 && !c->is_long;
}

/* The attackers need more than the usual 1,024. */
static void raise_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    static const struct argp_option help[] = {
        {"seconds", 's', "N", 0, "how long each case bothers the pool (5)", 0},
        {"memory", 'm', "MIB", 0, "address space that the broker gets (2048)", 0},
        {"bound", 'b', "MIB", 0, "resident memory that the broker may reach (768)", 0},
        {0}};
    struct options options = {.seconds = 5, .memory_mib = 2048, .bound_mib = 768};
    struct argp argp = {help, parse, "[CASE…]", "A pool that runs out of things, beside a good client.",
                        NULL, NULL,  NULL};
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0)
        return 2;
    raise_files();
    if (JUDGES_MEMORY)
        printf("%.1f s each; the broker may have %ld MiB of address space (RLIMIT_AS), and hold %ld MiB\n",
               options.seconds, options.memory_mib, options.bound_mib);
    printf("%-14s %7s %6s %8s %9s %9s  %-17s %7s %6s %8s %8s\n", "case", "MiB", "files", "sessions",
           "attempts", "refused", "how", "served", "waits", "p99 ms", "worst ms");
    bool well = true;
    for (size_t i = 0; i < N_CASES; i++)
        if (is_chosen(&options, &cases[i]))
            well = run_case(&cases[i], &options) && well;
    return well ? 0 : 1;
}
