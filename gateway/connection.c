/* SPDX-License-Identifier: MIT */
/* See connection.h.
 *
 * libmicrohttpd stops looking at a suspended connection. So each is also in our own epoll, for one thing
 * alone: that its client hangs up. Edge-triggered, it costs nothing until that happens. */

#include "gateway/connection.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/log.h"

#include <utlist.h>

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

void connection_hung_up(struct connection *connection)
{
    if (connection->exchange)
        exchange_lost(connection->exchange);
}

void connections_expire(struct connections *connections, uint64_t now, uint32_t seconds)
{
    struct connection *connection;
    if (now - connections->looked_ns < CLOCK_NS_PER_S)
        return;
    connections->looked_ns = now;
    DL_FOREACH(connections->list, connection)
    {
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
