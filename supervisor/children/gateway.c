/* SPDX-License-Identifier: MIT */
/* See gateway.h. It is started when the pool can be reached for the first time, drains when the pool does,
 * and goes with the supervisor (PR_SET_PDEATHSIG).
 *
 *     current: none ──start_at──▶ starts ──it reports that it serves──▶ serves ──it dies──▶ none
 *     next:    none ──replace──▶ starts ──it reports that it serves──▶ current; the one before: leaving
 *                                   └──it fails, ends, or takes too long──▶ none; keeping the old one
 *     leaving: SIGUSR1 ──it reports that it accepts no more, ends, or is killed for not doing so──▶ none
 *     retired: SIGUSR1, then answers what it has, and ends by itself
 *
 * The current one is kept running whatever becomes of the next.
 *
 * While two of them listen the kernel gives each connection to one of them, so a successor has taken over
 * only when the one before is no longer leaving. The first one of a pool that ends by itself ends the pool:
 * what was asked for cannot be served. A later one is started again and again, since a file that is wrong now
 * was right before, and the rest of the pool does not need it. */

#include "supervisor/children/gateway.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/program/program.h"
#include "common/utf8.h"
#include "proto/supervision.h"
#include "supervisor/children/launch.h"

#define AT_ONCE         3                     /* deaths in a row before the next one is waited for */
#define TRIAL_NS        (30 * CLOCK_NS_PER_S) /* to read its files and to reach the pool */
#define LEAVE_NS        (15 * CLOCK_NS_PER_S) /* to stop accepting connections; usually a millisecond */
#define GRACE_NS        (15 * CLOCK_NS_PER_S) /* of one that was replaced, beyond the time for draining */
#define END_NS          (3 * CLOCK_NS_PER_S)
#define END_AGAIN_US    10000
#define LISTEN_NS       (2 * CLOCK_NS_PER_S)
#define AUTO_ADDRESS    "127.0.0.1:8080"
#define AUTO_OTHER      "127.0.0.1:0"
#define LISTEN_AGAIN_US 20000

int gateway_child_init(struct gateway_child *child, const struct options *options, struct error *err)
{
    *child = (struct gateway_child){
        .options = options, .listen_fd = -1, .start_at = options->http[0] ? 0 : UINT64_MAX};
    if (!options->http[0])
        return 0;
    int r = program_sibling("quern-gateway", child->program, err);
    return r == -ENOENT ? error_set(err, r, "http: quern-gateway is missing: this build has no libmicrohttpd")
                        : r;
}

/* Waits a moment for an address that another pool is about to leave. The descriptor, or -errno. */
static int listen_soon(const char *host_port, bool open, char ret_address[LISTEN_ADDRESS], struct error *err)
{
    uint64_t until = clock_ns() + LISTEN_NS;
    int fd;
    while ((fd = listen_on(host_port, open, ret_address, err)) == -EADDRINUSE && clock_ns() < until)
        usleep(LISTEN_AGAIN_US);
    return fd;
}

static int listen_auto(bool open, char ret_address[LISTEN_ADDRESS], struct error *err)
{
    int fd = listen_soon(AUTO_ADDRESS, open, ret_address, err);
    if (fd != -EADDRINUSE)
        return fd;
    fd = listen_on(AUTO_OTHER, open, ret_address, err);
    if (fd >= 0)
        log_warn("%s is taken: HTTP is on %s instead", AUTO_ADDRESS, ret_address);
    return fd;
}

int gateway_child_listen(struct gateway_child *child, struct error *err)
{
    const struct options *options = child->options;
    bool open = options->http_open || options->http_keys[0]; /* the gateway sees whether a key is in it */
    int fd, r = listen_passed(&fd, err);
    if (r < 0 || (fd < 0 && !options->http[0]))
        return r;
    if (!options->http[0])
        return error_set(err, -EINVAL, "LISTEN_FDS: a socket was passed, but http is not set");
    if (fd >= 0)
        r = listen_adopt(fd, open, child->address, err);
    else if (strcmp(options->http, OPTIONS_HTTP_AUTO) == 0)
        fd = r = listen_auto(open, child->address, err);
    else
        fd = r = listen_soon(options->http, open, child->address, err);
    if (r < 0)
        return r;
    child->listen_fd = fd;
    return 0;
}

