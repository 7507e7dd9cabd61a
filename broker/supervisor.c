/* SPDX-License-Identifier: MIT */
/* The processes of the pool.
 *
 *     WAITING ──start_at──▶ STARTING ──ready──▶ READY
 *        ▲                     │                  │
 *        │      died           │                  │
 *        └─────────────────────┴──────────────────┘
 *                │ exit 78, or a crash loop                 asked to stop
 *                ▼                                               ▼
 *              FAILED                                          GONE
 *
 * Alive is who makes progress, not who has a process: a ready worker that has work and whose layer and step
 * counters stand still for ten seconds is killed and counts as dead. A worker killed inside a write leaves
 * its slot of the board unreadable, so the slot is reset before the next one is started on it. */

#include "broker/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/launch.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/utf8.h"
#include "common/program.h"
#include "common/shm.h"

#define WANT_RETRY_NS CLOCK_NS_PER_S /* until a start is tried again that failed for want of something */

static const char *const state_names[] = {
    [CHILD_WAITING] = "waiting", [CHILD_STARTING] = "starting", [CHILD_READY] = "ready",
    [CHILD_FAILED] = "failed",   [CHILD_GONE] = "gone",
};

const char *child_state_name(enum child_state state)
{
    return state < CHILD_STATE_COUNT ? state_names[state] : "unknown";
}

int supervisor_init(struct supervisor *supervisor, const struct options *options, const char *worker_link,
                    int rundir_fd, uint64_t boot, struct error *err)
{
    *supervisor = (struct supervisor){.options = options,
                                      .worker_link = worker_link,
                                      .boot = boot,
                                      .rundir_fd = rundir_fd,
                                      .board_fd = -1,
                                      .n = options->workers};
    for (uint32_t i = 0; i < WORKER_MAX; i++)
        supervisor->children[i].log.fd = -1;
    int r = program_sibling("quern-worker", supervisor->program, err);
    if (r < 0)
        return r;
    size_t size = board_size(supervisor->n);
    r = shm_create("quern-board", size, &supervisor->board_fd);
    if (r == 0)
        r = shm_map(supervisor->board_fd, size, (void **)&supervisor->board);
    if (r == 0)
        r = shm_seal_size(supervisor->board_fd);
    if (r < 0) {
        supervisor_deinit(supervisor);
        return error_set(err, r, "shared memory for the board: %s", strerror(-r));
    }
    board_init(supervisor->board, supervisor->n);
    return 0;
}

static void move_to(struct supervisor *supervisor, uint32_t index, enum child_state state)
{
    struct child *child = &supervisor->children[index];
    log_debug("worker-%u: %s -> %s", index, child_state_name(child->state), child_state_name(state));
    child->state = state;
}

/* A killed worker leaves its socket behind; in our directory, which may have been moved. */
static void forget_stream(const struct supervisor *supervisor, const struct child *child)
{
    if (strncmp(child->stream, "ipc://", 6) == 0)
        unlinkat(supervisor->rundir_fd, strrchr(child->stream, '/') + 1, 0);
}

/* The place is empty again. */
static void clear_place(struct supervisor *supervisor, uint32_t index)
{
    struct child *child = &supervisor->children[index];
    child->pid = 0;
    forget_stream(supervisor, child);
    board_reset(&supervisor->board->slots[index]);
}

/* What comes after a death, or after a start that failed. */
static void after_death(struct supervisor *supervisor, uint32_t index, bool permanent, uint64_t now)
{
    struct child *child = &supervisor->children[index];
    clear_place(supervisor, index);
    if (supervisor->stopping)
        move_to(supervisor, index, CHILD_GONE);
    else if (permanent || !restart_died(&child->restart, now, &child->start_at))
        move_to(supervisor, index, CHILD_FAILED);
    else
        move_to(supervisor, index, CHILD_WAITING);
}

/* Descriptors, processes or memory were wanting: the machine may have them again in a moment, and the worker
 * is not to blame. */
