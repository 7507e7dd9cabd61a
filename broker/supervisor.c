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
#include "broker/text.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/program.h"
#include "common/shm.h"

static const char *const state_names[] = {
    [CHILD_WAITING] = "waiting", [CHILD_STARTING] = "starting", [CHILD_READY] = "ready",
    [CHILD_FAILED] = "failed",   [CHILD_GONE] = "gone",
};

const char *child_state_name(enum child_state state)
{
    return state < CHILD_STATE_COUNT ? state_names[state] : "unknown";
}

int supervisor_init(struct supervisor *supervisor, const struct options *options, const char *backend,
                    uint64_t boot, const struct supervisor_hooks *hooks, struct error *err)
{
    *supervisor = (struct supervisor){.options = options,
                                      .hooks = *hooks,
                                      .backend = backend,
                                      .boot = boot,
                                      .board_fd = -1,
                                      .n = options->workers};
    for (uint32_t i = 0; i < WORKER_MAX; i++)
        supervisor->children[i].words.fd = -1;
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

static void forget_stream(const struct child *child)
{
    /* A killed worker leaves its socket behind. */
    if (strncmp(child->stream, "ipc://", 6) == 0)
        unlink(child->stream + 6);
}

/* A death, or a start that failed: what comes next. */
static void child_ended(struct supervisor *supervisor, uint32_t index, bool permanent, uint64_t now)
{
    struct child *child = &supervisor->children[index];
    child->pid = 0;
    forget_stream(child);
    board_reset(&supervisor->board->slots[index]);
    if (supervisor->stopping)
        move_to(supervisor, index, CHILD_GONE);
    else if (permanent || !restart_died(&child->restart, now, &child->start_at))
        move_to(supervisor, index, CHILD_FAILED);
    else
        move_to(supervisor, index, CHILD_WAITING);
    supervisor->hooks.died(supervisor->hooks.arg, index);
}

static void start(struct supervisor *supervisor, uint32_t index, uint64_t now)
{
    struct child *child = &supervisor->children[index];
    struct error err;
    char name[16];
    snprintf(name, sizeof name, "worker-%u", index);
    child->incarnation++;
    child->stall = (struct stall){0};
    child->stalled = false;
    /* The boot number keeps an orphan of an earlier broker from sharing a path with a worker of ours. */
    snprintf(child->stream, sizeof child->stream, "ipc://%s/worker-%u-%llu-%u", supervisor->options->rundir,
             index, (unsigned long long)supervisor->boot, child->incarnation);
    struct launch_plan plan = {.program = supervisor->program,
                               .options = supervisor->options,
                               .backend = supervisor->backend,
                               .stream = child->stream,
                               .name = name,
                               .index = index,
                               .incarnation = child->incarnation,
                               .board_fd = supervisor->board_fd};
    int fd;
    if (launch_worker(&plan, &child->pid, &fd, &err) < 0) {
        snprintf(child->reason, sizeof child->reason, "%s", err.text);
        child->left = false;
        child_ended(supervisor, index, false, now);
        return;
    }
    words_open(&child->words, fd);
    move_to(supervisor, index, CHILD_STARTING);
    supervisor->hooks.started(supervisor->hooks.arg, index);
}

void supervisor_tick(struct supervisor *supervisor, uint64_t now)
{
    for (uint32_t i = 0; i < supervisor->n; i++) {
        struct child *child = &supervisor->children[i];
        words_flush(&child->words, now);
        if (child->state == CHILD_WAITING && child->start_at <= now && !supervisor->stopping)
            start(supervisor, i, now);
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
    const char *last = words_last(&child->words);
    const char *colon = last[0] ? ": " : "";
    if (child->stalled)
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

void supervisor_reap(struct supervisor *supervisor, uint64_t now)
{
    for (uint32_t i = 0; i < supervisor->n; i++) {
        struct child *child = &supervisor->children[i];
        int status;
        if (child->pid <= 0 || waitpid(child->pid, &status, WNOHANG) != child->pid)
            continue;
        bool permanent = is_permanent(status);
        words_close(&child->words, permanent);
        child->left = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        describe_death(child, status);
        text_clean(child->reason);
        child_ended(supervisor, i, permanent, now);
    }
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
    if (child->state != CHILD_READY || child->stalled)
        return;
    const struct board_slot *slot = &supervisor->board->slots[index];
    uint64_t done = atomic_load(&slot->layers) + atomic_load(&slot->steps);
    struct board_snapshot snapshot;
    bool active = board_read(slot, &snapshot) == 0 && snapshot.active > 0;
    /* With sequences active only work counts; an idle worker must at least be heard. */
    bool silent = now > heard_ns && now - heard_ns >= CLOCK_NS_PER_S;
    if (!stall_check(&child->stall, active || silent, done, now))
        return;
    child->stalled = true;
    supervisor_kill(supervisor, index);
}

void supervisor_forgive(struct supervisor *supervisor, uint64_t now)
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
    forget_stream(&supervisor->children[index]);
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
        words_close(&supervisor->children[i].words, false);
    if (supervisor->board)
        munmap(supervisor->board, board_size(supervisor->n));
    if (supervisor->board_fd >= 0)
        close(supervisor->board_fd);
    supervisor->board = NULL;
    supervisor->board_fd = -1;
}
