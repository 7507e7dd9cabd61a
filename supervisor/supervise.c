/* SPDX-License-Identifier: MIT */
/* The loop of the supervising process.
 *
 * It owns what must outlive every other process: the run directory's lock, the boot number, the board, the
 * processes. It sees no message of a client or a worker, so there is nothing in it that could be brought down
 * by one. One turn: wait for a signal, a line of a worker, an order of the broker, or the next time; then do
 * what that asks for; then tell the broker what has changed.
 *
 *     broker:   started ──serving──▶ serves ──killed──▶ started again, at once if that is not its habit
 *                  │                    │ └──told to leave──▶ ends ──▶ the next one, on trial
 *                  └──ends by itself────┴──▶ the pool ends, with its status
 *
 * A broker whose loop stands still is killed, which loses nothing. One on trial, at the end of a reload, that
 * does not come up or stands still is no reason to end the pool: the program that runs here is the broker
 * too, whatever stands at its path by now.
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
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/sockets.h"
#include "broker/books/vault.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/program/program.h"
#include "common/files/rundir.h"
#include "common/system/shm.h"
#include "supervisor/boot.h"
#include "supervisor/control.h"
#include "supervisor/children/devices.h"
#include "supervisor/children/gateway.h"
#include "supervisor/children/launch.h"
#include "supervisor/notify.h"
#include "supervisor/orders.h"
#include "supervisor/places.h"
#include "supervisor/reload.h"
#include "supervisor/wishes.h"

/* Room for what is bounded elsewhere: frames, and as much again for blocks that are larger than what lies in
 * them; and prompts, likewise. Pages are taken as they are needed. */
#define VAULT_BYTES(options) (((size_t)(options)->journal << 21) + ((size_t)256 << 20))

#define AT_ONCE       3                    /* deaths of a broker in a row before the next one is waited for */
#define STEADY_NS     CLOCK_NS_PER_S       /* of a broker: what it died of was not what the one before left */
#define TICK_NS       CLOCK_NS_PER_S       /* between looks at the progress of workers */
#define LATE_NS       CLOCK_NS_PER_S       /* a look so late means that we stood still ourselves */
#define LEAVE_NS      (5 * CLOCK_NS_PER_S) /* for a broker that was told to end at once */
#define CHANGE_NS     (10 * CLOCK_NS_PER_S) /* and for one that was told to leave */
#define OWN_PROGRAM   "/proc/self/exe"
#define LOCK_NS       (2 * CLOCK_NS_PER_S) /* for the last process of a pool that was killed */
#define LOCK_AGAIN_US 20000

enum broker_change {
    BROKER_KEPT,
    BROKER_LEAVING, /* it is told to, for the next one */
    BROKER_ON_TRIAL /* the next one, until it serves */
};

struct supervision {
    struct options *options;
    char program[PATH_MAX]; /* quern-broker */
    int signal_fd, lock_fd;
    int vault_fd; /* what a broker leaves to the next */
    int turns_fd; /* the broker's slot of the board: */
    struct board_slot *turns;
    uint64_t now;
    struct places places;
    struct gateway_child gateway;
    bool serving; /* some broker could be reached: workers may be started */

    pid_t broker;      /* 0: none */
    int link;          /* to the broker; -1: none */
    bool welcomed;     /* it was told who we are */
    uint64_t start_at; /* clock_ns, while there is none */
    struct restart restart;
    struct stall stall;
    bool stalled; /* killed by us, for that */
    enum broker_change change;
    bool leave_told;
    pid_t gateway_told; /* to the broker; 0 is what it takes for granted */
    uint64_t change_by; /* BROKER_LEAVING: when it is killed instead */
    bool use_own;       /* what stands at its path does not come up: we are started as the broker */

    struct control control;
    struct reload reload;
    int argc; /* our own line, which is read again for other settings */
    char **argv;
    uint32_t most_journal; /* what the shared memory for requests has room for */
    bool changes;          /* the reload under way is to other settings: */
    struct options before; /* those that are put back if it fails */
    struct notify notify;  /* the service manager, if one started us */
    struct notify_state manager_told;

