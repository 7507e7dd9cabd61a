/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CONNECTION_H
#define GATEWAY_CONNECTION_H

/* The connections of clients, beside what libmicrohttpd keeps of them: whose exchange runs on each, since
 * when a request is awaited, and whether the client has gone while nothing was read from it or written to it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "gateway/exchange.h"

struct connection {
    struct connection *next, *prev; /* utlist */
    int fd;                         /* libmicrohttpd's */
    uint64_t since_ns;              /* a request is awaited since then; 0: one is being answered */
    bool used;                      /* a request was answered on it */
    uint64_t bytes_used;            /* received up to the end of the last one; with TLS, of its records */
    struct exchange *exchange;      /* NULL: between two */
};

struct connections {
    int epoll_fd; /* where they are watched */
    struct connection *list;
    uint64_t looked_ns;
    uint64_t retired_ns; /* no others come since then; 0: they do */
};

/* A client connected. NULL when memory is short. */
struct connection *connection_new(struct connections *connections, int fd);
void connection_free(struct connections *connections, struct connection *connection);

/* A request on it has been answered: the next one is awaited. */
void connection_answered(struct connection *connection);

/* Its client has shut down the connection, or half of it: whoever closes while an answer is made for him does
 * not want it any more. */
void connection_hung_up(struct connection *connection);

/* Ends those on which no whole request has come for so long. Looks at most once a second, and more often at
 * retired ones. */
void connections_expire(struct connections *connections, uint64_t now, uint32_t seconds);

/* No others come: those on which nothing is asked end soon, and the rest with their answers, which
 * connections_expire sees to from now on. */
void connections_retire(struct connections *connections, uint64_t now);

/* Tells every exchange that its client is gone. */
void connections_lose_all(struct connections *connections);

#endif
