/* SPDX-License-Identifier: MIT */
/* See connection.h.
 *
 * libmicrohttpd stops looking at a suspended connection. So each is also in our own epoll, for one thing
 * alone: that its client hangs up. Edge-triggered, it costs nothing until that happens. */

#include "gateway/core/connection.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/log.h"

#include <utlist.h>

#define LOOK_NS         CLOCK_NS_PER_S
#define LOOK_RETIRED_NS (CLOCK_NS_PER_S / 10)
#define IDLE_NS         CLOCK_NS_PER_S       /* of a connection between two requests */
#define SILENT_NS       (5 * CLOCK_NS_PER_S) /* of one that is new or amid a head: its client may be far */
#define YOUNG_NS        CLOCK_NS_PER_S       /* what is younger than that may come yet … */
#define FLOOD           4                    /* … unless one of so many places waits for the same thing */
#define SAY_NS          (10 * CLOCK_NS_PER_S)
#define MARGIN          16 /* one place in so many is kept free for those that come at once … */
#define MOST_MARGIN     64 /* … but no more places */

/* ---- room ---- */

static void leave_queue(struct connection *connection)
{
    struct connections *connections = connection->connections;
    if (!connection->queued)
        return;
    connection->queued = false;
    connections->queued[connection->awaits]--;
    DL_DELETE2(connections->queues[connection->awaits], connection, queue_prev, queue_next);
}

static void join_queue(struct connection *connection, enum connection_awaits awaits, uint64_t now)
{
    struct connections *connections = connection->connections;
    leave_queue(connection);
    connection->awaits = awaits;
    connection->awaits_ns = now;
    connection->queued = true;
    connections->queued[awaits]++;
    DL_APPEND2(connections->queues[awaits], connection, queue_prev, queue_next);
}

/* Whether there is to be a line in the log: one in a while. */
static bool may_say(struct connections *connections, uint64_t now)
{
    if (connections->said_ns && now - connections->said_ns < SAY_NS)
        return false;
    connections->said_ns = now;
    return true;
}

/* The queue that is too long for what clients do that mean well: that of a flood. */
static enum connection_awaits longest_queue(const struct connections *connections)
{
    enum connection_awaits longest = CONNECTION_AWAITS;
    unsigned most = connections->most / FLOOD;
    for (enum connection_awaits i = 0; i < CONNECTION_AWAITS; i++)
        if (connections->queued[i] > most) {
            longest = i;
            most = connections->queued[i];
        }
    return longest;
}

/* The one that goes for `comer`; NULL: all are of use, or may soon be. */
static struct connection *least_useful(const struct connections *connections, const struct connection *comer,
                                       uint64_t now)
{
    struct connection *head = connections->queues[CONNECTION_FIRST_HEAD];
    struct connection *idle = connections->queues[CONNECTION_NEXT_HEAD];
    struct connection *body = connections->queues[CONNECTION_BODY];
    enum connection_awaits longest = longest_queue(connections);
    if (head && now - head->awaits_ns >= YOUNG_NS)
        return head;
    if (longest < CONNECTION_AWAITS && connections->queues[longest] != comer)
        return connections->queues[longest];
    if (idle)
        return idle;
    return body && now - body->awaits_ns >= YOUNG_NS ? body : NULL;
}

static void end_one(struct connections *connections, const struct connection *comer, uint64_t now)
{
    struct connection *goes = least_useful(connections, comer, now);
    if (!goes)
        return;
    if (may_say(connections, now))
        log_warn("%u of %u connections are in use: closing the oldest idle ones for new ones", connections->n,
                 connections->most);
    connections->counters->connections_ended++;
    connection_whole(goes);
    shutdown(goes->fd, SHUT_RDWR);
}

/* Places that are kept free. */
static unsigned margin_of(const struct connections *connections)
{
    unsigned margin = connections->most / MARGIN;
    return margin < 1 ? 1 : margin < MOST_MARGIN ? margin : MOST_MARGIN;
}

static void make_room(struct connections *connections, const struct connection *comer)
{
    if (connections->n + margin_of(connections) > connections->most)
        end_one(connections, comer, comer->since_ns);
}

/* Where every place is taken nobody comes, for whom make_room would be called: those that were too young to
 * be given up then are not any more. */
static void make_room_again(struct connections *connections, uint64_t now)
{
    if (connections->n < connections->most)
        return;
    for (unsigned i = 0; i < margin_of(connections); i++)
        end_one(connections, NULL, now);
}

