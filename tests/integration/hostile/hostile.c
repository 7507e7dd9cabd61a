/* SPDX-License-Identifier: MIT */
/* Hostile neighbours: a real pool that runs out of things, one case after the other, beside a good client.
 *
 *   hostile [--seconds N] [--memory MIB] [--keys WHOSE] [CASE…]
 *
 * Each case has a pool of its own, whose broker may have so many MiB of address space (RLIMIT_AS) and what
 * the case says. Attackers bother it from other processes while one client, which is as libquern makes them,
 * sends one small request after the other. A line a case: what the broker held at most (resident MiB,
 * descriptors, sessions), what was refused, and what the good client saw. It is told to wait like anybody
 * when the pool is full, which counts as time, not as failure.
 *
 * All come by the sockets of the run directory; or, with --keys, over TCP with CURVE, each with a key of its
 * own. Those of the attackers are "known" to the pool, as the good client's is, or "unknown": then one of
 * them has the server's key and one of his own, the other none.
 *
 * Exits 1 when a pool died or did not end well, when a request of the good client failed, when the broker
 * held more memory than the bound, or when a stranger was let in, or cost more. Times are printed and not
 * judged: the machine has a part in them. */

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
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quern.h>
#include "common/clock.h"
#include "tests/integration/hostile/cases.h"
#include "tests/integration/hostile/hostile.h"
#include "tests/integration/hostile/children.h"

enum { ATTACKERS = 2, FEW_FILES = 256, PATIENCE_MS = 60000, ATTACKER_S = 10, MAX_LATENCIES = 1 << 16 };

#define STRANGERS_MIB 64 /* that the broker may hold for those who have no key */

/* ---- the cases ---- */

enum standard_error { TO_LOG, TO_FULL_PIPE, TO_FULL_DISK };

enum {              /* of a case */
       LONG = 1,    /* not among all: it takes thousands of files, and the time to open them */
       MUTE = 2,    /* nobody shakes hands */
       INSIDER = 4, /* a stranger could not begin */
};

static const struct hostile_case {
    const char *name, *what;
    attack *attack;
    bool few_files; /* the broker may open FEW_FILES */
    enum standard_error standard_error;
    const char *refusal; /* what becomes of what is refused */
    unsigned is;
} cases[] = {
    {"descriptors", "more connections than descriptors", attack_connections, true, TO_LOG, "closed", MUTE},
    {"silence", "connections that say nothing", attack_silence, false, TO_LOG, "closed after 10 s", 0},
    {"handshakes", "handshakes that stop or go wrong", attack_handshakes, false, TO_LOG, "closed", 0},
    {"garbage", "bytes that are no messages", attack_garbage, false, TO_LOG, "closed", 0},
    {"strangers", "5,000 connections, silent or garbage", attack_strangers, false, TO_LOG, "closed",
     LONG | MUTE},
    {"subscriptions", "topics without end", attack_subscriptions, false, TO_LOG, "closed", 0},
    {"topics", "100,000 topics from one connection", attack_topics, false, TO_LOG, "closed", 0},
    {"parts", "messages of parts without end", attack_parts, false, TO_LOG, "closed", 0},
    {"halves", "large messages that do not end", attack_halves, false, TO_LOG, "closed", 0},
    {"prompts", "prompts of 4 MiB", attack_prompts, false, TO_LOG, "error", INSIDER},
    {"requests", "small requests", attack_requests, false, TO_LOG, "error", INSIDER},
    {"sessions", "sessions", attack_sessions, false, TO_LOG, "closed", 0},
    {"crowd", "5,000 sessions that never read", attack_crowd, false, TO_LOG, "closed", LONG | INSIDER},
    {"tokenize", "texts of 4 MiB to tokenize", attack_tokenize, false, TO_LOG, "error, unread", 0},
    {"unread", "tokens and answers that nobody reads", attack_unread, false, TO_LOG, "closed", 0},
    {"stderr", "stderr that nobody reads, and garbage", attack_garbage, false, TO_FULL_PIPE, "closed", 0},
    {"disk", "stderr on a full disk, and halves", attack_halves, false, TO_FULL_DISK, "closed", 0},
};
#define N_CASES (sizeof cases / sizeof *cases)