    uint32_t signals; /* that asked us to end */
    bool signals_told;
    uint64_t leave_at; /* when a broker that was told to end at once is killed; 0: it was not */
    bool failed;       /* and it was told so for want of a gateway, not by a signal */
    struct boot boot;
    bool boot_is_new; /* no broker was told of it */
    uint64_t next_tick;
    bool ended; /* the pool has: */
    int status; /* exit status, or -errno */
};

/* ---- what is said between us ---- */

static void broker_serves(struct supervision *self)
{
    self->serving = true;
    restart_ready(&self->restart, self->now);
    if (self->change != BROKER_ON_TRIAL)
        return;
    self->change = BROKER_KEPT;
    if (self->reload.stage == RELOAD_BROKER)
        reload_broker_serves(&self->reload, &self->places, &self->gateway, &self->control, self->now);
}

static void take_orders(struct supervision *self)
{
    struct order order;
    while (self->link >= 0 && supervision_receive(self->link, &order, sizeof order) == 0)
        if (orders_take(&self->places, &order, self->now))
            broker_serves(self);
}

/* False when the broker has to read first. */
static bool tell(struct supervision *self, const struct news *news)
{
    return self->link >= 0 && supervision_send(self->link, news, sizeof *news) == 0;
}

static void tell_place(struct supervision *self, struct place *place)
{
    struct news news = {.kind = NEWS_PLACE, .version = SUPERVISION_VERSION, .place = place->record};
    if (place->changed && self->welcomed && tell(self, &news)) /* the welcome is the first of all */
        place->changed = false;
}

static void tell_welcome(struct supervision *self)
{
    struct news welcome = {.kind = NEWS_WELCOME,
                           .version = SUPERVISION_VERSION,
                           .welcome = {.boot = self->boot.number,
                                       .n_places = self->places.n,
                                       .board_version = BOARD_VERSION,
                                       .rundir_fd = self->lock_fd,
                                       .vault_fd = self->vault_fd,
                                       .turns_fd = self->turns_fd}};
    for (uint32_t i = 0; i < self->places.n; i++)
        welcome.welcome.slot_fds[i] = self->places.places[i].slot_fd;
    self->welcomed = tell(self, &welcome);
    if (self->welcomed)
        self->boot_is_new = false;
}

/* What the broker does not know yet. */
static void tell_changes(struct supervision *self)
{
    if (!self->welcomed && self->link >= 0)
        tell_welcome(self);
    if (!self->welcomed)
        return;
    for (uint32_t i = 0; i < self->places.n; i++)
        tell_place(self, &self->places.places[i]);
    const struct news end_news = {.kind = NEWS_END, .version = SUPERVISION_VERSION, .signals = self->signals};
    if (self->signals > 0 && !self->signals_told)
        self->signals_told = tell(self, &end_news);
    const struct news gateway_news = {.kind = NEWS_GATEWAY,
                                      .version = SUPERVISION_VERSION,
                                      .gateway_pid = (uint32_t)self->gateway.current.pid};
    if (self->gateway_told != self->gateway.current.pid && tell(self, &gateway_news))
        self->gateway_told = self->gateway.current.pid;
    const struct news leave_news = {.kind = NEWS_LEAVE, .version = SUPERVISION_VERSION};
    if (self->change == BROKER_LEAVING && !self->leave_told)
        self->leave_told = tell(self, &leave_news);
}

static bool has_more_to_tell(const struct supervision *self)
{
    bool more = !self->welcomed || (self->signals > 0 && !self->signals_told) ||
                self->gateway_told != self->gateway.current.pid ||
                (self->change == BROKER_LEAVING && !self->leave_told);
    for (uint32_t i = 0; i < self->places.n; i++)
        more |= self->places.places[i].changed;
    return self->link >= 0 && more;
}

/* ---- the broker ---- */

