/* SPDX-License-Identifier: MIT */
/* The broker as a child.
 *
 *     started ──serves──▶ serves ──killed──▶ started again, at once unless it keeps dying
 *        │                   │ └──told to leave──▶ ends ──▶ the next one, on trial
 *        └───ends by itself──┴──▶ the pool ends, with its status
 *
 * A broker whose loop has stopped is killed, which loses nothing: the next one takes over the vault. A broker
 * on trial, at the end of a reload, that does not start or stops does not end the pool: this process runs a
 * program that can be the broker too, whatever is at the path by now. */

#include "supervisor/broker_child.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "supervisor/children/launch.h"
#include "supervisor/orders.h"

#define AT_ONCE     3                     /* deaths of a broker in a row before the next one is waited for */
#define STEADY_NS   CLOCK_NS_PER_S        /* of a broker: what it died of was not what the one before left */
#define CHANGE_NS   (10 * CLOCK_NS_PER_S) /* and for one that was told to leave */
#define OWN_PROGRAM "/proc/self/exe"

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

void broker_child_take_orders(struct supervision *self)
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

void broker_child_tell_place(struct supervision *self, struct place *place)
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
void broker_child_tell(struct supervision *self)
{
    if (!self->welcomed && self->link >= 0)
        tell_welcome(self);
    if (!self->welcomed)
        return;
    for (uint32_t i = 0; i < self->places.n; i++)
        broker_child_tell_place(self, &self->places.places[i]);
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

bool broker_child_has_news(const struct supervision *self)
{
    bool more = !self->welcomed || (self->signals > 0 && !self->signals_told) ||
                self->gateway_told != self->gateway.current.pid ||
                (self->change == BROKER_LEAVING && !self->leave_told);
    for (uint32_t i = 0; i < self->places.n; i++)
        more |= self->places.places[i].changed;
    return self->link >= 0 && more;
}

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

void broker_child_start(struct supervision *self)
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
        r = launch_broker(self->use_own ? OWN_PROGRAM : self->program, self->options, self->began_ns, fds,
                          4 + self->places.n, &self->broker, &err);
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

/* Its end by itself is the end of the pool; whatever else ended it, it is started again. */
void broker_child_ended(struct supervision *self, int status)
{
    broker_child_take_orders(self); /* its last ones */
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
        supervisor_end(self, WIFEXITED(status) && !self->failed ? WEXITSTATUS(status) : EXIT_FAILURE);
        return;
    }
    bool again = restart_died(&self->restart, STEADY_NS, self->now, &self->start_at);
    log_error("the broker %s%s", how, again ? ": restarting it" : " repeatedly: giving up");
    if (!again)
        supervisor_end(self, EXIT_FAILURE);
    else if (self->restart.waits <= AT_ONCE)
        self->start_at = self->now;
    if (again && self->serving)
        self->change = BROKER_ON_TRIAL; /* who knows what stands at its path by now */
}

/* The next boot number is fetched before there is no broker: a disk may be full. */
void broker_child_replace(struct supervision *self)
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
void broker_child_watch(struct supervision *self)
{
    bool awaited = self->restart.ready_ns > 0 || self->change == BROKER_ON_TRIAL;
    uint32_t most_ms = awaited ? STALL_BROKER_MS : STALL_LOADING_MS;
    uint64_t turns = atomic_load_explicit(&self->turns->steps, memory_order_relaxed);
    if (self->broker == 0 || self->stalled || !stall_check(&self->stall, true, turns, most_ms, self->now))
        return;
    self->stalled = true;
    kill(self->broker, SIGKILL);
}