/* ---- starting ---- */

static void close_report(struct gateway_process *process)
{
    if (process->report_fd > 0)
        close(process->report_fd);
    process->report_fd = 0;
}

static int start(const struct gateway_child *child, struct gateway_process *ret_process, struct error *err)
{
    int pair[2];
    pid_t pid;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set(err, -errno, "socketpair: %s", strerror(errno));
    int r = launch_gateway(child->program, child->options, child->listen_fd, pair[1], &pid, err);
    close(pair[1]);
    if (r < 0) {
        close(pair[0]);
        return r;
    }
    *ret_process = (struct gateway_process){.pid = pid, .report_fd = pair[0]};
    return 0;
}

static void fail_trial(struct gateway_child *child, const char *reason)
{
    if (child->trial == GATEWAY_TRIAL_FAILED)
        return; /* what was said first is the cause */
    child->trial = GATEWAY_TRIAL_FAILED;
    snprintf(child->reason, sizeof child->reason, "%s", reason);
}

void gateway_child_give_up_next(struct gateway_child *child, const char *reason)
{
    if (child->trial != GATEWAY_TRIAL_WAITS && child->trial != GATEWAY_TRIAL_RUNS)
        return;
    fail_trial(child, reason);
    if (child->next.pid > 0)
        kill(child->next.pid, SIGKILL);
}

static bool has_room(const struct gateway_child *child)
{
    for (int i = 0; i < GATEWAY_RETIRED; i++)
        if (child->retired[i].pid == 0)
            return true;
    return false;
}

void gateway_child_replace(struct gateway_child *child, uint64_t now)
{
    struct error err;
    if (child->trial == GATEWAY_TRIAL_YIELD || (child->next.pid > 0 && child->trial == GATEWAY_TRIAL_RUNS))
        return;                                    /* one is coming already */
    if (child->next.pid > 0 || !has_room(child)) { /* one that was given up ends at once */
        child->trial = GATEWAY_TRIAL_WAITS;
        return;
    }
    child->trial = GATEWAY_TRIAL_RUNS;
    child->trial_by = now + TRIAL_NS;
    if (start(child, &child->next, &err) < 0)
        fail_trial(child, err.text);
}

/* When the next one is given up. */
static uint64_t trial_due(const struct gateway_child *child)
{
    return child->next.pid > 0 && child->trial == GATEWAY_TRIAL_RUNS ? child->trial_by : UINT64_MAX;
}

/* When a current one is started. */
static uint64_t start_due(const struct gateway_child *child)
{
    return child->current.pid > 0 ? UINT64_MAX : child->start_at;
}

uint64_t gateway_child_due(const struct gateway_child *child)
{
    uint64_t due = start_due(child);
    if (trial_due(child) < due)
        due = trial_due(child);
    for (int i = 0; i < GATEWAY_RETIRED; i++)
        if (child->retired[i].pid > 0 && child->retired[i].give_up_at < due)
            due = child->retired[i].give_up_at;
    return due;
}

static void give_up_retired(struct gateway_child *child, uint64_t now)
{
    for (int i = 0; i < GATEWAY_RETIRED; i++) {
        if (child->retired[i].pid <= 0 || child->retired[i].give_up_at > now)
            continue;
        kill(child->retired[i].pid, SIGKILL);
        child->retired[i].give_up_at = UINT64_MAX;
    }
}