struct options {
    double seconds;
    long memory_mib, bound_mib;
    enum door_kind attackers; /* of the first */
    struct chosen_cases chosen;
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
    long before_kib; /* resident, before the attack */
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

static void start(struct pool *pool, const struct hostile_case *c, const struct options *options,
                  struct door_keys *ret_keys)
{
    char address[32], server[sizeof ret_keys->folder + 16];
    pool->stderr_fd = open_stderr(c->standard_error);
    const char *tcp[] = {"--tcp", address, "--curve-key", server, "--client-keys", ret_keys->clients, NULL};
    if (options->attackers == DOOR_RUNDIR) {
        tcp[0] = NULL;
    } else {
        rundir_temporary(pool->rundir, NULL);
        door_keys_make(ret_keys, pool->rundir);
        snprintf(address, sizeof address, "127.0.0.1:%d", ret_keys->port);
        snprintf(server, sizeof server, "%s/server", ret_keys->folder);
    }
    void (*begin)(struct pool *, const char *, ...) = pool->stderr_fd > 0 ? pool_spawn : pool_start;
    /* The journal is a part of the broker's address space, which is bounded here. */
    begin(pool, tiny_model(), "--device", "null", "--ctx", "100000", "--journal", "256", tcp[0], tcp[1],
          tcp[2], tcp[3], tcp[4], tcp[5], NULL);
    if (pool->stderr_fd > 0)
        close(pool->stderr_fd);
    if (c->few_files)
        limit(pool_broker_pid(pool), RLIMIT_NOFILE, FEW_FILES);
    if (JUDGES_MEMORY)
        limit(pool_broker_pid(pool), RLIMIT_AS, (rlim_t)options->memory_mib << 20);
}

static struct quern *connect_by(const struct door *door)
{
    struct quern *client = NULL;
    struct quern_error err = {{0}};
    uint64_t until = clock_ns() + PATIENCE_MS * CLOCK_NS_PER_MS;
    while (door_connect(door, 5000, &client, &err) != 0 && clock_ns() < until)
        usleep(20000);
    if (!client)
        fprintf(stderr, "connect: %s\n", err.text);
    return client;
}

static void start_attackers(const struct hostile_case *c, const struct door *doors, struct score *score,
                            pid_t *ret_pids)
{
    for (int i = 0; i < ATTACKERS; i++) {
        ret_pids[i] = fork_child();
        if (ret_pids[i] != 0)
            continue;
        srand((unsigned)i + 1);
        c->attack(&doors[i], score);
        _exit(0);
    }
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

struct trial {
    const struct hostile_case *c;
    struct pool pool;
    struct door_keys keys;
    struct door doors[ATTACKERS + 2]; /* the good client's, and the watcher's */
    struct score *score;
    struct good *good;
    struct held held;
};

static bool judge(const struct trial *t, const struct options *options, int status)
{
    const long mib = t->held.resident_kib >> 10, more = (t->held.resident_kib - t->held.before_kib) >> 10;
    const bool locked_out = door_is_shut(&t->doors[0]);
    bool well = case_expect(t->c->name, status >= 0, "the pool does not end");
    well &= case_expect(t->c->name, status <= 0, "the pool ended with %d", status);
    well &= case_expect(t->c->name, t->good->failed == 0, "a request of the good client failed: %s",
                        t->good->failure);
    well &= case_expect(t->c->name, t->good->failed > 0 || t->good->n > 0,
                        "the good client was not served at all");
    well &= case_expect(t->c->name, !JUDGES_MEMORY || mib <= options->bound_mib,
                        "the broker held %ld MiB, more than %ld", mib, options->bound_mib);
    if (!locked_out)
        return case_expect(t->c->name, t->c->is & MUTE || t->score->let_in > 0, "no attacker was let in") &&
               well;
    well &=
        case_expect(t->c->name, t->score->let_in == 0, "strangers were let in %ld times", t->score->let_in);
    well &= case_expect(t->c->name, t->held.sessions <= 2, "there were %u sessions, of two clients",
                        t->held.sessions);
    well &= case_expect(t->c->name, !JUDGES_MEMORY || more <= STRANGERS_MIB,
                        "the broker held %ld MiB more for strangers", more);
    return well;
}

static void print(const struct trial *t)
{
    printf("%-14s %7ld %6ld %8u %9ld %9ld  %-17s %7ld %6ld %8.1f %8.1f\n", t->c->name,
           t->held.resident_kib >> 10, t->held.files, t->held.sessions, t->score->attempts, t->score->refused,
           door_is_shut(&t->doors[0]) ? "not let in" : t->c->refusal, t->good->n, t->good->told_to_wait,
           percentile_ms(t->good, 0.99), percentile_ms(t->good, 1));
    fflush(stdout);
}

/* The second of the strangers has no key at all. */
static void make_doors(struct trial *t, enum door_kind attackers)
{
    const enum door_kind good = attackers == DOOR_RUNDIR ? DOOR_RUNDIR : DOOR_KNOWN_KEY;
    static const char *const names[] = {"mallory", "trudy", "alice", "walter"};
    for (int i = 0; i < ATTACKERS + 2; i++) {
        enum door_kind kind = i >= ATTACKERS ? good : attackers;
        door_make(&t->doors[i], kind == DOOR_UNKNOWN_KEY && i > 0 ? DOOR_NO_KEY : kind, &t->pool, &t->keys,
                  names[i]);
    }
}

/* From when the good client was served to the end of the attack. */
static void attack_for(struct trial *t, double seconds, struct quern *watcher)
{
    pid_t pids[ATTACKERS];
    t->held.before_kib = status_kib(pool_broker_pid(&t->pool), "VmHWM");
    start_attackers(t->c, t->doors, t->score, pids);
    uint64_t until = clock_ns() + (uint64_t)(seconds * 1e9);
    while (clock_ns() < until && kill(t->pool.broker, 0) == 0) {
        look(&t->pool, watcher, &t->held);
        if (watcher)
            quern_dispatch(watcher, 50, NULL);
    }
    __atomic_store_n(&t->score->over, true, __ATOMIC_RELAXED);
    end_children(pids, ATTACKERS, ATTACKER_S); /* one may be stuck in what the broker does not read */
}

/* True when it went well. */
static bool run_case(const struct hostile_case *c, const struct options *options)
{
    struct trial t = {.c = c, .score = shared_memory(sizeof *t.score), .good = shared_memory(sizeof *t.good)};
    start(&t.pool, c, options, &t.keys);
    make_doors(&t, options->attackers);
    pid_t good = fork_child();
    if (good == 0) {
        struct quern *client = connect_by(&t.doors[ATTACKERS]);
        if (client)
            be_good(client, t.good);
        _exit(0);
    }
    struct quern *watcher = connect_by(&t.doors[ATTACKERS + 1]);
    /* Who is there already must be served on; with no descriptor left nobody new can come. */
    for (int i = 0; i < PATIENCE_MS && __atomic_load_n(&t.good->n, __ATOMIC_RELAXED) == 0; i++)
        usleep(1000);
    attack_for(&t, options->seconds, watcher);
    __atomic_store_n(&t.good->over, true, __ATOMIC_RELAXED);
    if (!end_children(&good, 1, PATIENCE_MS / 1000))
        fail(t.good, "generate", "it did not end");
    look(&t.pool, NULL, &t.held);
    quern_free(watcher);
    int status = end_pool(&t.pool);
    print(&t);
    bool well = judge(&t, options, status);
    pool_forget(&t.pool);
    door_keys_remove(&t.keys);
    munmap(t.score, sizeof *t.score);
    munmap(t.good, sizeof *t.good);
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
    case 'k':
        if (strcmp(arg, "known") != 0 && strcmp(arg, "unknown") != 0)
            argp_error(state, "keys are \"known\" or \"unknown\", not \"%s\"", arg);
        options->attackers = arg[0] == 'k' ? DOOR_KNOWN_KEY : DOOR_UNKNOWN_KEY;
        return 0;
    case ARGP_KEY_ARG:
        cases_choose(&options->chosen, arg, find_case(arg), state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool is_chosen(const struct options *options, const struct hostile_case *c)
{
    bool makes_sense = options->attackers != DOOR_UNKNOWN_KEY || !(c->is & INSIDER);
    if (options->chosen.n > 0)
        return cases_are_chosen(&options->chosen, c->name);
    return makes_sense && !(c->is & LONG);
}

int main(int argc, char **argv)
{
    static const struct argp_option help[] = {
        {"seconds", 's', "N", 0, "how long each case bothers the pool (5)", 0},
        {"memory", 'm', "MIB", 0, "address space that the broker gets (2048)", 0},
        {"bound", 'b', "MIB", 0, "resident memory that the broker may reach (768)", 0},
        {"keys", 'k', "WHOSE", 0,
         "come over TCP, with keys: the attackers' are \"known\" to the pool or \"unknown\"", 0},
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
