/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_SOCKET_NEWS_H
#define COMMON_SYSTEM_SOCKET_NEWS_H

/* When to look into a libzmq socket for messages.
 *
 * Asking libzmq costs two system calls for each socket and question, be it zmq_poll or a receive that finds
 * nothing; a process with a dozen sockets that wakes for every token does little else. The descriptors of
 * the sockets (ZMQ_FD) tell the same in one poll() of all of them. But a descriptor tells only of what is new
 * since the socket was found empty, and any use of the socket may take the news off it unseen. So:
 *
 *     news.look = true;                          whenever the socket was used otherwise than to receive
 *     poll(items, n, a.look || b.look ? 0 : ms);
 *     socket_news_polled(&news, &item);
 *     while (news.look && ...receive...)         until there is nothing
 *     socket_news_over(&news);                   then, and only then
 *
 * What is sent again and again while there is no room would keep `look` true: socket_news_ask after it.
 *
 * (ZMQ_FD in zmq_getsockopt(3).) */

#include <errno.h>
#include <poll.h>
#include <stdbool.h>

struct socket_news {
    int fd;
    bool look; /* there may be a message, whatever the descriptor says */
};

/* Of a new socket, into which to look. 0 or -errno. */
int socket_news_init(void *socket, struct socket_news *ret_news);

/* After a receive that failed, before errno changes: there is nothing, unless a signal interrupted it, which
 * may already have taken the news off the descriptor. */
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
