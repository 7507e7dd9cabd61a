/* SPDX-License-Identifier: MIT */
/* See connection.h.
 *
 * libmicrohttpd stops looking at a suspended connection. So each is also in our own epoll, for one thing
 * alone: that its client hangs up. Edge-triggered, it costs nothing until that happens. */

#include "gateway/connection.h"

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

struct connection *connection_new(struct connections *connections, int fd)
{
    struct connection *connection = calloc(1, sizeof *connection);
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    if (!connection)
        return NULL;
    connection->fd = fd;
    connection->since_ns = clock_ns();
    if (epoll_ctl(connections->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        free(connection);
        return NULL;
    }
    DL_APPEND(connections->list, connection);
    return connection;
}

void connection_free(struct connections *connections, struct connection *connection)
{
    if (!connection)
        return;
    epoll_ctl(connections->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
    DL_DELETE(connections->list, connection);
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

void connection_answered(struct connection *connection)
{
    connection->used = true;
    connection->bytes_used = look_up(connection).tcpi_bytes_received;
    connection->exchange = NULL;
    connection->since_ns = clock_ns();
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
            log_info("%s: no whole request within %u s: the connection is closed", connection->exchange->peer,
                     seconds);
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
