/* SPDX-License-Identifier: MIT */
/* The life of a private pool.
 *
 * The broker is in a process group of its own (a Ctrl-C on the terminal is ours to handle) and bound to us by
 * PR_SET_PDEATHSIG: if this program is killed, the broker gets SIGTERM and drains. It is blocked until the
 * broker takes it in its own way, or one that came earlier would leave the directory to nobody. Its stderr
 * goes to RUNDIR/log, which we hold open, so that nothing is wanting when it is to be read; it is ready when
 * a line there begins with "ready:", lines of its worker say how far that is with the model, and when it dies
 * before, the last line is the reason. The directory is removed when the broker is gone, or by the broker
 * when we are. */

#include "client/command/pool/private_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/command/terminal/interrupt.h"
#include "client/command/terminal/progress.h"
#include "common/clock.h"
#include "common/program/command_line.h"
#include "common/files/default_model.h"
#include "common/program/program.h"

#define STOP_NS        (5 * CLOCK_NS_PER_S) /* from SIGTERM to SIGKILL */
#define LOG_NAME       "log"
#define LAST_WORDS_MAX 400

/* In the child: becomes the broker. */
static void become_broker(char *const *words, const struct private_pool *pool, pid_t parent)
{
    sigset_t end;
    int null = open("/dev/null", O_RDWR);
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* died before the line above */
        rundir_remove(pool->rundir);
    if (null < 0 || getppid() != parent)
        _exit(126);
    signal(SIGPIPE, SIG_DFL);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(pool->log, STDERR_FILENO);
    execv(words[0], words);
    dprintf(STDERR_FILENO, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

static void build_command(struct command_line *line, const char *program, const char *model,
                          const struct private_pool *pool, const struct pool_options *options)
{
    const struct {
        const char *name;
        uint32_t value;
        bool given;
    } numbers[] = {{"--workers", options->workers > 0 ? options->workers : 1, true},
                   {"--ctx", options->context, options->context > 0},
                   {"--slots", options->slots, options->slots > 0},
                   {"--kv-blocks", options->kv_blocks, options->kv_blocks > 0},
                   {"--prefix-store", options->prefix_store, options->prefix_store > 0},
                   {"--threads", options->threads, options->threads > 0},
                   {"--frame-us", options->frame_us, options->has_frame_us},
                   {"--owner", (uint32_t)getpid(), true}};
    command_line_add(line, program);
    command_line_option(line, "--rundir", pool->rundir);
    command_line_option(line, "--device", options->device);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].given)
            command_line_number(line, numbers[i].name, numbers[i].value);
    command_line_add(line, "--"); /* a model may be called -x */
    command_line_add(line, model);
}

static int spawn(struct private_pool *pool, const struct pool_options *options, const char *model,
                 struct error *err)
{
    char program[PATH_MAX], log_path[RUNDIR_PATH_MAX + 8];
    int r = program_sibling("quern-broker", program, err);
    if (r < 0)
        return r;
    snprintf(log_path, sizeof log_path, "%s/" LOG_NAME, pool->rundir);
    int log = open(log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0)
        return error_set(err, -errno, "%s: %s", log_path, strerror(errno));
    pool->log = log;
    struct command_line line = {0};
    build_command(&line, program, model, pool, options);
    char *const *words = command_line_words(&line);
    pid_t self = getpid(), pid = words ? fork() : -1;
    if (pid == 0)
        become_broker(words, pool, self);
    if (!words)
        r = error_set(err, -ENOMEM, "out of memory");
    else if (pid < 0)
        r = error_set(err, -errno, "fork: %s", strerror(errno));
    else
        pool->pid = pid;
    command_line_deinit(&line);
    return r;
}

/* The broker's log, as far as it was read. */
struct words {
    off_t read;
    bool ready;
    char last[LAST_WORDS_MAX]; /* line */
    char doing[32];            /* what a worker does to its model; empty: it has not said how far it is */
    uint32_t percent;          /* of it */
};

/* "12:34:56.789 worker-0 info loading: 35% of 4123 MiB" (worker/start/loading.h) */
static void read_how_far(const char *line, struct words *words)
{
    char doing[sizeof words->doing];
    uint32_t percent;
    if (sscanf(line, "%*s worker-%*u info %31[a-z]: %3u%% of ", doing, &percent) != 2 || percent > 100)
        return;
    strcpy(words->doing, doing);
    words->percent = percent;
}