void gateway_child_turn(struct gateway_child *child, uint64_t now)
{
    struct error err;
    if (child->trial == GATEWAY_TRIAL_WAITS && child->next.pid == 0 && has_room(child))
        gateway_child_replace(child, now);
    give_up_retired(child, now);
    if (trial_due(child) <= now)
        gateway_child_give_up_next(child, "it did not reach the pool in time");
    if (start_due(child) <= now && start(child, &child->current, &err) < 0) {
        log_error("the gateway cannot be started: %s", err.text);
        child->start_at = now + CLOCK_NS_PER_S;
    }
}

/* ---- what they say ---- */

nfds_t gateway_child_poll(const struct gateway_child *child, struct pollfd *ret_items)
{
    nfds_t n = 0;
    if (child->current.report_fd > 0)
        ret_items[n++] = (struct pollfd){.fd = child->current.report_fd, .events = POLLIN};
    if (child->next.report_fd > 0)
        ret_items[n++] = (struct pollfd){.fd = child->next.report_fd, .events = POLLIN};
    if (child->leaving.report_fd > 0)
        ret_items[n++] = (struct pollfd){.fd = child->leaving.report_fd, .events = POLLIN};
    return n;
}

/* False: it has said nothing since. Closes where it has said all. */
static bool take_report(struct gateway_process *process, struct gateway_report *ret_report)
{
    if (process->report_fd <= 0)
        return false;
    int r = supervision_receive(process->report_fd, ret_report, sizeof *ret_report);
    if (r == -EAGAIN || r == -EINTR)
        return false;
    if (r < 0 || ret_report->version != GATEWAY_REPORT_VERSION || ret_report->kind != GATEWAY_SERVES)
        close_report(process);
    if (r < 0 || ret_report->version != GATEWAY_REPORT_VERSION)
        return false; /* it ended, which is seen, or is no gateway that we know */
    ret_report->text[sizeof ret_report->text - 1] = 0;
    utf8_clean(ret_report->text);
    return true;
}

static void retire_current(struct gateway_child *child, uint64_t now)
{
    for (int i = 0; i < GATEWAY_RETIRED && child->current.pid > 0; i++) {
        if (child->retired[i].pid != 0)
            continue;
        child->retired[i] =
            (struct gateway_retired){child->current.pid, now + LEAVE_NS, child->current.serves};
        kill(child->current.pid, SIGUSR1);
        child->leaving = child->current;
        child->current = (struct gateway_process){0};
    }
    close_report(&child->current);
}

/* The one before has left, or is gone: it may finish its answers. */
static void take_leave(struct gateway_child *child, uint64_t now)
{
    uint64_t patience = child->options->drain_seconds * CLOCK_NS_PER_S + GRACE_NS;
    struct gateway_report report;
    take_report(&child->leaving, &report);
    if (child->trial != GATEWAY_TRIAL_YIELD || child->leaving.report_fd > 0)
        return;
    for (int i = 0; i < GATEWAY_RETIRED; i++)
        if (child->retired[i].pid > 0 && child->retired[i].pid == child->leaving.pid)
            child->retired[i].give_up_at = now + patience;
    child->leaving = (struct gateway_process){0};
    child->trial = GATEWAY_TRIAL_PASSED;
}

static void take_reports(struct gateway_child *child, uint64_t now)
{
    struct gateway_report report;
    take_leave(child, now);
    if (take_report(&child->current, &report) && report.kind == GATEWAY_SERVES) {
        child->current.serves = true;
        restart_ready(&child->restart, now);
        child->served = true;
    }
    if (!take_report(&child->next, &report) || child->trial != GATEWAY_TRIAL_RUNS)
        return; /* nothing, or too late: it was given up */
    if (report.kind != GATEWAY_SERVES) {
        fail_trial(child, report.text);
        return;
    }
    retire_current(child, now);
    child->current = child->next;
    child->current.serves = true;
    child->next = (struct gateway_process){0};
    child->trial = GATEWAY_TRIAL_YIELD;
    restart_ready(&child->restart, now);
    child->served = true;
    take_leave(child, now);
}

/* ---- their ends ---- */

