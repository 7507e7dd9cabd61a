/* SPDX-License-Identifier: MIT */
/* Starting, watching and ending real pools for tests.
 *
 * The broker runs in its own process group with stderr in a file of the run directory; a test that dies
 * leaves no pool behind, because the broker is told to get SIGTERM with its parent (PR_SET_PDEATHSIG). */

#include "tests/integration/support/pool.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

/* Ends the test program: Check shows it as a signal, with the line above it on stderr. */
#define REQUIRE(condition, ...)                                                                              \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            die(__VA_ARGS__);                                                                                \
    } while (0)

static _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("pool: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

#define READY_S  180 /* under a sanitizer, beside other tests, the emulator checks its kernels for minutes */
#define MAX_ARGS 40

void environment_open(char ret_dir[RUNDIR_PATH_MAX + 1])
{
    struct error err = {0};
    REQUIRE(rundir_temporary(ret_dir, &err) == 0, "%s", err.text);
    setenv("TMPDIR", ret_dir, 1);
    setenv("XDG_RUNTIME_DIR", ret_dir, 1);
    unsetenv("QUERN_MODEL");
}

void environment_close(const char *dir)
{
    unsetenv("TMPDIR");
    unsetenv("XDG_RUNTIME_DIR");
    rundir_remove(dir);
}

const char *build_path(const char *name)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    REQUIRE(n > 0, "/proc/self/exe: %s", strerror(errno));
    path[n] = 0;
    for (;;) { /* up to the folder that ninja builds in */
        char *slash = strrchr(path, '/');
        REQUIRE(slash, "the program does not lie in a build folder");
        size_t room = sizeof path - (size_t)(slash - path);
        snprintf(slash, room, "/build.ninja");
        bool top = access(path, F_OK) == 0;
        *slash = 0;
        if (!top)
            continue;
        snprintf(slash, room, "/%s", name);
        return path;
    }
}

const char *tiny_model(void)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s", build_path("tests/integration/tiny.gguf"));
    return path;
}

const char *no_model(void)
{
    static const char text[] = "this is no model at all, not even close";
    static char path[32];
    snprintf(path, sizeof path, "/tmp/quern-test-XXXXXX");
    int fd = mkstemp(path);
    REQUIRE(fd >= 0 && write(fd, text, sizeof text - 1) == sizeof text - 1, "%s: %s", path, strerror(errno));
    close(fd);
    return path;
}

/* A socket that is bound to the port; -1 when it is taken. */
static int bind_port(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

int pool_free_ports(void)
{
    uint32_t where = 0;
    for (int i = 0; i < 1000; i++) {
        /* Anywhere: another program that looks at this moment, in a container perhaps, looks elsewhere. */
        if (getrandom(&where, sizeof where, 0) != sizeof where)
            die("no random number");
        int port = 20000 + (int)(where % 6000) * 2; /* below those that connections get */
        int first = bind_port(port), second = bind_port(port + 1);
        close(first);
        close(second);
        if (first >= 0 && second >= 0)
            return port;
    }
    die("no two ports are free");
}

static void nap_ms(int ms)
{
    struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};
    nanosleep(&t, NULL);
}

static int exit_status(int wait_status)
{
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

/* argv from a name and a list ended by NULL; returns the count. */
static int collect(const char **argv, int at, va_list args)
{
    const char *arg;
    while ((arg = va_arg(args, const char *))) {
        REQUIRE(at < MAX_ARGS - 1, "too many arguments");
        argv[at++] = arg;
    }
    argv[at] = NULL;
    return at;
}

static void spawn_broker(struct pool *pool, const char *model, va_list args)
{
    struct error err = {0};
    if (!pool->rundir[0])
        REQUIRE(rundir_temporary(pool->rundir, &err) == 0, "%s", err.text);
    snprintf(pool->frontend, sizeof pool->frontend, "ipc://%s/frontend", pool->rundir);
    snprintf(pool->stream, sizeof pool->stream, "ipc://%s/stream", pool->rundir);
    if (!pool->log[0])
        snprintf(pool->log, sizeof pool->log, "%s.log", pool->rundir);

    char name[256], program[4096];
    snprintf(name, sizeof name, "%s/quern-broker", pool->programs ? pool->programs : ".");
    snprintf(program, sizeof program, "%s", build_path(name));
    const char *argv[MAX_ARGS] = {program, model, "--rundir", pool->rundir};
    collect(argv, 4, args);

    struct stat log;
    pool->log_start = stat(pool->log, &log) == 0 ? log.st_size : 0;
    pid_t test = getpid();
    pool->broker = fork();
    REQUIRE(pool->broker >= 0, "fork: %s", strerror(errno));
    pool->supervisor = pool->broker;
    if (pool->broker == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != test)
            _exit(127);
        int fd = pool->stderr_fd > 0 ? pool->stderr_fd : open(pool->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, STDERR_FILENO);
        execv(program, (char *const *)argv);
        _exit(127);
    }
}