static void take_line(const char *line, struct words *words)
{
    words->ready |= strncmp(line, "ready:", 6) == 0;
    read_how_far(line, words);
    if (line[0])
        snprintf(words->last, LAST_WORDS_MAX, "%.*s", LAST_WORDS_MAX - 1, line);
}

/* Goes on reading; a line that has not ended is for the next time, but if this is the `last`. */
static void read_log(const struct private_pool *pool, struct words *words, bool last)
{
    char line[1024];
    ssize_t n;
    while ((n = pread(pool->log, line, sizeof line - 1, words->read)) > 0) {
        const char *end = memchr(line, '\n', (size_t)n);
        if (!end && n < (ssize_t)sizeof line - 1 && !last)
            return;
        size_t len = end ? (size_t)(end - line) : (size_t)n;
        words->read += (off_t)len + (end != NULL);
        line[len] = 0;
        take_line(line, words);
    }
}

/* Whether not even a line of its log may be written. */
static bool may_not_speak(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < LAST_WORDS_MAX;
}

/* Why it ended, without the name that a broker puts before what it says. */
static int did_not_start(const struct private_pool *pool, struct words *words, struct error *err)
{
    static const char dress[] = "quern-broker: ";
    read_log(pool, words, true);
    const char *last = words->last;
    const char *reason = strncmp(last, dress, sizeof dress - 1) == 0 ? last + sizeof dress - 1 : last;
    if (!reason[0])
        reason = may_not_speak() ? "the file size limit allows no files or shared memory (ulimit -f)"
                                 : "it printed nothing";
    return error_set(err, -ECHILD, "the pool did not start: %s", reason);
}

static void show(struct progress *progress, const struct words *words, const char *model)
{
    const char *slash = strrchr(model, '/');
    char what[300];
    snprintf(what, sizeof what, "%s %.256s", words->doing[0] ? words->doing : "loading",
             slash ? slash + 1 : model);
    if (words->doing[0])
        progress_show_part(progress, what, words->percent);
    else
        progress_show(progress, what);
}

static int wait_until_ready(struct private_pool *pool, const char *model, struct error *err)
{
    struct words words = {0};
    struct progress progress;
    int r = 0;
    progress_start(&progress);
    while (r == 0 && (read_log(pool, &words, false), !words.ready)) {
        if (waitpid(pool->pid, NULL, WNOHANG) == pool->pid) {
            pool->pid = 0;
            r = did_not_start(pool, &words, err);
        } else if (interrupt_signal()) {
            r = error_set(err, -EINTR, "interrupted");
        } else {
            usleep(5000);
            show(&progress, &words, model);
        }
    }
    progress_end(&progress);
    return r;
}

int private_pool_start(struct private_pool *pool, const struct pool_options *options, struct error *err)
{
    char model[PATH_MAX];
    int r = 0;
    if (options->model)
        snprintf(model, sizeof model, "%s", options->model);
    else if ((r = default_model(model, err)) < 0)
        error_prefix(err, r,
                     "no pool is running and no model is given to start one: use --model or $QUERN_MODEL, or "
                     "start a pool with quern serve");
    if (r == 0 && access(model, R_OK) < 0)
        r = error_set(err, -errno, "%s: %s", model, strerror(errno));
    if (r == 0)
        r = rundir_temporary(pool->rundir, err);
    if (r == 0)
        r = spawn(pool, options, model, err);
    return r < 0 ? r : wait_until_ready(pool, model, err);
}

void private_pool_end(struct private_pool *pool)
{
    if (pool->pid > 0) {
        uint64_t start = clock_ns();
        kill(pool->pid, SIGTERM);
        while (waitpid(pool->pid, NULL, WNOHANG) == 0) {
            if (clock_ns() - start > STOP_NS)
                kill(pool->pid, SIGKILL);
            usleep(2000);
        }
    }
    if (pool->log > 0)
        close(pool->log);
    if (pool->rundir[0])
        rundir_remove(pool->rundir);
    *pool = (struct private_pool){0};
}
