/* SPDX-License-Identifier: MIT */
/* One process: its arguments, what it inherits.
 *
 * Of our descriptors a worker inherits its doors, its slot of the board, the prefix store and nothing else:
 * all others are close-on-exec. It leads a process group of its own, so that a Ctrl-C on the terminal does
 * not reach it. SIGPIPE stays ignored, because it must not die of a line on its stderr.
 *
 * The broker stays in our group, or it could not write to a terminal that wants to be asked; it ignores the
 * signals that are meant for us. */

#include "supervisor/children/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/settings/sampling_options.h"
#include "common/program/command_line.h"
#include "common/clock.h"

extern char **environ;

/* What a worker is told of the pool's settings; the last of its command line. */
static void add_settings(const struct options *options, struct command_line *line)
{
    char sampling[SAMPLING_DEFAULTS_TEXT];
    sampling_options_text(options->sampling, sampling);
    command_line_option(line, "--device", options->device);
    if (options->context > 0)
        command_line_number(line, "--ctx", options->context);
    if (options->slots > 0)
        command_line_number(line, "--slots", options->slots);
    if (options->kv_blocks > 0)
        command_line_number(line, "--kv-blocks", options->kv_blocks);
    if (options->snapshots > 0)
        command_line_number(line, "--snapshots", options->snapshots);
    if (options->draft > 0)
        command_line_number(line, "--draft", options->draft);
    command_line_option(line, "--kv-type", options->kv_type[0] ? options->kv_type : NULL);
    command_line_option(line, "--quantize", options->quantize[0] ? options->quantize : NULL);
    command_line_option(line, "--chat-template", options->chat_template[0] ? options->chat_template : NULL);
    command_line_option(line, "--system", options->system[0] ? options->system : NULL);
    command_line_option(line, "--overrides", options->overrides[0] ? options->overrides : NULL);
    command_line_option(line, "--sampling", sampling[0] ? sampling : NULL);
    if (options->has_cached_blocks)
        command_line_number(line, "--cached-blocks", options->cached_blocks);
    if (options->threads > 0)
        command_line_number(line, "--threads", options->threads);
    if (options->has_frame_us)
        command_line_number(line, "--frame-us", options->frame_us);
    if (options->invariant)
        command_line_add(line, "--invariant");
    if (options->host_sampling)
        command_line_add(line, "--host-sampling");
    command_line_option(line, "--cublas", options->cublas[0] ? options->cublas : NULL);
    if (options->no_sandbox)
        command_line_add(line, "--no-sandbox");
    command_line_add(line, "--"); /* a model may be called -x */
    command_line_add(line, options->model);
}

static void build_command(const struct launch_plan *plan, struct command_line *line)
{
    command_line_add(line, plan->program);
    command_line_option(line, "--name", plan->name);
    command_line_number(line, "--incarnation", plan->incarnation);
    command_line_number(line, "--link-fd", plan->doors.link_fd);
    command_line_number(line, "--stream-fd", plan->doors.stream_fd);
    command_line_number(line, "--board-fd", plan->board_fd);
    command_line_number(line, "--board-slot", plan->index);
    if (plan->store_fd >= 0)
        command_line_number(line, "--prefix-store-fd", plan->store_fd);
    command_line_number(line, "--local-workers", plan->options->workers);
    command_line_number(line, "--parent", getpid());
    add_settings(plan->options, line);
}

/* What the processes have in common: default signals, stdin empty, and the descriptors `fds`. `stderr_fd` -1:
 * ours, and our process group too. */
static int spawn(const char *program, char *const *words, const int *fds, size_t n_fds, int stderr_fd,
                 pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, ours;
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigemptyset(&none);
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    sigaddset(&ours, SIGCHLD);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (stderr_fd >= 0) {
        posix_spawn_file_actions_adddup2(&actions, stderr_fd, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, stderr_fd, STDERR_FILENO);
        posix_spawnattr_setpgroup(&attributes, 0);
        flags |= POSIX_SPAWN_SETPGROUP;
    }
    /* Onto itself: clears close-on-exec. */
    for (size_t i = 0; i < n_fds; i++)
        posix_spawn_file_actions_adddup2(&actions, fds[i], fds[i]);
    posix_spawnattr_setflags(&attributes, flags);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ours);
    int r = posix_spawn(ret_pid, program, &actions, &attributes, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -r;
}

/* With a pipe as its stderr. `name` is of whoever could not be given one. */
static int spawn_piped(struct command_line *line, const int *fds, size_t n_fds, const char *name,
                       pid_t *ret_pid, int *ret_stderr, struct error *err)
{
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return error_set(err, -errno, "%s: pipe: %s", name, strerror(errno));
    pid_t pid;
    char *const *words = command_line_words(line);
    int r = words ? spawn(words[0], words, fds, n_fds, pipe_fds[1], &pid) : -ENOMEM;
    close(pipe_fds[1]);
    if (r < 0) {
        close(pipe_fds[0]);
        return error_set(err, r, "%s: %s", line->n > 0 ? line->words[0] : name, strerror(-r));
    }
    fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
    *ret_pid = pid;
    *ret_stderr = pipe_fds[0];
    return 0;
}