static bool ended(pid_t pid, int *ret_status)
{
    return pid > 0 && waitpid(pid, ret_status, WNOHANG) == pid;
}

static void say_how(int status, char *ret_text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(ret_text, size, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(ret_text, size, "ended with status %d", WEXITSTATUS(status));
}

static void reap_retired(struct gateway_child *child)
{
    int status;
    char how[128];
    for (int i = 0; i < GATEWAY_RETIRED; i++) {
        if (!ended(child->retired[i].pid, &status))
            continue;
        child->retired[i].pid = 0;
        say_how(status, how, sizeof how);
        if (WIFSIGNALED(status) && child->retired[i].served && child->start_at != UINT64_MAX)
            log_error("a replaced gateway %s: its unfinished answers are lost", how);
    }
}

static void reap_next(struct gateway_child *child)
{
    int status;
    char how[128], text[160];
    if (!ended(child->next.pid, &status))
        return;
    close_report(&child->next);
    child->next.pid = 0;
    if (child->trial != GATEWAY_TRIAL_RUNS)
        return; /* it was given up */
    say_how(status, how, sizeof how);
    snprintf(text, sizeof text, "it %s", how);
    fail_trial(child, text);
}

/* False: the first one of the pool ended by itself. */
static bool reap_current(struct gateway_child *child, uint64_t now)
{
    int status;
    char how[128];
    if (!ended(child->current.pid, &status))
        return true;
    close_report(&child->current);
    child->current = (struct gateway_process){0};
    if (child->start_at == UINT64_MAX)
        return true; /* it was told to */
    say_how(status, how, sizeof how);
    if (WIFEXITED(status) && !child->served) {
        log_error("the gateway %s", how);
        return false;
    }
    child->restart.deaths = 0; /* it is never given up */
    restart_died(&child->restart, child->restart.wait_ns, now, &child->start_at);
    if (WIFSIGNALED(status) && child->restart.waits <= AT_ONCE)
        child->start_at = now;
    log_error("the gateway %s: restarting it", how);
    return true;
}

bool gateway_child_reap(struct gateway_child *child, uint64_t now)
{
    take_reports(child, now); /* what was said comes before the end */
    reap_retired(child);
    reap_next(child);
    return reap_current(child, now);
}

static void signal_all(const struct gateway_child *child, int signal)
{
    if (child->current.pid > 0)
        kill(child->current.pid, signal);
    if (child->next.pid > 0)
        kill(child->next.pid, signal);
    for (int i = 0; i < GATEWAY_RETIRED; i++)
        if (child->retired[i].pid > 0)
            kill(child->retired[i].pid, signal);
}

void gateway_child_stop(struct gateway_child *child, int signal)
{
    child->start_at = UINT64_MAX;
    if (child->trial == GATEWAY_TRIAL_WAITS || child->trial == GATEWAY_TRIAL_RUNS ||
        child->trial == GATEWAY_TRIAL_YIELD)
        fail_trial(child, "the pool was told to end");
    if (child->listen_fd >= 0)
        close(child->listen_fd); /* who comes now is refused */
    child->listen_fd = -1;
    signal_all(child, signal);
}

static bool some_run(const struct gateway_child *child)
{
    bool some = child->current.pid > 0 || child->next.pid > 0;
    for (int i = 0; i < GATEWAY_RETIRED; i++)
        some |= child->retired[i].pid > 0;
    return some;
}

void gateway_child_end(struct gateway_child *child)
{
    uint64_t until = clock_ns() + END_NS;
    gateway_child_stop(child, SIGTERM);
    while (some_run(child) && clock_ns() < until) {
        gateway_child_reap(child, clock_ns());
        if (some_run(child))
            usleep(END_AGAIN_US);
    }
    signal_all(child, SIGKILL);
    while (some_run(child)) {
        gateway_child_reap(child, clock_ns());
        if (some_run(child))
            usleep(END_AGAIN_US);
    }
}
