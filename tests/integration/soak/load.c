/* SPDX-License-Identifier: MIT */
/* Load: many sessions, every kind of client, and a count of what must hold afterwards.
 *
 *   load [--sessions N] [--requests N] [--rounds N] [--workers N] [--seed N]
 *
 * The parent starts a pool whose KV cache is too small for all that runs at once, then processes that hold
 * the sessions, each session a libquern client of its own. Among the requests 10 % are cancelled on the way
 * and 5 % have a deadline that cannot be met; among the sessions some read only now and then (slow
 * subscribers), and some processes are stopped with SIGSTOP for a while, once for longer than the lease,
 * their requests being kept. Every output is checked as it comes: contiguous, one end, the right reason.
 * Afterwards all KV blocks must be free again, nothing run or wait, and a further round must not have made
 * any process grow. Prints a table; exits 1 when a promise was broken.
 *
 * $QUERN_TEST_SCALE (a real) multiplies sessions and requests, in one round, for sanitizer builds. */

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quern.h>
#include "common/clock.h"
#include "tests/integration/support/pool.h"

/* Sanitizers keep freed memory on purpose, so what a process holds says nothing there. */
#ifdef __SANITIZE_ADDRESS__
enum { JUDGES_MEMORY = 0 };
#else
enum { JUDGES_MEMORY = 1 };
#endif

enum { PROCESSES = 8, MAX_RUNNING = 3, PATIENCE_S = 120, LEASE_S = 5, FIRST_TOKENS = 1000, TIMERS_MS = 20 };

struct options {
    int sessions, requests, rounds;
    const char *workers;
    unsigned seed;
};

/* Shared by parent and children: plain sums, each added with an atomic. */
struct totals {
    long ended, stop, length, cancelled, deadline, overloaded, errors, broken, tokens, outputs;
};

static struct totals *totals;

static void broken(const char *format, ...)
{
    __atomic_add_fetch(&totals->broken, 1, __ATOMIC_RELAXED);
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "broken promise: %s\n", text);
}

enum intent { FINISH, CANCEL, HOPELESS };

struct job {
    struct session *session;
    enum intent intent;
    uint32_t max_tokens;
    uint32_t cancel_after; /* ids */
    uint64_t seen;
    bool busy, ended, cancel_sent;
    struct quern_id id;
};

struct session {
    struct quern *client;
    int left;               /* requests not yet sent */
    bool slow;              /* dispatches rarely */
    bool done;              /* nothing is left to send or to wait for */
    uint64_t due_ns;        /* of a slow one: when it looks again */
    uint64_t wait_until_ns; /* after an overload */
    struct job jobs[MAX_RUNNING];
};

static void count(long *what, long n)
{
    __atomic_add_fetch(what, n, __ATOMIC_RELAXED);
}

static void on_end(struct job *job, const struct quern_end *end)
{
    if (end->reason == QUERN_ERROR && strcmp(end->error, "overloaded") == 0) {
        /* A client of ours does what it is told: waits, then asks again. */
        count(&totals->overloaded, 1);
        job->session->left++;
        job->session->wait_until_ns = clock_ns() + (end->retry_after_ms + 1) * CLOCK_NS_PER_MS;
        return;
    }
    count(&totals->ended, 1);
    switch (end->reason) {
    case QUERN_STOP:
        count(&totals->stop, 1);
        break;
    case QUERN_LENGTH:
        count(&totals->length, 1);
        if (job->seen != job->max_tokens)
            broken("ended by length with %llu of %u ids", (unsigned long long)job->seen, job->max_tokens);
        break;
    case QUERN_CANCELLED:
        count(&totals->cancelled, 1);
        if (!job->cancel_sent)
            broken("cancelled, and nobody asked for it");
        break;
    case QUERN_DEADLINE:
        count(&totals->deadline, 1);
        if (job->intent != HOPELESS)
            broken("deadline, and there was none");
        break;
    case QUERN_ERROR:
        count(&totals->errors, 1);
        broken("error %s: %s", end->error, end->text);
        break;
    }
    if (end->reason != QUERN_ERROR && end->output_tokens != job->seen)
        broken("%u ids were announced, %llu came", end->output_tokens, (unsigned long long)job->seen);
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct job *job = arg;
    if (job->ended)
        broken("an output after the end");
    if (output->index != job->seen)
        broken("index %llu after %llu ids", (unsigned long long)output->index, (unsigned long long)job->seen);
    job->seen += output->n_ids;
    count(&totals->tokens, (long)output->n_ids);
    count(&totals->outputs, 1);
    if (output->end) {
        job->ended = true;
        job->busy = false;
        on_end(job, output->end);
    } else if (job->intent == CANCEL && !job->cancel_sent && job->seen >= job->cancel_after) {
        job->cancel_sent = quern_cancel(job->session->client, job->id, NULL) == 0;
    }
}

