/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_SOCKET_NEWS_H
#define COMMON_SYSTEM_SOCKET_NEWS_H

/* Tells when to receive from a libzmq socket.
 *
 * Asking libzmq costs two system calls per socket, with zmq_poll or with a receive that finds nothing; a
 * process with a dozen sockets that wakes for every token would do little else. One poll() of the sockets'
 * descriptors (ZMQ_FD) tells the same. But a descriptor is edge-triggered: it signals only news since the
 * socket was found empty, and any use of the socket may clear it unnoticed. So:
 *
 *     news.look = true;                          whenever the socket was used other than to receive
 *     poll(items, n, a.look || b.look ? 0 : ms);
 *     socket_news_polled(&news, &item);
 *     while (news.look && ...receive...)         until nothing is left
 *     socket_news_over(&news);                   then, and only then
 *
 * A send that is retried while there is no room would keep `look` true: call socket_news_ask after it.
 *
 * (ZMQ_FD in zmq_getsockopt(3).) */

#include <errno.h>
#include <poll.h>
#include <stdbool.h>

struct socket_news {
    int fd;
    bool look; /* there may be a message, whatever the descriptor says */
};

/* For a new socket, with `look` set. 0 or -errno. */
int socket_news_init(void *socket, struct socket_news *ret_news);

/* Call it after a failed receive, before errno changes: nothing is left, unless a signal interrupted the
 * receive, which may already have cleared the descriptor. */
static inline void socket_news_over(struct socket_news *news)
{
    news->look = errno == EINTR;
}

/* Asks the socket itself. */
void socket_news_ask(void *socket, struct socket_news *news);

static inline struct pollfd socket_news_item(const struct socket_news *news)
{
    return (struct pollfd){.fd = news->fd, .events = POLLIN};
}

static inline void socket_news_polled(struct socket_news *news, const struct pollfd *item)
{
    news->look |= item->revents != 0;
}

#endif
