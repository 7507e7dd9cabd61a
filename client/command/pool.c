/* SPDX-License-Identifier: MIT */
/* Finding a pool, or making one.
 *
 * A private pool is quern-broker in a process group of its own (a Ctrl-C on the terminal is ours to handle),
 * bound to us by PR_SET_PDEATHSIG: if this program is killed, the broker gets SIGTERM and drains. Its stderr
 * goes to RUNDIR/log; it is ready when a line there begins with "ready:", and when it dies before, the last
 * line is the reason. The directory is removed when the broker is gone, or by the broker when we are. */

#include "client/command/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/program.h"
#include "common/rundir.h"

#define DEFAULT_MODEL  "models/quern-demo-Q8_0.gguf"
#define CONNECT_MS     5000
#define MAX_ARGUMENTS  24
#define STOP_NS        (5 * CLOCK_NS_PER_S) /* from SIGTERM to SIGKILL */
#define LOG_NAME       "log"
#define LAST_WORDS_MAX 400
#define KEY_MAX        41

struct pool {
    struct quern *client;
    pid_t pid; /* 0: not ours */
    char rundir[RUNDIR_PATH_MAX + 1];
};

static volatile sig_atomic_t caught_signal;

static void on_signal(int number)
{
    if (caught_signal)
        _exit(128 + number);
    caught_signal = number;
}

void pool_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int pool_interrupted(void)
{
    return caught_signal;
}

void pool_forget_interrupt(void)
{
    caught_signal = 0;
}

struct quern *pool_client(struct pool *pool)
{
    return pool->client;
}

/* Whether a pool runs in the default run directory: a socket alone may be left over, a lock is held by a
 * living one. */
static bool default_pool_runs(void)
{
    char folder[RUNDIR_PATH_MAX + 1], name[RUNDIR_PATH_MAX + 16];
    int fd;
    if (rundir_path(NULL, folder, NULL) < 0)
        return false;
    snprintf(name, sizeof name, "%s/frontend", folder);
    if (access(name, F_OK) < 0)
        return false;
    if (rundir_lock(folder, &fd, NULL) < 0)
        return true;
    close(fd);
    return false;
}

/* $QUERN_MODEL, or the model that is shipped: beside the source's build folder, or where it is installed. */
static int default_model(char ret_path[PATH_MAX], struct error *err)
{
    static const char *const places[] = {"../" DEFAULT_MODEL, "../share/quern/" DEFAULT_MODEL};
    const char *named = getenv("QUERN_MODEL");
    char folder[PATH_MAX];
    if (named && *named) {
        snprintf(ret_path, PATH_MAX, "%s", named);
        return 0;
    }
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (n < 0)
        return error_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
    folder[n] = 0;
    *strrchr(folder, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[2 * PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, places[i]);
        if (strlen(path) < PATH_MAX && access(path, R_OK) == 0) {
            strcpy(ret_path, path);
            return 0;
        }
    }
    return error_set(
        err, -ENOENT,
        "no pool runs, and there is no model to start one with: name one with --model or $QUERN_MODEL, or "
        "start a pool with quern serve (looked for %s beside %s)",
        DEFAULT_MODEL, folder);
}

struct arguments {
    char *list[MAX_ARGUMENTS + 1];
    int n;
    char numbers[8][12];
    int n_numbers;
};

static void add(struct arguments *arguments, const char *name, const char *value)
{
    arguments->list[arguments->n++] = (char *)name;
    if (value)
        arguments->list[arguments->n++] = (char *)value;
}

static void add_number(struct arguments *arguments, const char *name, uint32_t value, bool given)
{
    if (!given)
        return;
    char *text = arguments->numbers[arguments->n_numbers++];
    snprintf(text, sizeof *arguments->numbers, "%u", value);
    add(arguments, name, text);
}

/* In the child: becomes the broker. */
static void become_broker(char *const *list, const char *log_path, pid_t parent)
{
    int null = open("/dev/null", O_RDWR);
    int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (null < 0 || log < 0)
        _exit(126);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* died before the line above */
        _exit(126);
    signal(SIGPIPE, SIG_DFL);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(list[0], list);
    dprintf(STDERR_FILENO, "%s: %s\n", list[0], strerror(errno));
    _exit(127);
}

static int spawn(struct pool *pool, const struct pool_options *options, const char *model, struct error *err)
{
    char program[PATH_MAX], log_path[RUNDIR_PATH_MAX + 8];
    struct arguments arguments = {0};
    int r = program_sibling("quern-broker", program, err);
    if (r < 0)
        return r;
    add(&arguments, program, model);
    add(&arguments, "--rundir", pool->rundir);
    if (options->device)
        add(&arguments, "--device", options->device);
    add_number(&arguments, "--workers", options->workers, options->workers > 0);
    add_number(&arguments, "--ctx", options->context, options->context > 0);
    add_number(&arguments, "--slots", options->slots, options->slots > 0);
    add_number(&arguments, "--kv-blocks", options->kv_blocks, options->kv_blocks > 0);
    add_number(&arguments, "--threads", options->threads, options->threads > 0);
    add_number(&arguments, "--frame-us", options->frame_us, options->has_frame_us);
    snprintf(log_path, sizeof log_path, "%s/" LOG_NAME, pool->rundir);
    pid_t self = getpid();
    add_number(&arguments, "--owner", (uint32_t)self, true);
    pid_t pid = fork();
    if (pid < 0)
        return error_set(err, -errno, "fork: %s", strerror(errno));
    if (pid == 0)
        become_broker(arguments.list, log_path, self);
    pool->pid = pid;
    return 0;
}