/* The program at its path does not come up. False when there is none to go back to. */
static bool take_back(struct supervision *self, const char *reason)
{
    if (self->change != BROKER_ON_TRIAL || self->use_own)
        return false;
    self->use_own = true;
    self->change = BROKER_KEPT;
    self->start_at = self->now;
    gateway_child_give_up_next(&self->gateway, "no broker was running");
    if (self->reload.stage != RELOAD_NONE)
        reload_failed(&self->reload, &self->control, "the new broker %.400s: restarting the old one", reason);
    else
        log_error("the new broker %s: restarting the old one", reason);
    return true;
}

static void start_broker(struct supervision *self)
{
    struct error err = {{0}};
    int pair[2] = {-1, -1};
    int r = self->serving && !self->boot_is_new ? boot_raise(&self->boot, self->options->rundir, &err) : 0;
    if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        r = error_set(&err, -errno, "socketpair: %s", strerror(errno));
    int fds[4 + SUPERVISION_PLACES_MAX] = {pair[1], self->lock_fd, self->vault_fd, self->turns_fd};
    for (uint32_t i = 0; i < self->places.n; i++)
        fds[4 + i] = self->places.places[i].slot_fd;
    if (r == 0)
        r = launch_broker(self->use_own ? OWN_PROGRAM : self->program, self->options, fds, 4 + self->places.n,
                          &self->broker, &err);
    close(pair[1]);
    if (r < 0) {
        close(pair[0]);
        if (take_back(self, "cannot be started"))
            return;
        log_error("the broker cannot be started: %s", err.text);
        self->start_at = self->now + CLOCK_NS_PER_S;
        return;
    }
    self->link = pair[0];
    self->welcomed = self->signals_told = self->leave_told = self->stalled = false;
    self->stall = (struct stall){0};
    self->gateway_told = 0;
    for (uint32_t i = 0; i < self->places.n; i++)
        self->places.places[i].changed = true;
}

static void end(struct supervision *self, int status)
{
    self->ended = true;
    self->status = status;
}

/* Its end by itself is the end of the pool; whatever else ended it, it is started again. */
static void broker_ended(struct supervision *self, int status)
{
    take_orders(self); /* its last ones */
    self->broker = 0;
    close(self->link);
    self->link = -1;
    char how[128];
    if (self->stalled)
        snprintf(how, sizeof how, "stalled and was killed");
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "ended with status %d", WEXITSTATUS(status));
    if (self->change == BROKER_LEAVING && self->signals < 2) {
        self->change = BROKER_ON_TRIAL;
        self->start_at = self->now;
        self->restart = (struct restart){0}; /* the next one has died of nothing, and does not serve yet */
        return;
    }
    bool its_own_fault = WIFEXITED(status) || self->stalled || self->reload.stage == RELOAD_BROKER;
    if (self->signals < 2 && its_own_fault && take_back(self, how))
        return;
    if (WIFEXITED(status) || self->signals > 1) {
        end(self, WIFEXITED(status) && !self->failed ? WEXITSTATUS(status) : EXIT_FAILURE);
        return;
    }
    bool again = restart_died(&self->restart, STEADY_NS, self->now, &self->start_at);
    log_error("the broker %s%s", how, again ? ": restarting it" : " repeatedly: giving up");
    if (!again)
        end(self, EXIT_FAILURE);
    else if (self->restart.waits <= AT_ONCE)
        self->start_at = self->now;
    if (again && self->serving)
        self->change = BROKER_ON_TRIAL; /* who knows what stands at its path by now */
}

/* The next boot number is fetched before there is no broker: a disk may be full. */
static void replace_broker(struct supervision *self)
{
    struct error err;
    if (boot_raise(&self->boot, self->options->rundir, &err) < 0 ||
        places_resize(&self->places, self->reload.n, &err) < 0) {
        reload_failed(&self->reload, &self->control, "%s", err.text);
        return;
    }
    self->options->workers = self->reload.n;
    self->boot_is_new = true;
    self->use_own = false;
    self->leave_told = false;
    self->change = self->broker > 0 ? BROKER_LEAVING : BROKER_ON_TRIAL;
    self->change_by = self->now + CHANGE_NS;
}