/* Waits for the broker's end; false when it is still there after the time. */
static bool await_end(struct pool *pool, int timeout_s, int *ret_status)
{
    uint64_t until = clock_ns() + (uint64_t)timeout_s * CLOCK_NS_PER_S;
    for (;;) {
        int status;
        pid_t r = waitpid(pool->broker, &status, WNOHANG);
        if (r == pool->broker) {
            pool->broker = 0;
            *ret_status = exit_status(status);
            return true;
        }
        if (clock_ns() > until)
            return false;
        nap_ms(5);
    }
}

void pool_start(struct pool *pool, const char *model, ...)
{
    va_list args;
    va_start(args, model);
    spawn_broker(pool, model, args);
    va_end(args);
    uint64_t until = clock_ns() + READY_S * CLOCK_NS_PER_S;
    while (!pool_is_ready(pool)) {
        int status;
        if (await_end(pool, 0, &status))
            die("the pool ended with %d before it was ready:\n%s", status, pool_log(pool));
        if (clock_ns() > until)
            die("the pool is not ready after %d s:\n%s", READY_S, pool_log(pool));
        nap_ms(10);
    }
}

void pool_spawn(struct pool *pool, const char *model, ...)
{
    va_list args;
    va_start(args, model);
    spawn_broker(pool, model, args);
    va_end(args);
}

/* A process of the pool that outlives the supervisor for a moment, for it looks for leaks, has the lock
 * still. */
static void await_unlocked(const struct pool *pool, int timeout_s)
{
    uint64_t until = clock_ns() + (uint64_t)timeout_s * CLOCK_NS_PER_S;
    int fd, r;
    if (strstr(pool_log(pool), "it holds the lock")) /* by another pool, which serves */
        return;
    while ((r = rundir_lock(pool->rundir, &fd, NULL)) == -EBUSY && clock_ns() < until)
        usleep(20000);
    if (r == 0)
        close(fd);
}

int pool_fails(struct pool *pool, int timeout_s, const char *model, ...)
{
    va_list args;
    va_start(args, model);
    spawn_broker(pool, model, args);
    va_end(args);
    int status;
    if (!await_end(pool, timeout_s, &status))
        die("the broker should have ended within %d s:\n%s", timeout_s, pool_log(pool));
    await_unlocked(pool, timeout_s);
    return status;
}

bool pool_ended(struct pool *pool, int *ret_status)
{
    return await_end(pool, 0, ret_status);
}

int pool_wait(struct pool *pool, int timeout_s)
{
    int status;
    REQUIRE(pool->broker > 0, "no broker runs");
    if (!await_end(pool, timeout_s, &status))
        die("the broker is still there after %d s:\n%s", timeout_s, pool_log(pool));
    return status;
}

int pool_stop(struct pool *pool, int signal, int timeout_s)
{
    REQUIRE(pool->broker > 0, "no broker runs");
    kill(pool->broker, signal);
    return pool_wait(pool, timeout_s);
}

void pool_forget(struct pool *pool)
{
    int status;
    if (pool->broker > 0) {
        kill(pool->broker, SIGTERM);
        kill(pool->broker, SIGTERM);
        if (!await_end(pool, 10, &status)) {
            kill(pool->broker, SIGKILL);
            await_end(pool, 10, &status);
        }
    }
    rundir_remove(pool->rundir);
    unlink(pool->log);
    *pool = (struct pool){0};
}

/* The log from `start` on, or as much of its end as there is room for; lives until the next call. */
static const char *log_from(const struct pool *pool, off_t start)
{
    static char text[1 << 16];
    int fd = open(pool->log, O_RDONLY);
    if (fd < 0)
        return "";
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size - ((off_t)sizeof text - 1);
    from = from > start ? from : start;
    ssize_t n = pread(fd, text, sizeof text - 1, from);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return text;
}

const char *pool_log(const struct pool *pool)
{
    return log_from(pool, 0);
}

bool pool_says(const struct pool *pool, const char *text, int timeout_s)
{
    uint64_t until = clock_ns() + (uint64_t)timeout_s * CLOCK_NS_PER_S;
    while (!strstr(pool_log(pool), text)) {
        if (clock_ns() >= until)
            return false;
        nap_ms(10);
    }
    return true;
}