/* Reads the broker's log: whether it is ready, and its last line. */
static bool read_log(const struct pool *pool, char ret_last[LAST_WORDS_MAX])
{
    char path[RUNDIR_PATH_MAX + 8], line[1024];
    bool ready = false;
    snprintf(path, sizeof path, "%s/" LOG_NAME, pool->rundir);
    FILE *file = fopen(path, "re");
    ret_last[0] = 0;
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        ready |= strncmp(line, "ready:", 6) == 0;
        if (line[0])
            snprintf(ret_last, LAST_WORDS_MAX, "%.*s", LAST_WORDS_MAX - 1, line);
    }
    if (file)
        fclose(file);
    return ready;
}

static void show_wait(const char *model, uint64_t waited_ns, bool last)
{
    const char *name = strrchr(model, '/') ? strrchr(model, '/') + 1 : model;
    if (last)
        fputs("\r\033[K", stderr);
    else
        fprintf(stderr, "\r\033[Kloading %s, %.1f s", name, (double)waited_ns / CLOCK_NS_PER_S);
}

static int wait_until_ready(struct pool *pool, const char *model, bool quiet, struct error *err)
{
    char last[LAST_WORDS_MAX];
    uint64_t start = clock_ns(), shown = start;
    bool shows = !quiet && isatty(STDERR_FILENO);
    int r = 0, status = 0;
    while (!read_log(pool, last)) {
        if (waitpid(pool->pid, &status, WNOHANG) == pool->pid) {
            pool->pid = 0;
            read_log(pool, last);
            r = error_set(err, -ECHILD, "the pool did not start: %s", last[0] ? last : "it said nothing");
            break;
        }
        if (pool_interrupted()) {
            r = error_set(err, -EINTR, "interrupted");
            break;
        }
        usleep(5000);
        if (shows && clock_ns() - shown > 200 * CLOCK_NS_PER_MS)
            show_wait(model, (shown = clock_ns()) - start, false);
    }
    if (shows && shown != start)
        show_wait(model, 0, true);
    return r;
}

static int start_private(struct pool *pool, const struct pool_options *options, struct error *err)
{
    char model[PATH_MAX];
    int r = 0;
    if (options->model)
        snprintf(model, sizeof model, "%s", options->model);
    else
        r = default_model(model, err);
    if (r == 0 && access(model, R_OK) < 0)
        r = error_set(err, -errno, "%s: %s", model, strerror(errno));
    if (r == 0)
        r = rundir_temporary(pool->rundir, err);
    if (r == 0)
        r = spawn(pool, options, model, err);
    return r < 0 ? r : wait_until_ready(pool, model, options->quiet, err);
}

/* The key itself, or the one that a certificate file has under "public-key". */
static int read_key(const char *named, char ret_key[KEY_MAX], struct error *err)
{
    char line[256];
    FILE *file = strlen(named) == 40 ? NULL : fopen(named, "re");
    if (!file && strlen(named) != 40)
        return error_set(err, -errno, "server key %s: %s", named, strerror(errno));
    if (!file) {
        strcpy(ret_key, named);
        return 0;
    }
    int found = 0;
    while (!found && fgets(line, sizeof line, file))
        found = sscanf(line, " public-key = \"%40[^\"]", ret_key);
    fclose(file);
    return found == 1 ? 0
                      : error_set(err, -EINVAL, "%s is no CURVE certificate: it has no public-key", named);
}

int pool_connect(const char *connect, const char *server_key, struct quern **ret_client, struct error *err)
{
    struct quern_error said = {0};
    char key[KEY_MAX];
    int r = server_key ? read_key(server_key, key, err) : 0;
    if (r < 0)
        return r;
    r = quern_connect_curve(connect, server_key ? key : NULL, CONNECT_MS, ret_client, &said);
    return r < 0 ? error_set(err, r, "%s", said.text) : 0;
}

/* Opens a session that knows the pool's model, whose chat template decides what a prompt becomes. A pool that
 * is still loading lists none yet, so the session is opened again until it does. */
static int connect_to_model(struct pool *pool, const char *endpoint, const char *server_key, bool quiet,
                            struct error *err)
{
    uint64_t start = clock_ns(), shown = start;
    bool shows = !quiet && isatty(STDERR_FILENO);
    int r;
    for (;;) {
        size_t n;
        r = pool_connect(endpoint, server_key, &pool->client, err);
        if (r < 0 || (quern_models(pool->client, &n), n > 0))
            break;
        pool->client = quern_free(pool->client);
        if (pool_interrupted()) {
            r = error_set(err, -EINTR, "interrupted");
            break;
        }
        if (shows)
            show_wait("the pool's model", (shown = clock_ns()) - start, false);
        usleep(100000);
    }
    if (shows && shown != start)
        show_wait("", 0, true);
    return r;
}

int pool_open(const struct pool_options *options, struct pool **ret_pool, struct error *err)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return error_set(err, -ENOMEM, "out of memory");
    int r = 0;
    bool own = options->model || (!options->connect && !default_pool_runs());
    if (own)
        r = start_private(pool, options, err);
    if (r == 0)
        r = own ? connect_to_model(pool, pool->rundir, NULL, options->quiet, err)
                : connect_to_model(pool, options->connect, options->server_key, options->quiet, err);
    if (r < 0) {
        pool_close(pool);
        return r;
    }
    *ret_pool = pool;
    return 0;
}

static void stop_broker(pid_t pid)
{
    uint64_t start = clock_ns();
    kill(pid, SIGTERM);
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (clock_ns() - start > STOP_NS)
            kill(pid, SIGKILL);
        usleep(2000);
    }
}

struct pool *pool_close(struct pool *pool)
{
    if (!pool)
        return NULL;
    quern_free(pool->client);
    if (pool->pid > 0)
        stop_broker(pool->pid);
    if (pool->rundir[0])
        rundir_remove(pool->rundir);
    free(pool);
    return NULL;
}