static void send_one(struct session *session, struct job *job)
{
    static const char words[] =
        "the mill turns slow and fine while corn and stone make flour for a loaf of bread ";
    char prompt[700];
    size_t len = 1 + (size_t)rand() % (size_t)(rand() % 8 == 0 ? sizeof prompt - 2 : 120);
    for (size_t i = 0; i < len; i++)
        prompt[i] = words[i % (sizeof words - 1)];
    int dice = rand() % 100;
    *job = (struct job){.session = session,
                        .intent = dice < 10   ? CANCEL
                                  : dice < 15 ? HOPELESS
                                              : FINISH,
                        .max_tokens = 1 + (uint32_t)rand() % (rand() % 6 == 0 ? 300u : 60u),
                        .busy = true};
    job->cancel_after = (uint32_t)rand() % (job->max_tokens + 1);
    struct quern_request request;
    struct quern_error err = {{0}};
    quern_request_init(&request);
    request.text = prompt;
    request.text_len = len;
    request.max_tokens = job->max_tokens;
    request.temperature = 1;
    request.has_seed = true;
    request.seed = (uint64_t)rand();
    request.keep_s = 60;
    request.priority = rand() % 3 - 1;
    request.deadline_ms = job->intent == HOPELESS ? 1 : 0;
    int r = quern_generate(session->client, &request, on_output, job, &job->id, &err);
    if (r == -EAGAIN) {
        job->busy = false;
        return;
    }
    if (r != 0) {
        broken("generate: %s", err.text);
        job->busy = false;
    }
    session->left--;
    if (job->intent == CANCEL && job->cancel_after == 0)
        job->cancel_sent = quern_cancel(session->client, job->id, NULL) == 0;
}

/* True while the session has something to do. */
static bool session_turn(struct session *session)
{
    uint64_t now = clock_ns();
    bool busy = false;
    if (session->slow && now < session->due_ns)
        return !session->done;
    session->due_ns = now + (200 + (uint64_t)rand() % 700) * CLOCK_NS_PER_MS;
    for (int i = 0; i < MAX_RUNNING; i++) {
        if (!session->jobs[i].busy && session->left > 0 && now >= session->wait_until_ns)
            send_one(session, &session->jobs[i]);
        busy = busy || session->jobs[i].busy;
    }
    struct quern_error err = {{0}};
    if (quern_dispatch(session->client, 0, &err) < 0)
        broken("dispatch: %s", err.text);
    session->done = !busy && session->left == 0;
    return !session->done;
}

/* Waits until one of those that listen has news, or timers are due. A slow one is looked at when it is its
 * turn, whatever has come for it. */
static void await_news(const struct session *all, int sessions, struct quern **room)
{
    size_t n = 0;
    for (int i = 0; i < sessions; i++)
        if (!all[i].slow && !all[i].done)
            room[n++] = all[i].client;
    if (quern_wait(room, n, -1, TIMERS_MS) != 0)
        broken("out of memory");
}