static bool is_want(int r)
{
    return r == -EMFILE || r == -ENFILE || r == -EAGAIN || r == -ENOMEM;
}

static void start(struct supervisor *supervisor, uint32_t index, uint64_t now)
{
    struct child *child = &supervisor->children[index];
    struct error err;
    char name[24];
    snprintf(name, sizeof name, "worker-%u", index);
    child->incarnation++;
    child->stall = (struct stall){0};
    child->stalled = false;
    /* The boot number keeps an orphan of an earlier broker from sharing a path with a worker of ours. */
    snprintf(child->stream, sizeof child->stream, "ipc://%s/worker-%u-%llu-%u", supervisor->options->rundir,
             index, (unsigned long long)supervisor->boot, child->incarnation);
    struct launch_plan plan = {.program = supervisor->program,
                               .options = supervisor->options,
                               .worker_link = supervisor->worker_link,
                               .stream = child->stream,
                               .name = name,
                               .index = index,
                               .incarnation = child->incarnation,
                               .board_fd = supervisor->board_fd};
    int fd;
    int r = launch_worker(&plan, &child->pid, &fd, &err);
    if (r < 0) {
        snprintf(child->reason, sizeof child->reason, "%s", err.text);
        child->left = false;
        if (!is_want(r)) {
            after_death(supervisor, index, false, now);
            return;
        }
        clear_place(supervisor, index);
        child->start_at = now + WANT_RETRY_NS;
        return;
    }
    worker_log_open(&child->log, fd);
    move_to(supervisor, index, CHILD_STARTING);
}

bool supervisor_start_next(struct supervisor *supervisor, uint64_t now, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < supervisor->n && !supervisor->stopping; i++) {
        if (supervisor->children[i].state != CHILD_WAITING || supervisor->children[i].start_at > now)
            continue;
        start(supervisor, i, now);
        *ret_index = i;
        return true;
    }
    return false;
}

void supervisor_read_logs(struct supervisor *supervisor, uint64_t now)
{
    for (uint32_t i = 0; i < supervisor->n; i++) {
        worker_log_read(&supervisor->children[i].log, now);
        worker_log_flush(&supervisor->children[i].log, now);
    }
}

uint64_t supervisor_next(const struct supervisor *supervisor)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < supervisor->n && !supervisor->stopping; i++)
        if (supervisor->children[i].state == CHILD_WAITING && supervisor->children[i].start_at < next)
            next = supervisor->children[i].start_at;
    return next;
}

/* A command line that one process does not understand, the next will not either. */
static bool is_permanent(int status)
{
    return WIFEXITED(status) &&
           (WEXITSTATUS(status) == PROGRAM_EXIT_PERMANENT || WEXITSTATUS(status) == PROGRAM_EXIT_USAGE);
}

static void describe_death(struct child *child, int status)
{
    const char *last = worker_log_last(&child->log);
    const char *colon = last[0] ? ": " : "";
    if (child->stalled && child->state == CHILD_STARTING)
        snprintf(child->reason, sizeof child->reason, "made no progress in loading for %d s and was killed",
                 STALL_LOADING_MS / 1000);
    else if (child->stalled)
        snprintf(child->reason, sizeof child->reason, "made no progress for %d s and was killed",
                 STALL_MS / 1000);
    else if (WIFSIGNALED(status))
        snprintf(child->reason, sizeof child->reason, "killed by signal %d (%s)%s%.300s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)), colon, last);
    else if (is_permanent(status) && last[0])
        snprintf(child->reason, sizeof child->reason, "%.500s", last);
    else
        snprintf(child->reason, sizeof child->reason, "exit status %d%s%.300s", WEXITSTATUS(status), colon,
                 last);
}

bool supervisor_reap_next(struct supervisor *supervisor, uint64_t now, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < supervisor->n; i++) {
        struct child *child = &supervisor->children[i];
        int status;
        if (child->pid <= 0 || waitpid(child->pid, &status, WNOHANG) != child->pid)
            continue;
        bool permanent = is_permanent(status);
        worker_log_close(&child->log, permanent);
        child->left = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        describe_death(child, status);
        utf8_clean(child->reason);
        after_death(supervisor, i, permanent, now);
        *ret_index = i;
        return true;
    }
    return false;
}

