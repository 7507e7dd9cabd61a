/* SPDX-License-Identifier: MIT */
/* News and orders.
 *
 * A record of a place says what it is like now. What has happened since the last one is seen by comparing the
 * two: another incarnation, or none, means that the one before has died. Orders are kept until they could be
 * given, each at most once for an incarnation, so a supervisor that stands still holds up nothing. */

#include "broker/links/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/utf8.h"

#define WELCOME_MS 5000

/* All descriptors are closed, whatever comes of it. */
static int map_board(struct supervisor *supervisor, const struct news *news, struct error *err)
{
    int r = board_map(news->welcome.turns_fd, &supervisor->turns);
    close(news->welcome.turns_fd);
    for (uint32_t i = 0; i < supervisor->n; i++) {
        if (r == 0)
            r = board_map_readonly(news->welcome.slot_fds[i], &supervisor->slots[i]);
        close(news->welcome.slot_fds[i]);
    }
    return r < 0 ? error_set(err, r, "the board: %s", strerror(-r)) : 0;
}

int supervisor_init(struct supervisor *supervisor, int fd, uint32_t n, struct error *err)
{
    *supervisor = (struct supervisor){.fd = fd, .rundir_fd = -1, .vault_fd = -1};
    struct pollfd item = {.fd = fd, .events = POLLIN};
    struct news news;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    poll(&item, 1, WELCOME_MS);
    int r = supervision_receive(fd, &news, sizeof news);
    if (r == 0 && (news.kind != NEWS_WELCOME || news.version != SUPERVISION_VERSION ||
                   news.welcome.board_version != BOARD_VERSION))
        r = -EBADMSG;
    if (r == -EBADMSG)
        return error_set(err, r, "the supervisor is of a different version: restart the pool");
    if (r < 0)
        return error_set(err, r, "the supervisor: %s", strerror(-r));
    if (news.welcome.n_places != n || n > WORKER_MAX)
        return error_set(err, -EINVAL, "the supervisor reports an invalid number of places for workers: %u",
                         news.welcome.n_places);
    supervisor->n = n;
    supervisor->boot = news.welcome.boot;
    supervisor->rundir_fd = news.welcome.rundir_fd;
    fcntl(supervisor->rundir_fd, F_SETFD, FD_CLOEXEC);
    supervisor->vault_fd = news.welcome.vault_fd;
    fcntl(supervisor->vault_fd, F_SETFD, FD_CLOEXEC);
    return map_board(supervisor, &news, err);
}

/* ---- news ---- */

static bool has_process(const struct place_record *record)
{
    return record->state == PLACE_STARTING || record->state == PLACE_READY;
}

void supervisor_expect(struct supervisor *supervisor, uint32_t index, uint32_t incarnation)
{
    struct supervisor_place *place = &supervisor->places[index];
    place->record.state = PLACE_READY;
    place->record.incarnation = incarnation;
    place->expected = true;
}

static bool take_place(struct supervisor *supervisor, const struct place_record *record,
                       struct supervisor_change *ret_change)
{
    if (record->index >= supervisor->n || record->state >= PLACE_STATE_COUNT)
        return false;
    struct supervisor_place *place = &supervisor->places[record->index];
    struct place_record *known = &place->record;
    bool another = record->incarnation != known->incarnation;
    struct supervisor_change change = {
        .index = record->index,
        .died = has_process(known) && (another || !has_process(record)),
        .born = has_process(record) && (another || !has_process(known) || place->expected),
    };
    place->expected = false;
    /* A start that failed between two looks is a death too. */
    change.died |= another && !has_process(record);
    if (another || !has_process(record))
        place->ready_due = place->kill_due = false;
    *known = *record;
    known->link[sizeof known->link - 1] = 0;
    known->stream[sizeof known->stream - 1] = 0;
    known->reason[sizeof known->reason - 1] = 0;
    utf8_clean(known->reason); /* a path may be in it, whose bytes no message takes */
    *ret_change = change;
    return change.died || change.born;
}

