/* SPDX-License-Identifier: MIT */
/* Any orders of a broker to its supervisor, among births and deaths of workers: none is read beyond its end,
 * and a process is told to end only if it is the one on the place and of the incarnation that the order
 * names, or all are.
 *
 * An input is records: a byte that says what happens (modulo 4: an order, twice; a worker is born wherever
 * one is due; one dies) and how long after the last (the rest, in quarters of a second), one how long the
 * record is, and its bytes: of an order its own, of a death the place and its status. There are no processes:
 * kill and waitpid are here. */

#include "tests/fuzz/driver.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "proto/supervision.h"
#include "supervisor/orders.h"

#define N 3

static struct places *places;
static struct board_slot slots[N];
static const struct order *under_way; /* NULL: nobody may be told to end */
static int link_ends[2];              /* the broker's, the supervisor's */
static uint64_t now;
static uint32_t last_pid, dead_pid;
static int dead_status;

/* ---- processes ---- */

static const struct place *place_of(pid_t pid)
{
    for (uint32_t i = 0; pid > 0 && i < N; i++)
        if (places->places[i].record.pid == (uint32_t)pid)
            return &places->places[i];
    abort();
}

int kill(pid_t pid, int number)
{
    const struct place_record *record = &place_of(pid)->record;
    if (!under_way || number != (under_way->kind == ORDER_KILL ? SIGKILL : SIGTERM))
        abort();
    if (under_way->kind == ORDER_KILL
            ? under_way->index != record->index || under_way->incarnation != record->incarnation
            : under_way->kind != ORDER_STOP)
        abort();
    return 0;
}

pid_t waitpid(pid_t pid, int *ret_status, int options)
{
    (void)options;
    if ((uint32_t)pid != dead_pid)
        return 0;
    *ret_status = dead_status;
    return pid;
}

/* ---- what happens ---- */

static void begin(void)
{
    static const struct options options = {.rundir = "/run/quern"};
    places = calloc(1, sizeof *places);
    if (!places || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, link_ends) < 0)
        abort();
    places->options = &options;
}

static void open_places(void)
{
    const struct options *options = places->options;
    memset(places, 0, sizeof *places);
    *places = (struct places){.options = options, .proven_fd = -1, .rundir_fd = -1, .store_fd = -1, .n = N};
    for (uint32_t i = 0; i < N; i++) {
        places->places[i].record.index = i;
        places->places[i].log.fd = -1;
        places->places[i].slot = &slots[i];
        places->places[i].slot_fd = -1;
        board_reset(&slots[i]);
    }
    now = CLOCK_NS_PER_S;
    last_pid = 0;
}

static void take_order(const struct order *order)
{
    under_way = order;
    if (orders_take(places, order, now) != (order->kind == ORDER_SERVING))
        abort();
    under_way = NULL;
}

static void give_order(const uint8_t *record, size_t len)
{
    struct order order = {.kind = UINT32_MAX};
    if (len == 0) /* that would be the end of the broker */
        return;
    if (send(link_ends[0], record, len, MSG_NOSIGNAL) != (ssize_t)len)
        abort();
    int r = supervision_receive(link_ends[1], &order, sizeof order);
    if (r != (len == sizeof order ? 0 : -EBADMSG) || (r == 0 && memcmp(&order, record, len) != 0))
        abort();
    if (r == 0)
        take_order(&order);
    if (supervision_receive(link_ends[1], &order, sizeof order) != -EAGAIN)
        abort();
}

static void bear(void)
{
    struct place *place;
    while ((place = places_due(places, now))) {
        places_announce(places, place);
        place->record.pid = ++last_pid;
    }
}

static void die(const uint8_t *record, size_t len)
{
    if (len < 3)
        return;
    dead_pid = places->places[record[0] % N].record.pid;
    dead_status = record[1] << 8 | (record[2] & 0x7f); /* its exit status, or the signal that killed it */
    places_reap(places, now);
    dead_pid = 0;
}

static void check(void)
{
    for (uint32_t i = 0; i < N; i++) {
        const struct place_record *record = &places->places[i].record;
        const bool lives = record->state == PLACE_STARTING || record->state == PLACE_READY;
        if (record->index != i || record->state >= PLACE_STATE_COUNT || lives != (record->pid > 0) ||
            (places->stopping && record->state == PLACE_WAITING))
            abort();
    }
    if (places->stopping && (places_due(places, UINT64_MAX) || places_next(places) != UINT64_MAX))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (!places)
        begin();
    open_places();
    bear();
    for (size_t at = 0; len - at >= 2;) {
        const unsigned what = data[at] % 4;
        const size_t n = data[at + 1] < len - at - 2 ? data[at + 1] : len - at - 2;
        now += data[at] / 4 * (CLOCK_NS_PER_S / 4);
        at += 2;
        if (what < 2)
            give_order(data + at, n);
        else if (what == 2)
            bear();
        else
            die(data + at, n);
        check();
        at += n;
    }
    return 0;
}
