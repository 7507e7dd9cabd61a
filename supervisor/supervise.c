/* SPDX-License-Identifier: MIT */
/* The loop of the supervising process.
 *
 * It owns what must outlive every other process: the run directory's lock, the boot number, the board, the
 * processes. It reads no message of a client or a worker, so none can crash it. One turn: wait for a signal,
 * a line of a worker, an order of the broker, or the next deadline; then act on it; then tell the broker what
 * has changed. The broker's life is in broker_child.c, what peers ask for in changes.c.
 *
 * Workers are started when the broker can be reached for the first time; a port in use is said once, and not
 * beside the progress of a model that loads for nothing. From then on they live on whatever becomes of the
 * broker.
 *
 * If this process is killed, the kernel tells the workers (PR_SET_PDEATHSIG), and the end of its connection
 * tells the broker. */

#include "supervisor/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/sockets.h"
#include "broker/books/vault.h"
#include "common/system/available.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/program/program.h"
#include "common/files/rundir.h"
#include "common/system/shm.h"
#include "supervisor/broker_child.h"
#include "supervisor/changes.h"
#include "supervisor/children/devices.h"
#include "supervisor/supervisor.h"

#define JOURNAL_PART 8 /* of the memory, where its limit follows from the workers */

#define TICK_NS       CLOCK_NS_PER_S       /* between looks at the progress of workers */
#define LATE_NS       CLOCK_NS_PER_S       /* a look so late means that we stood still ourselves */
#define LEAVE_NS      (5 * CLOCK_NS_PER_S) /* for a broker that was told to end at once */
#define LOCK_NS       (2 * CLOCK_NS_PER_S) /* for the last process of a pool that was killed */
#define LOCK_AGAIN_US 20000

/* ---- children that end ---- */

/* As a second signal does, but for the exit status: the broker hears of it, and has nothing to complain of.
 */
static void end_for_want_of_a_gateway(struct supervision *self)
{
    if (self->broker == 0) {
        supervisor_end(self, EXIT_FAILURE);
        return;
    }
    if (self->reload.stage != RELOAD_NONE)
        reload_failed(&self->reload, &self->control, "the pool ends because its gateway cannot run");
    gateway_child_stop(&self->gateway, SIGTERM); /* none is started any more */
    self->failed = true;
    self->signals += 2;
    self->signals_told = false;
    self->leave_at = self->now + LEAVE_NS;
}

static void reap(struct supervision *self)
{
    int status;
    places_reap(&self->places, self->now);
    if (self->broker > 0 && waitpid(self->broker, &status, WNOHANG) == self->broker)
        broker_child_ended(self, status);
    if (!gateway_child_reap(&self->gateway, self->now))
        end_for_want_of_a_gateway(self);
}

/* ---- one turn ---- */

