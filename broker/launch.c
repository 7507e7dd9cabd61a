/* SPDX-License-Identifier: MIT */
/* One worker process: its arguments, its cores, what it inherits.
 *
 * Of our descriptors it inherits the board and nothing else: all others are close-on-exec. It leads a process
 * group of its own, so that a Ctrl-C on the terminal reaches the broker only. SIGPIPE stays ignored, because
 * a worker outlives a broker that was killed and must not die of a line on its stderr. */

#include "broker/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

#define MAX_ARGUMENTS    40
#define MAX_LISTED_CORES 256 /* what quern-worker takes */
#define CORES_TEXT       4096

struct arguments {
    char *list[MAX_ARGUMENTS + 1];
    int n;
    char text[PATH_MAX + CORES_TEXT + 2048]; /* the numbers and copies that `list` points to */
    size_t used;
};

static void add(struct arguments *arguments, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct arguments *arguments, const char *format, ...)
{
    size_t room = sizeof arguments->text - arguments->used;
    char *at = arguments->text + arguments->used;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(at, room, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= room || arguments->n == MAX_ARGUMENTS)
        return;
    arguments->list[arguments->n++] = at;
    arguments->used += (size_t)n + 1;
}

static void add_number(struct arguments *arguments, const char *name, uint32_t value, bool given)
{
    if (!given)
        return;
    add(arguments, "--%s", name);
    add(arguments, "%u", value);
}

uint32_t launch_cores(const int *allowed, uint32_t n_allowed, uint32_t index, uint32_t n, uint32_t threads,
                      char *ret_list, size_t size)
{
    uint32_t share = n_allowed / n ? n_allowed / n : 1;
    uint32_t count = threads ? threads : share;
    ret_list[0] = 0;
    if ((uint64_t)count * n > n_allowed || count > MAX_LISTED_CORES)
        return count;
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < size; i++)
        used +=
            (size_t)snprintf(ret_list + used, size - used, "%s%d", i ? "," : "", allowed[index * count + i]);
    if (used >= size)
        ret_list[0] = 0;
    return count;
}

static uint32_t allowed_cores(int allowed[CPU_SETSIZE])
{
    cpu_set_t set;
    uint32_t n = 0;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            allowed[n++] = i;
    return n;
}

static void build_arguments(const struct launch_plan *plan, struct arguments *arguments)
{
    const struct options *options = plan->options;
    add(arguments, "%s", plan->program);
    add(arguments, "%s", options->model);
    add(arguments, "--broker");
    add(arguments, "%s", plan->backend);
    add(arguments, "--name");
    add(arguments, "%s", plan->name);
    add_number(arguments, "incarnation", plan->incarnation, true);
    add(arguments, "--stream");
    add(arguments, "%s", plan->stream);
    add(arguments, "--device");
    add(arguments, "%s", options->device);
    add_number(arguments, "ctx", options->context, options->context > 0);
    add_number(arguments, "slots", options->slots, options->slots > 0);
    add_number(arguments, "kv-blocks", options->kv_blocks, options->kv_blocks > 0);
    int allowed[CPU_SETSIZE];
    uint32_t n_allowed = allowed_cores(allowed);
    if (n_allowed > 0) {
        char cores[CORES_TEXT];
        uint32_t threads = launch_cores(allowed, n_allowed, plan->index, options->workers, options->threads,
                                        cores, sizeof cores);
        add_number(arguments, "threads", threads, true);
        if (cores[0]) {
            add(arguments, "--cpus");
            add(arguments, "%s", cores);
        }
    }
    add(arguments, "--board-fd");
    add(arguments, "%d", plan->board_fd);
    add_number(arguments, "board-slot", plan->index, true);
    add_number(arguments, "frame-us", options->frame_us, options->has_frame_us);
}

static int spawn(const struct arguments *arguments, int board_fd, int stderr_fd, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, ours;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigemptyset(&none);
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    sigaddset(&ours, SIGCHLD);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, stderr_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, stderr_fd, STDERR_FILENO);
    /* Onto itself: clears close-on-exec. */
    posix_spawn_file_actions_adddup2(&actions, board_fd, board_fd);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ours);
    int r = posix_spawn(ret_pid, arguments->list[0], &actions, &attributes, arguments->list, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -r;
}

int launch_worker(const struct launch_plan *plan, pid_t *ret_pid, int *ret_stderr, struct error *err)
{
    struct arguments arguments = {0};
    build_arguments(plan, &arguments);
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return error_set(err, -errno, "%s: pipe: %s", plan->name, strerror(errno));
    pid_t pid;
    int r = spawn(&arguments, plan->board_fd, pipe_fds[1], &pid);
    close(pipe_fds[1]);
    if (r < 0) {
        close(pipe_fds[0]);
        return error_set(err, r, "%s: %s", plan->program, strerror(-r));
    }
    fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
    *ret_pid = pid;
    *ret_stderr = pipe_fds[0];
    return 0;
}