int launch_worker(const struct launch_plan *plan, pid_t *ret_pid, int *ret_stderr, struct error *err)
{
    struct command_line line = {0};
    const int fds[] = {plan->doors.link_fd, plan->doors.stream_fd, plan->board_fd, plan->store_fd};
    build_command(plan, &line);
    int r = spawn_piped(&line, fds, plan->store_fd >= 0 ? 4 : 3, plan->name, ret_pid, ret_stderr, err);
    command_line_deinit(&line);
    return r;
}

int launch_count(const char *program, const struct options *options, pid_t *ret_pid, int *ret_said,
                 struct error *err)
{
    struct command_line line = {0};
    command_line_add(&line, program);
    command_line_add(&line, "--count-devices");
    command_line_option(&line, "--device", options->device);
    command_line_add(&line, "--");
    command_line_add(&line, options->model);
    int r = spawn_piped(&line, NULL, 0, "quern-worker", ret_pid, ret_said, err);
    command_line_deinit(&line);
    return r;
}

int launch_worker_check(const char *program, const struct options *options, pid_t *ret_pid, int *ret_said,
                        struct error *err)
{
    struct command_line line = {0};
    command_line_add(&line, program);
    command_line_add(&line, "--check");
    add_settings(options, &line);
    int r = spawn_piped(&line, NULL, 0, "quern-worker", ret_pid, ret_said, err);
    command_line_deinit(&line);
    return r;
}

int launch_broker(const char *program, const struct options *options, uint64_t began_ns, const int *fds,
                  size_t n_fds, pid_t *ret_pid, struct error *err)
{
    struct command_line line = {0};
    char ours[OPTIONS_TEXT_MAX + 1];
    snprintf(ours, sizeof ours, "%s", program_invocation_short_name);
    command_line_add(&line, "quern-broker"); /* for ps(1), whatever the program is called */
    command_line_number(&line, "--supervision-fd", fds[0]);
    command_line_number(&line, "--began",
                        began_ns < CLOCK_NS_PER_S ? 1 : (int64_t)(began_ns / CLOCK_NS_PER_S));
    command_line_option(&line, "--said-by", ours[0] ? ours : NULL);
    options_write(options, &line);
    char *const *words = command_line_words(&line);
    int r = words ? spawn(program, words, fds, n_fds, -1, ret_pid) : -ENOMEM;
    command_line_deinit(&line);
    return r < 0 ? error_set(err, r, "%s: %s", program, strerror(-r)) : 0;
}

static void add_gateway_settings(const struct options *options, int listen_fd, struct command_line *line)
{
    if (strcmp(options->http, OPTIONS_HTTP_AUTO) != 0) /* by which name it is asked */
        command_line_option(line, "--listen", options->http);
    command_line_number(line, "--listen-fd", listen_fd);
    command_line_number(line, "--drain-seconds", options->drain_seconds);
    command_line_option(line, "--keys", options->http_keys[0] ? options->http_keys : NULL);
    command_line_option(line, "--hosts", options->http_hosts[0] ? options->http_hosts : NULL);
    command_line_option(line, "--tls-cert", options->http_tls_cert[0] ? options->http_tls_cert : NULL);
    command_line_option(line, "--tls-key", options->http_tls_key[0] ? options->http_tls_key : NULL);
    command_line_option(line, "--request-log", options->http_log[0] ? options->http_log : NULL);
    command_line_option(line, "--otlp", options->http_otlp[0] ? options->http_otlp : NULL);
    command_line_option(line, "--otlp-headers",
                        options->http_otlp_headers[0] ? options->http_otlp_headers : NULL);
    command_line_option(line, "--cors", options->http_cors[0] ? options->http_cors : NULL);
    if (options->http_open)
        command_line_add(line, "--open");
    if (options->share_prefixes)
        command_line_add(line, "--share-prefixes");
    if (options->http_max_tokens > 0)
        command_line_number(line, "--max-tokens", options->http_max_tokens);
    if (options->http_body_kb > 0)
        command_line_number(line, "--body-kb", options->http_body_kb);
    if (options->has_http_sse_ping)
        command_line_number(line, "--sse-ping", options->http_sse_ping);
    if (options->has_http_thinking_budget)
        command_line_number(line, "--thinking-budget", options->http_thinking_budget);
    command_line_option(line, "--connect", options->rundir);
    command_line_number(line, "--parent", getpid());
}

int launch_gateway(const char *program, const struct options *options, int listen_fd, int report_fd,
                   pid_t *ret_pid, struct error *err)
{
    struct command_line line = {0};
    command_line_add(&line, program);
    command_line_number(&line, "--report-fd", report_fd);
    add_gateway_settings(options, listen_fd, &line);
    char *const *words = command_line_words(&line);
    const int fds[] = {listen_fd, report_fd};
    int r = words ? spawn(program, words, fds, sizeof fds / sizeof *fds, -1, ret_pid) : -ENOMEM;
    command_line_deinit(&line);
    return r < 0 ? error_set(err, r, "%s: %s", program, strerror(-r)) : 0;
}

int launch_gateway_check(const char *program, const struct options *options, int listen_fd, pid_t *ret_pid,
                         int *ret_said, struct error *err)
{
    struct command_line line = {0};
    command_line_add(&line, program);
    command_line_add(&line, "--check");
    add_gateway_settings(options, listen_fd, &line);
    int r = spawn_piped(&line, &listen_fd, 1, "quern-gateway", ret_pid, ret_said, err);
    command_line_deinit(&line);
    return r;
}