bool supervisor_take(struct supervisor *supervisor, struct supervisor_change *ret_change)
{
    struct news news;
    int r;
    while (!supervisor->gone && (r = supervision_receive(supervisor->fd, &news, sizeof news)) != -EAGAIN) {
        if (r == -EPIPE)
            supervisor->gone = true;
        else if (r == 0 && news.kind == NEWS_END)
            supervisor->signals = news.signals;
        else if (r == 0 && news.kind == NEWS_LEAVE)
            supervisor->leave = true;
        else if (r == 0 && news.kind == NEWS_GATEWAY)
            supervisor->gateway_pid = news.gateway_pid;
        else if (r == 0 && news.kind == NEWS_PLACE && take_place(supervisor, &news.place, ret_change))
            return true;
    }
    return false;
}

/* ---- orders ---- */

/* True when it was given. */
static bool give(const struct supervisor *supervisor, enum order_kind kind, uint32_t index,
                 uint32_t incarnation)
{
    const struct order order = {.kind = kind, .index = index, .incarnation = incarnation};
    return supervision_send(supervisor->fd, &order, sizeof order) == 0;
}

void supervisor_turn(struct supervisor *supervisor)
{
    atomic_fetch_add_explicit(&supervisor->turns->steps, 1, memory_order_relaxed);
}

void supervisor_flush(struct supervisor *supervisor)
{
    if (supervisor->serving_due)
        supervisor->serving_due = !give(supervisor, ORDER_SERVING, 0, 0);
    if (supervisor->stop_due)
        supervisor->stop_due = !give(supervisor, ORDER_STOP, 0, 0);
    for (uint32_t i = 0; i < supervisor->n; i++) {
        struct supervisor_place *place = &supervisor->places[i];
        if (place->ready_due)
            place->ready_due = !give(supervisor, ORDER_READY, i, place->record.incarnation);
        if (place->kill_due)
            place->kill_due = !give(supervisor, ORDER_KILL, i, place->record.incarnation);
    }
}

void supervisor_serving(struct supervisor *supervisor)
{
    supervisor->serving_due = true;
    supervisor_flush(supervisor);
}

void supervisor_ready(struct supervisor *supervisor, uint32_t index)
{
    struct supervisor_place *place = &supervisor->places[index];
    place->ready_due = place->record.state == PLACE_STARTING;
    supervisor_flush(supervisor);
}

void supervisor_kill(struct supervisor *supervisor, uint32_t index)
{
    struct supervisor_place *place = &supervisor->places[index];
    place->kill_due = has_process(&place->record);
    supervisor_flush(supervisor);
}

void supervisor_stop(struct supervisor *supervisor)
{
    supervisor->stop_due = true;
    supervisor_flush(supervisor);
}

/* ---- what is known ---- */

uint32_t supervisor_alive(const struct supervisor *supervisor)
{
    uint32_t alive = 0;
    for (uint32_t i = 0; i < supervisor->n; i++)
        alive += has_process(&supervisor->places[i].record);
    return alive;
}

bool supervisor_all_failed(const struct supervisor *supervisor)
{
    for (uint32_t i = 0; i < supervisor->n; i++)
        if (supervisor->places[i].record.state != PLACE_FAILED)
            return false;
    return true;
}

bool supervisor_all_unfit(const struct supervisor *supervisor)
{
    for (uint32_t i = 0; i < supervisor->n; i++)
        if (!supervisor->places[i].record.unfit)
            return false;
    return supervisor_all_failed(supervisor);
}

void supervisor_snapshot(const struct supervisor *supervisor, uint32_t index,
                         struct board_snapshot *ret_snapshot, uint64_t *ret_steps)
{
    const struct board_slot *slot = supervisor->slots[index];
    if (board_read(slot, ret_snapshot) < 0)
        *ret_snapshot = (struct board_snapshot){0};
    *ret_steps = atomic_load(&slot->steps);
}

void supervisor_deinit(struct supervisor *supervisor)
{
    supervisor->turns = board_unmap(supervisor->turns);
    for (uint32_t i = 0; i < supervisor->n; i++)
        supervisor->slots[i] = board_unmap(supervisor->slots[i]);
    if (supervisor->rundir_fd >= 0)
        close(supervisor->rundir_fd);
    if (supervisor->vault_fd >= 0)
        close(supervisor->vault_fd);
    supervisor->rundir_fd = supervisor->vault_fd = -1;
}