/* One process with its share of the sessions. */
static int run_sessions(const char *endpoint, int sessions, int requests, unsigned seed)
{
    srand(seed);
    struct session *all = calloc((size_t)sessions, sizeof *all);
    struct quern **room = calloc((size_t)sessions, sizeof(struct quern *));
    for (int i = 0; i < sessions; i++) {
        struct quern_error err = {{0}};
        if (quern_connect(endpoint, 30000, &all[i].client, &err) != 0) {
            broken("connect: %s", err.text);
            return 1;
        }
        all[i].left = requests / sessions + (i < requests % sessions);
        all[i].slow = i % 5 == 0;
    }
    uint64_t progress_ns = clock_ns();
    long before = -1;
    for (bool busy = true; busy;) {
        busy = false;
        for (int i = 0; i < sessions; i++)
            busy = session_turn(&all[i]) || busy;
        long now = __atomic_load_n(&totals->tokens, __ATOMIC_RELAXED);
        if (now != before)
            progress_ns = clock_ns();
        before = now;
        if (clock_ns() - progress_ns > PATIENCE_S * CLOCK_NS_PER_S) {
            broken("no token for %d s", PATIENCE_S);
            return 1;
        }
        if (busy)
            await_news(all, sessions, room);
    }
    for (int i = 0; i < sessions; i++)
        quern_free(all[i].client);
    free(room);
    free(all);
    return 0;
}