bool connections_admit(struct connections *connections, const struct sockaddr *from)
{
    if (addresses_have_room(&connections->addresses, from))
        return true;
    if (may_say(connections, clock_ns()))
        log_warn("an address has %u connections, the maximum: refusing more from it",
                 connections->addresses.most);
    connections->counters->connections_refused++;
    return false;
}

struct connection *connection_new(struct connections *connections, int fd, const struct sockaddr *from)
{
    struct connection *connection = calloc(1, sizeof *connection);
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    if (!connection)
        return NULL;
    connection->connections = connections;
    connection->fd = fd;
    connection->since_ns = clock_ns();
    if (epoll_ctl(connections->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        free(connection);
        return NULL;
    }
    DL_APPEND(connections->list, connection);
    connections->n++;
    connection->address = addresses_take(&connections->addresses, from);
    join_queue(connection, CONNECTION_FIRST_HEAD, connection->since_ns);
    make_room(connections, connection);
    return connection;
}

void connection_free(struct connections *connections, struct connection *connection)
{
    if (!connection)
        return;
    epoll_ctl(connections->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
    DL_DELETE(connections->list, connection);
    leave_queue(connection);
    addresses_release(&connections->addresses, connection->address);
    connections->n--;
    free(connection);
}

/* What the kernel knows of it; zeros where that is nothing. */
static struct tcp_info look_up(const struct connection *connection)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
        return (struct tcp_info){.tcpi_last_data_recv = UINT32_MAX};
    return info;
}

void connection_asked(struct connection *connection, struct exchange *exchange)
{
    connection->exchange = exchange;
    join_queue(connection, CONNECTION_BODY, exchange->begun_ns);
}

void connection_whole(struct connection *connection)
{
    connection->since_ns = 0;
    leave_queue(connection);
}

void connection_answered(struct connection *connection)
{
    connection->used = true;
    connection->bytes_used = look_up(connection).tcpi_bytes_received;
    connection->exchange = NULL;
    connection->since_ns = clock_ns();
    join_queue(connection, CONNECTION_NEXT_HEAD, connection->since_ns);
}

void connection_hung_up(struct connection *connection)
{
    if (connection->exchange)
        exchange_lost(connection->exchange);
}

void connections_retire(struct connections *connections, uint64_t now)
{
    connections->retired_ns = now;
}

/* Whether nobody misses it who is told in the same moment that no others come: nothing has come on it for a
 * while, nor lies there. libmicrohttpd tells of a request when its head is whole, so it is the kernel that
 * knows of half a head, which gets the longer while, and so do handshakes of TLS. A client that asks right
 * then sees its connection end, which whoever keeps connections has to expect; the while is for those that
 * ask one thing after the other. */
static bool is_idle(const struct connections *connections, const struct connection *connection, uint64_t now)
{
    char byte;
    uint64_t from =
        connection->since_ns > connections->retired_ns ? connection->since_ns : connections->retired_ns;
    if (connections->retired_ns == 0 || connection->exchange || connection->since_ns == 0 ||
        now - from < IDLE_NS)
        return false;
    const struct tcp_info info = look_up(connection);
    bool between = connection->used && info.tcpi_bytes_received == connection->bytes_used;
    uint64_t least = between ? IDLE_NS : SILENT_NS;
    return now - from >= least && info.tcpi_last_data_recv * CLOCK_NS_PER_MS >= least &&
           recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

void connections_expire(struct connections *connections, uint64_t now, uint32_t seconds)
{
    struct connection *connection;
    if (now - connections->looked_ns < (connections->retired_ns ? LOOK_RETIRED_NS : LOOK_NS))
        return;
    connections->looked_ns = now;
    make_room_again(connections, now);
    DL_FOREACH(connections->list, connection)
    {
        if (is_idle(connections, connection, now)) {
            connection->since_ns = 0;
            shutdown(connection->fd, SHUT_RDWR);
            continue;
        }
        if (connection->since_ns == 0 || now < connection->since_ns ||
            now - connection->since_ns < seconds * CLOCK_NS_PER_S)
            continue;
        if (connection->exchange)
            log_info("%s: no complete request within %u s: closing the connection",
                     connection->exchange->peer, seconds);
        connection->since_ns = 0;
        shutdown(connection->fd, SHUT_RDWR);
    }
}

void connections_lose_all(struct connections *connections)
{
    struct connection *connection;
    DL_FOREACH(connections->list, connection)
    {
        if (connection->exchange)
            exchange_lost(connection->exchange);
    }
}