static void take_signals(struct supervision *self)
{
    struct signalfd_siginfo info;
    while (read(self->signal_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        self->signals++;
        if (self->reload.stage != RELOAD_NONE)
            reload_failed(&self->reload, &self->control, "the pool was told to end");
        gateway_child_stop(&self->gateway, SIGTERM);
        self->signals_told = false;
        if (self->signals == 2)
            self->leave_at = self->now + LEAVE_NS;
    }
    reap(self);
}

static void start_due(struct supervision *self)
{
    struct place *place;
    if (self->broker == 0 && self->start_at <= self->now)
        broker_child_start(self);
    while (self->serving && (place = places_due(&self->places, self->now))) {
        places_announce(&self->places, place);
        broker_child_tell_place(self, place); /* before it can register */
        places_start(&self->places, place, self->now);
    }
    if (self->serving)
        gateway_child_turn(&self->gateway, self->now);
}

static void tick(struct supervision *self)
{
    if (self->leave_at > 0 && self->leave_at <= self->now && self->broker > 0)
        kill(self->broker, SIGKILL);
    if (self->change == BROKER_LEAVING && self->change_by <= self->now && self->broker > 0)
        kill(self->broker, SIGKILL);
    if (self->next_tick > self->now)
        return;
    if (self->now > self->next_tick + LATE_NS) {
        places_stood_still(&self->places, self->now);
        self->stall.since = self->now;
    }
    self->next_tick = self->now + TICK_NS;
    places_watch(&self->places, self->now);
    broker_child_watch(self);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What the service manager hears, and a fleet. The pool is ready once, when the first worker is, and stays so
 * while workers come and go: from then on requests are taken. */
static void tell_state(struct supervision *self)
{
    struct notify_state *state = &self->manager_told;
    state->workers = self->places.n;
    state->workers_ready = 0;
    for (uint32_t i = 0; i < self->places.n; i++)
        state->workers_ready += self->places.places[i].record.state == PLACE_READY;
    state->ready |= state->workers_ready > 0;
    state->stopping = self->signals > 0;
    notify_turn(&self->notify, state, self->now);
    member_turn(&self->member, state->ready, state->stopping, self->now);
}

static void wait_for_something(struct supervision *self)
{
    struct pollfd items[2 + SUPERVISION_PLACES_MAX + 1 + CONTROL_PEERS + GATEWAY_POLL + 1];
    nfds_t n = 0;
    uint64_t due = earlier(self->next_tick, self->serving ? places_next(&self->places) : UINT64_MAX);
    bool held = false;
    items[n++] = (struct pollfd){.fd = self->signal_fd, .events = POLLIN};
    items[n++] = (struct pollfd){.fd = self->link,
                                 .events = (short)(POLLIN | (broker_child_has_news(self) ? POLLOUT : 0))};
    for (uint32_t i = 0; i < self->places.n; i++) {
        const struct worker_log *log = &self->places.places[i].log;
        held |= log->held;
        if (log->fd >= 0)
            items[n++] = (struct pollfd){.fd = log->fd, .events = POLLIN};
    }
    if (self->check.program)
        items[n++] = (struct pollfd){.fd = self->check.fd, .events = POLLIN};
    n += control_poll(&self->control, items + n);
    n += gateway_child_poll(&self->gateway, items + n);
    due = earlier(due, reload_due(&self->reload));
    if (self->check.program)
        due = earlier(due, self->check.give_up_at);
    due = earlier(due, notify_due(&self->notify, self->now));
    due = earlier(due, member_due(&self->member, self->manager_told.ready, self->manager_told.stopping));
    if (self->broker == 0)
        due = earlier(due, self->start_at);
    if (self->serving)
        due = earlier(due, gateway_child_due(&self->gateway));
    if (self->leave_at > 0)
        due = earlier(due, self->leave_at);
    if (held) /* a line that waits to be passed on */
        due = earlier(due, self->now + WORKER_LOG_HOLD_MS * CLOCK_NS_PER_MS);
    uint64_t now = clock_ns();
    poll(items, n, due <= now ? 0 : (int)((due - now + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS));
    self->now = clock_ns();
}

static void run(struct supervision *self)
{
    while (!self->ended) {
        start_due(self);
        broker_child_tell(self);
        wait_for_something(self);
        places_read_logs(&self->places, self->now);
        broker_child_take_orders(self);
        take_signals(self);
        changes_turn(self);
        tick(self);
        tell_state(self);
    }
}

/* ---- start and end ---- */

/* Signals are taken in the loop, through a descriptor. */
static int take_over_signals(int *ret_fd, struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    *ret_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return *ret_fd < 0 ? error_set(err, -errno, "signalfd: %s", strerror(errno)) : 0;
}

/* The broker of a pool whose supervisor was killed keeps the lock for the moment that it takes to leave. */
static int lock(struct supervision *self, struct error *err)
{
    uint64_t until = clock_ns() + LOCK_NS;
    int r;
    while ((r = rundir_lock(self->options->rundir, &self->lock_fd, err)) == -EBUSY && clock_ns() < until)
        usleep(LOCK_AGAIN_US);
    return r;
}

/* To who named no model, and need not know of HTTP. */
static void say_what_is_served(const struct supervision *self)
{
    const struct options *options = self->options;
    log_info("no MODEL given: serving %s", options->model);
    if (self->gateway.listen_fd >= 0)
        log_info("chat with it at %s://%s/", options->http_tls_cert[0] ? "https" : "http",
                 self->gateway.address);
}

/* A missing file does not appear by itself, and rights do not change; an error of the disk may pass. */
static int check_model(const char *path, struct error *err)
{
    if (access(path, R_OK) == 0)
        return 0;
    int r = -errno;
    bool permanent = r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ELOOP || r == -ENAMETOOLONG;
    return error_set(err, permanent ? PROGRAM_EXIT_PERMANENT : r, "%s: %s", path, strerror(-r));
}

static int prepare(struct supervision *self, struct error *err)
{
    struct options *options = self->options;
    char worker[PATH_MAX];
    int r = take_over_signals(&self->signal_fd, err);
    if (r == 0)
        r = notify_init(&self->notify, err);
    if (r == 0)
        r = check_model(options->model, err);
    if (r == 0)
        r = member_init(&self->member, options, err);
    if (r == 0)
        r = program_sibling("quern-broker", self->program, err);
    if (r == 0)
        r = gateway_child_init(&self->gateway, options, err);
    if (r == 0)
        r = rundir_prepare(options->rundir, err);
    if (r == 0)
        r = lock(self, err);
    if (r == 0)
        r = gateway_child_listen(&self->gateway, err);
    if (r == 0 && options->model_is_default)
        say_what_is_served(self);
    if (r == 0)
        r = boot_raise(&self->boot, options->rundir, err);
    if (r == 0)
        sockets_clear(self->lock_fd);
    if (r == 0 &&
        (r = vault_create(journal_vault_bytes((uint64_t)self->most_journal << 20), &self->vault_fd)) < 0)
        error_set(err, r, "shared memory for requests: %s", shm_reason(r));
    if (r == 0 && (r = board_create(&self->turns_fd, &self->turns)) < 0)
        error_set(err, r, "shared memory for the board: %s", shm_reason(r));
    if (r == 0)
        r = control_open(&self->control, options->rundir, err);
    if (r == 0)
        r = program_sibling("quern-worker", worker, err);
    if (r == 0)
        options->workers = devices_workers(options, worker, self->signal_fd);
    if (r == 0)
        r = places_init(&self->places, options, self->lock_fd, self->boot.number, err);
    return r;
}

/* MiB that the journal may have while the pool runs. */
static uint32_t most_journal(const struct options *options)
{
    const uint64_t least = JOURNAL_LIMIT_BYTES >> 20;
    uint64_t most = least;
    struct available available;
    struct rlimit files; /* it counts for shared memory too */
    if (options->journal > 0)
        return options->journal;
    if (available_read("", &available) == 0)
        most = (available.total >> 20) / JOURNAL_PART;
    if (getrlimit(RLIMIT_FSIZE, &files) == 0 && journal_limit_in(files.rlim_cur) >> 20 < most)
        most = journal_limit_in(files.rlim_cur) >> 20;
    if (most > OPTIONS_JOURNAL_MAX_MIB)
        most = OPTIONS_JOURNAL_MAX_MIB;
    return (uint32_t)(most < least ? least : most);
}

int supervise(struct options *options, int argc, char **argv, struct error *err)
{
    static struct supervision supervision;
    struct supervision *self = &supervision;
    *self = (struct supervision){.options = options,
                                 .argc = argc,
                                 .argv = argv,
                                 .most_journal = most_journal(options),
                                 .signal_fd = -1,
                                 .lock_fd = -1,
                                 .vault_fd = -1,
                                 .turns_fd = -1,
                                 .link = -1,
                                 .control = {.fd = -1},
                                 .notify = {.fd = -1},
                                 .now = clock_ns(),
                                 .began_ns = clock_ns(),
                                 .next_tick = clock_ns()};
    int r = prepare(self, err);
    if (r == 0) {
        run(self);
        r = self->status;
        member_leave(&self->member);
        gateway_child_end(&self->gateway);
        places_stop(&self->places, SIGKILL);
        places_deinit(&self->places);
        sockets_clear(self->lock_fd); /* of a broker that had to be killed */
    }
    control_close(&self->control, self->lock_fd);
    notify_deinit(&self->notify);
    self->turns = board_unmap(self->turns);
    if (self->turns_fd >= 0)
        close(self->turns_fd);
    if (self->vault_fd >= 0)
        close(self->vault_fd);
    if (self->lock_fd >= 0)
        close(self->lock_fd);
    if (self->signal_fd >= 0)
        close(self->signal_fd);
    return r;
}