/* Resident bytes of a process. */
static long resident(pid_t pid)
{
    char path[64];
    long pages = 0, total;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%ld %ld", &total, &pages) != 2)
        pages = 0;
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void round_of_load(const struct pool *pool, const struct options *options, int round)
{
    pid_t children[PROCESSES] = {0};
    int n = options->sessions < PROCESSES ? options->sessions : PROCESSES;
    for (int i = 0; i < n; i++) {
        int sessions = options->sessions / n + (i < options->sessions % n);
        int requests = options->requests / n + (i < options->requests % n);
        fflush(NULL);
        children[i] = fork();
        if (children[i] == 0)
            _exit(run_sessions(pool->frontend, sessions, requests,
                               options->seed + (unsigned)(round * PROCESSES + i)));
    }
    /* Two processes are paused once tokens come: one for less than the lease, one until its leases are over.
     */
    const long tokens = __atomic_load_n(&totals->tokens, __ATOMIC_RELAXED);
    const uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    while (__atomic_load_n(&totals->tokens, __ATOMIC_RELAXED) < tokens + FIRST_TOKENS && clock_ns() < until)
        usleep(1000);
    for (int i = 0; i < 2 && i < n; i++)
        kill(children[i], SIGSTOP);
    sleep(2);
    kill(children[0], SIGCONT);
    if (n > 1) {
        sleep(LEASE_S - 1);
        kill(children[1], SIGCONT);
    }
    for (int i = 0; i < n; i++) {
        int status;
        waitpid(children[i], &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            broken("a client process ended with status %d", status);
    }
}

/* Waits until the pool is idle; everything must have come back. Returns the journal's bytes. */
static long check_idle(const struct pool *pool)
{
    struct quern *client;
    struct quern_error err = {{0}};
    const struct quern_status *status = NULL;
    if (quern_connect(pool->frontend, 10000, &client, &err) != 0) {
        broken("connect: %s", err.text);
        return 0;
    }
    bool idle = false;
    for (int i = 0; i < 1200 && !idle; i++) {
        if (quern_status(client, 60000, &status, &err) != 0) {
            broken("status: %s", err.text);
            break;
        }
        idle = status->running == 0 && status->queued == 0;
        for (size_t w = 0; w < status->n_workers; w++)
            idle = idle && status->workers[w].active == 0 && status->workers[w].waiting == 0 &&
                   status->workers[w].kv_free == status->workers[w].kv_total;
        if (!idle)
            quern_dispatch(client, 50, NULL);
    }
    if (!idle)
        broken("the pool is not idle, or KV blocks are missing");
    long journal = status ? (long)status->journal_bytes : 0;
    quern_free(client);
    return journal;
}

/* What ended is kept for a minute, so the journal may grow until then, with what the ledger holds beside it;
 * nothing else may. What clients that did not read had piled up is given back when the pool is idle, within
 * some seconds. */
static void check_memory(const pid_t *pids, int processes, long most)
{
    long size = 0;
    for (int s = 0; s < 40; s++) {
        size = 0;
        for (int i = 0; i < processes; i++)
            size += resident(pids[i]);
        if (size <= most)
            return;
        sleep(1);
    }
    broken("the pool holds %ld bytes, %ld more than its journal explains", size, size - most);
}

static int parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 's':
        options->sessions = atoi(arg);
        return 0;
    case 'r':
        options->requests = atoi(arg);
        return 0;
    case 'n':
        options->rounds = atoi(arg);
        return 0;
    case 'w':
        options->workers = arg;
        return 0;
    case 'x':
        options->seed = (unsigned)atoi(arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static const struct argp_option help[] = {{"sessions", 's', "N", 0, "sessions at once (200)", 0},
                                              {"requests", 'r', "N", 0, "requests a round (2000)", 0},
                                              {"rounds", 'n', "N", 0, "rounds (2)", 0},
                                              {"workers", 'w', "N", 0, "workers (2)", 0},
                                              {"seed", 'x', "N", 0, "of lengths and choices (1)", 0},
                                              {0}};
    struct options options = {.sessions = 200, .requests = 2000, .rounds = 2, .workers = "2", .seed = 1};
    struct argp argp = {help, parse, NULL, "A pool under load, every promise checked.", NULL, NULL, NULL};
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0)
        return 2;
    const char *scale = getenv("QUERN_TEST_SCALE");
    if (scale) {
        options.sessions = (int)(options.sessions * atof(scale)) + 1;
        options.requests = (int)(options.requests * atof(scale)) + 1;
        options.rounds = 1; /* the next one only tells what memory it took */
    }
    totals = mmap(NULL, sizeof *totals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (totals == MAP_FAILED)
        return 1;

    struct pool pool = {0};
    pool_start(&pool, tiny_model(), "--workers", options.workers, "--ctx", "1024", "--slots", "16",
               "--kv-blocks", "128", NULL);
    pid_t pids[16] = {pool_broker_pid(&pool)};
    int processes = 1 + pool_worker_pids(&pool, pids + 1, 15);

    printf("%-6s %8s %8s %8s %8s %9s %9s %10s %9s %8s %12s %12s\n", "round", "seconds", "ended", "stop",
           "length", "cancelled", "deadline", "overloaded", "tokens", "frames", "resident MiB",
           "journal MiB");
    long first_size = 0, first_journal = 0;
    for (int round = 0; round < options.rounds; round++) {
        struct totals before = *totals;
        uint64_t start = clock_ns();
        round_of_load(&pool, &options, round);
        double seconds = (double)(clock_ns() - start) / 1e9;
        long journal = check_idle(&pool);
        long size = 0;
        for (int i = 0; i < processes; i++)
            size += resident(pids[i]);
        printf("%-6d %8.1f %8ld %8ld %8ld %9ld %9ld %10ld %9ld %8ld %12.1f %12.1f\n", round + 1, seconds,
               totals->ended - before.ended, totals->stop - before.stop, totals->length - before.length,
               totals->cancelled - before.cancelled, totals->deadline - before.deadline,
               totals->overloaded - before.overloaded, totals->tokens - before.tokens,
               totals->outputs - before.outputs, (double)size / (1 << 20), (double)journal / (1 << 20));
        fflush(stdout);
        if (totals->ended - before.ended != options.requests)
            broken("%ld of %d requests ended", totals->ended - before.ended, options.requests);
        if (round == 0) {
            first_size = size;
            first_journal = journal;
        } else if (JUDGES_MEMORY && round == options.rounds - 1) {
            check_memory(pids, processes,
                         first_size + 2 * (journal - first_journal) + options.requests * 4096l);
        }
    }
    if (pool_stop(&pool, SIGTERM, 60) != 0)
        broken("the pool did not drain cleanly");
    pool_forget(&pool);
    printf("%ld broken promises\n", totals->broken);
    return totals->broken != 0;
}