void supervisor_ready(struct supervisor *supervisor, uint32_t index, uint64_t now)
{
    struct child *child = &supervisor->children[index];
    if (child->state != CHILD_STARTING)
        return;
    move_to(supervisor, index, CHILD_READY);
    restart_ready(&child->restart, now);
}

void supervisor_kill(struct supervisor *supervisor, uint32_t index)
{
    if (supervisor->children[index].pid > 0)
        kill(supervisor->children[index].pid, SIGKILL);
}

void supervisor_watch(struct supervisor *supervisor, uint32_t index, uint64_t heard_ns, uint64_t now)
{
    struct child *child = &supervisor->children[index];
    bool loads = child->state == CHILD_STARTING;
    if ((child->state != CHILD_READY && !loads) || child->stalled)
        return;
    const struct board_slot *slot = &supervisor->board->slots[index];
    uint64_t done = atomic_load(&slot->layers) + atomic_load(&slot->steps);
    struct board_snapshot snapshot;
    bool active = board_read(slot, &snapshot) == 0 && snapshot.active > 0;
    /* With sequences active, and while it loads, only work counts; an idle worker must at least be heard. */
    bool silent = now > heard_ns && now - heard_ns >= CLOCK_NS_PER_S;
    if (!stall_check(&child->stall, loads || active || silent, done, loads ? STALL_LOADING_MS : STALL_MS,
                     now))
        return;
    child->stalled = true;
    supervisor_kill(supervisor, index);
}

void supervisor_stood_still(struct supervisor *supervisor, uint64_t now)
{
    for (uint32_t i = 0; i < supervisor->n; i++)
        supervisor->children[i].stall.since = now;
}

void supervisor_stop(struct supervisor *supervisor, int signal)
{
    supervisor->stopping = true;
    for (uint32_t i = 0; i < supervisor->n; i++) {
        struct child *child = &supervisor->children[i];
        if (child->pid > 0)
            kill(child->pid, signal);
        else if (child->state == CHILD_WAITING)
            move_to(supervisor, i, CHILD_GONE);
    }
}

void supervisor_forget(struct supervisor *supervisor, uint32_t index)
{
    supervisor->children[index].pid = 0;
    forget_stream(supervisor, &supervisor->children[index]);
}

uint32_t supervisor_alive(const struct supervisor *supervisor)
{
    uint32_t alive = 0;
    for (uint32_t i = 0; i < supervisor->n; i++)
        alive += supervisor->children[i].pid > 0;
    return alive;
}

bool supervisor_all_failed(const struct supervisor *supervisor)
{
    for (uint32_t i = 0; i < supervisor->n; i++)
        if (supervisor->children[i].state != CHILD_FAILED)
            return false;
    return true;
}

void supervisor_snapshot(const struct supervisor *supervisor, uint32_t index,
                         struct board_snapshot *ret_snapshot, uint64_t *ret_steps)
{
    const struct board_slot *slot = &supervisor->board->slots[index];
    if (board_read(slot, ret_snapshot) < 0)
        *ret_snapshot = (struct board_snapshot){0};
    *ret_steps = atomic_load(&slot->steps);
}

void supervisor_deinit(struct supervisor *supervisor)
{
    for (uint32_t i = 0; i < supervisor->n; i++)
        worker_log_close(&supervisor->children[i].log, false);
    if (supervisor->board)
        munmap(supervisor->board, board_size(supervisor->n));
    if (supervisor->board_fd >= 0)
        close(supervisor->board_fd);
    supervisor->board = NULL;
    supervisor->board_fd = -1;
}
