/* SPDX-License-Identifier: MIT */
#include "common/system/socket_news.h"

#include <stddef.h>

#include <zmq.h>

int socket_news_init(void *socket, struct socket_news *ret_news)
{
    int fd;
    size_t len = sizeof fd;
    if (zmq_getsockopt(socket, ZMQ_FD, &fd, &len) < 0)
        return -errno;
    *ret_news = (struct socket_news){.fd = fd, .look = true};
    return 0;
}

void socket_news_ask(void *socket, struct socket_news *news)
{
    int events;
    size_t len = sizeof events;
    news->look = zmq_getsockopt(socket, ZMQ_EVENTS, &events, &len) < 0 || (events & ZMQ_POLLIN);
}