/* Its loop turns several times a second, whatever it has to do, and what it takes over from another one
 * counts as turns too. Only one that starts from nothing, or was taken back, has nobody waiting for it. */
static void watch_broker(struct supervision *self)
{
    bool awaited = self->restart.ready_ns > 0 || self->change == BROKER_ON_TRIAL;
    uint32_t most_ms = awaited ? STALL_BROKER_MS : STALL_LOADING_MS;
    uint64_t turns = atomic_load_explicit(&self->turns->steps, memory_order_relaxed);
    if (self->broker == 0 || self->stalled || !stall_check(&self->stall, true, turns, most_ms, self->now))
        return;
    self->stalled = true;
    kill(self->broker, SIGKILL);
}

/* As a second signal does, but for the exit status: the broker hears of it, and has nothing to complain of.
 */
static void end_for_want_of_a_gateway(struct supervision *self)
{
    if (self->broker == 0) {
        end(self, EXIT_FAILURE);
        return;
    }
    if (self->reload.stage != RELOAD_NONE)
        reload_failed(&self->reload, &self->control, "the pool ends because it has no gateway");
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
        broker_ended(self, status);
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

/* Why that cannot be done now; NULL: it can. */
static const char *reason_against(const struct supervision *self, enum control_kind kind)
{
    if (kind == CONTROL_RELOAD_GATEWAY && self->gateway.listen_fd < 0 && self->signals == 0)
        return "the pool serves no HTTP";
    return self->signals > 0                        ? "the pool was told to end"
           : !self->serving                         ? "the pool has not started yet"
           : self->reload.stage != RELOAD_NONE      ? reload_says_busy(&self->reload)
           : self->change != BROKER_KEPT            ? "the broker is being replaced"
           : access(self->options->model, R_OK) < 0 ? "the model file can no longer be read"
                                                    : NULL;
}

/* The settings from the file, of which all are taken or none. */
static int take_settings(struct supervision *self, uint32_t *ret_workers, struct error *err)
{
    static struct options next; /* large */
    const struct wishes_line line = {self->argc, self->argv, self->most_journal};
    int r = wishes_read_settings(&self->places, &line, &next, err);
    if (r < 0)
        return error_prefix(err, r, "nothing was changed");
    self->before = *self->options;
    *ret_workers = next.workers;
    next.workers = self->options->workers; /* until there are so many places */
    *self->options = next;
    self->changes = true;
    return 0;
}

/* Begins what a peer asks for, if it can be done. */
static int begin(struct supervision *self, const struct control_peer *peer, struct error *err)
{
    uint32_t n = self->places.n;
    int r = 0;
    if (peer->kind == CONTROL_RELOAD_GATEWAY) {
        reload_begin_gateway(&self->reload, &self->gateway, self->now);
        return 0;
    }
    if (peer->kind == CONTROL_RELOAD_CONFIG)
        r = take_settings(self, &n, err);
    if (peer->kind == CONTROL_SCALE && (r = wishes_check_scale(&self->places, peer->number, err)) == 0)
        n = peer->number;
    if (peer->kind == CONTROL_DRAIN || peer->kind == CONTROL_UNDRAIN) {
        n = peer->number;
        r = wishes_check_worker(&self->places, n, peer->kind == CONTROL_DRAIN, err);
    }
    if (r == 0)
        reload_begin(&self->reload, &self->places, peer->kind, n, self->now);
    return r;
}

/* A reload that failed leaves nothing behind: workers that were to go stay, and settings that were to come
 * are taken back, by another reload, which nobody waits for. */
static void take_back_settings(struct supervision *self)
{
    bool failed = self->reload.stage == RELOAD_NONE && self->reload.failed, changed = self->changes;
    if (self->reload.stage != RELOAD_NONE)
        return;
    self->changes = self->reload.failed = false;
    if (!failed || self->signals > 0)
        return;
    reload_put_back(&self->reload, &self->places, self->now);
    if (!changed)
        return;
    log_info("reload: restoring the old settings");
    uint32_t n = self->options->workers;
    *self->options = self->before;
    self->options->workers = n; /* places that there are */
    reload_begin(&self->reload, &self->places, CONTROL_RELOAD, self->before.workers, self->now);
}

static void take_wishes(struct supervision *self)
{
    struct control_peer *peer;
    while (control_take(&self->control, &peer)) {
        struct error err = {{0}};
        const char *against = reason_against(self, peer->kind);
        if (!against && begin(self, peer, &err) < 0)
            against = err.text;
        if (against)
            control_refuse(peer, against);
        else
            control_follow(peer);
    }
    if (reload_turn(&self->reload, &self->places, &self->gateway, &self->control, self->now))
        replace_broker(self);
    take_back_settings(self);
}

static void start_due(struct supervision *self)
{
    struct place *place;
    if (self->broker == 0 && self->start_at <= self->now)
        start_broker(self);
    while (self->serving && (place = places_due(&self->places, self->now))) {
        places_announce(&self->places, place);
        tell_place(self, place); /* before it can register */
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
    watch_broker(self);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What the service manager hears. It is ready once, when the first worker is, and stays so while workers come
 * and go: from then on requests are taken. */
static void tell_manager(struct supervision *self)
{
    struct notify_state *state = &self->manager_told;
    state->workers = self->places.n;
    state->workers_ready = 0;
    for (uint32_t i = 0; i < self->places.n; i++)
        state->workers_ready += self->places.places[i].record.state == PLACE_READY;
    state->ready |= state->workers_ready > 0;
    state->stopping = self->signals > 0;
    notify_turn(&self->notify, state, self->now);
}

static void wait_for_something(struct supervision *self)
{
    struct pollfd items[2 + SUPERVISION_PLACES_MAX + 1 + CONTROL_PEERS + GATEWAY_POLL];
    nfds_t n = 0;
    uint64_t due = earlier(self->next_tick, self->serving ? places_next(&self->places) : UINT64_MAX);
    bool held = false;
    items[n++] = (struct pollfd){.fd = self->signal_fd, .events = POLLIN};
    items[n++] =
        (struct pollfd){.fd = self->link, .events = (short)(POLLIN | (has_more_to_tell(self) ? POLLOUT : 0))};
    for (uint32_t i = 0; i < self->places.n; i++) {
        const struct worker_log *log = &self->places.places[i].log;
        held |= log->held;
        if (log->fd >= 0)
            items[n++] = (struct pollfd){.fd = log->fd, .events = POLLIN};
    }
    n += control_poll(&self->control, items + n);
    n += gateway_child_poll(&self->gateway, items + n);
    due = earlier(due, reload_due(&self->reload));
    due = earlier(due, notify_due(&self->notify, self->now));
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
        tell_changes(self);
        wait_for_something(self);
        places_read_logs(&self->places, self->now);
        take_orders(self);
        take_signals(self);
        take_wishes(self);
        tick(self);
        tell_manager(self);
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
    if (r == 0 && (r = vault_create(VAULT_BYTES(options), &self->vault_fd)) < 0)
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

int supervise(struct options *options, int argc, char **argv, struct error *err)
{
    static struct supervision supervision;
    struct supervision *self = &supervision;
    *self = (struct supervision){.options = options,
                                 .argc = argc,
                                 .argv = argv,
                                 .most_journal = options->journal,
                                 .signal_fd = -1,
                                 .lock_fd = -1,
                                 .vault_fd = -1,
                                 .turns_fd = -1,
                                 .link = -1,
                                 .control = {.fd = -1},
                                 .notify = {.fd = -1},
                                 .now = clock_ns(),
                                 .next_tick = clock_ns()};
    int r = prepare(self, err);
    if (r == 0) {
        run(self);
        r = self->status;
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