bool pool_is_ready(const struct pool *pool)
{
    const char *log = log_from(pool, pool->log_start);
    return strncmp(log, "ready:", 6) == 0 || strstr(log, "\nready:");
}

unsigned pool_log_lines(const struct pool *pool)
{
    unsigned n = 0;
    for (const char *line = pool_log(pool), *end; (end = strchr(line, '\n')); line = end + 1)
        n += !memmem(line, (size_t)(end - line), "stalled", strlen("stalled"));
    return n;
}

/* By its name, which can be read whatever it does: the command line of a process that maps a large file waits
 * until it has. A program that starts itself again is called "exe". */
static bool may_be_of_a_pool(pid_t pid)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "r");
    bool found = file && fgets(name, sizeof name, file) &&
                 (strncmp(name, "quern", 5) == 0 || strcmp(name, "exe\n") == 0);
    if (file)
        fclose(file);
    return found;
}

/* The value after an option in a process's command line, or NULL; lives until the next call. */
static const char *option_of(pid_t pid, const char *option)
{
    static char line[8192];
    char path[64];
    if (!may_be_of_a_pool(pid))
        return NULL;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return NULL;
    ssize_t n = read(fd, line, sizeof line - 1);
    close(fd);
    if (n <= 0)
        return NULL;
    line[n] = 0;
    for (const char *p = line; p < line + n; p += strlen(p) + 1)
        if (strcmp(p, option) == 0 && p + strlen(p) + 1 < line + n)
            return p + strlen(p) + 1;
    return NULL;
}

pid_t pool_broker_pid(const struct pool *pool)
{
    pid_t found = 0;
    DIR *proc = opendir("/proc");
    REQUIRE(proc, "/proc: %s", strerror(errno));
    struct dirent *entry;
    while (found == 0 && (entry = readdir(proc))) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        const char *rundir =
            pid > 0 && option_of(pid, "--supervision-fd") ? option_of(pid, "--rundir") : NULL;
        if (rundir && strcmp(rundir, pool->rundir) == 0)
            found = pid;
    }
    closedir(proc);
    return found;
}

int pool_gateway_pids(const struct pool *pool, pid_t *ret_pids, int n)
{
    int found = 0;
    DIR *proc = opendir("/proc");
    REQUIRE(proc, "/proc: %s", strerror(errno));
    struct dirent *entry;
    while (found < n && (entry = readdir(proc))) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        const char *rundir = pid > 0 && option_of(pid, "--report-fd") ? option_of(pid, "--connect") : NULL;
        if (rundir && strcmp(rundir, pool->rundir) == 0)
            ret_pids[found++] = pid;
    }
    closedir(proc);
    return found;
}

int pool_worker_pids(const struct pool *pool, pid_t *ret_pids, int n)
{
    for (int i = 0; i < n; i++)
        ret_pids[i] = 0;
    int found = 0;
    DIR *proc = opendir("/proc");
    REQUIRE(proc, "/proc: %s", strerror(errno));
    struct dirent *entry;
    while ((entry = readdir(proc))) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid <= 0)
            continue;
        const char *parent = option_of(pid, "--link-fd") ? option_of(pid, "--parent") : NULL;
        if (!parent || atoi(parent) != pool->supervisor)
            continue;
        const char *name = option_of(pid, "--name");
        int i = name && strncmp(name, "worker-", 7) == 0 ? atoi(name + 7) : -1;
        if (i >= 0 && i < n) {
            ret_pids[i] = pid;
            found++;
        }
    }
    closedir(proc);
    return found;
}

int run_program(char *ret_out, size_t size, const char *name, ...)
{
    const char *argv[MAX_ARGS];
    char program[4096];
    snprintf(program, sizeof program, "%s", build_path(name));
    argv[0] = program;
    va_list args;
    va_start(args, name);
    collect(argv, 1, args);
    va_end(args);

    int out[2];
    REQUIRE(pipe2(out, O_CLOEXEC) == 0, "pipe: %s", strerror(errno));
    pid_t pid = fork();
    REQUIRE(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(out[1], STDOUT_FILENO);
        execv(program, (char *const *)argv);
        _exit(127);
    }
    close(out[1]);
    size_t len = 0;
    for (;;) {
        char sink[4096];
        ssize_t r = read(out[0], sink, sizeof sink);
        if (r <= 0)
            break;
        size_t keep = len + (size_t)r < size ? (size_t)r : size - 1 - len;
        memcpy(ret_out + len, sink, keep);
        len += keep;
    }
    close(out[0]);
    ret_out[len] = 0;
    int status;
    waitpid(pid, &status, 0);
    return exit_status(status);
}
