/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_CONNECTION_H
#define GATEWAY_CORE_CONNECTION_H

/* The connections of clients, in addition to libmicrohttpd's data: the exchange on each, since when a
 * request is awaited, and whether the client has gone while nothing was read or written.
 *
 * When nearly all places are taken, a new connection closes one on which nothing is being answered: the
 * oldest without a request head for a second, else the one idle longest since its last answer, else the
 * oldest whose body is a second late. If a quarter of all places is in one of these states, that is a flood,
 * and its oldest goes first, however young. So idle clients close each other's connections, and one that
 * sends a request at once is served. */

#include <stdbool.h>
#include <stdint.h>

#include "gateway/http/addresses.h"
#include "gateway/core/counters.h"
#include "gateway/http/exchange.h"

/* What is awaited on a connection. */
enum connection_awaits { CONNECTION_FIRST_HEAD, CONNECTION_NEXT_HEAD, CONNECTION_BODY, CONNECTION_AWAITS };

struct connection {
    struct connections *connections;
    struct connection *next, *prev; /* utlist: all */
    enum connection_awaits awaits;  /* the queue it is in */
    struct connection *queue_next, *queue_prev;
    bool queued;
    uint64_t awaits_ns;        /* it is in its queue since then */
    int fd;                    /* libmicrohttpd's */
    uint64_t since_ns;         /* a request is awaited since then; 0: one is being answered */
    bool used;                 /* a request was answered on it */
    uint64_t bytes_used;       /* received up to the end of the last one; with TLS, of its records */
    struct exchange *exchange; /* NULL: between two */
    struct address *address;   /* where it is counted; NULL: nowhere */
    const char *target_fault;  /* of the request that comes (framing.h); NULL: none */
    size_t target_len;
};

struct connections {
    int epoll_fd; /* where they are watched */
    struct connection *list;
    struct connection *queues[CONNECTION_AWAITS]; /* the oldest first */
    unsigned queued[CONNECTION_AWAITS];           /* how many are in each */
    unsigned n, most;                             /* of all */
    struct addresses addresses;
    struct counters *counters; /* the gateway's */
    uint64_t said_ns;          /* when the log had a line about one that had to go */
    uint64_t looked_ns;
    uint64_t retired_ns; /* no others come since then; 0: they do */
};

/* Whether a client may connect, as its address has not enough of them. */
bool connections_admit(struct connections *connections, const struct sockaddr *from);

/* A client connected. NULL when out of memory. */
struct connection *connection_new(struct connections *connections, int fd, const struct sockaddr *from);
void connection_free(struct connections *connections, struct connection *connection);

/* The head of a request has come. */
void connection_asked(struct connection *connection, struct exchange *exchange);

/* Its request is whole: nothing is awaited. */
void connection_whole(struct connection *connection);

/* A request on it has been answered: the next one is awaited. */
void connection_answered(struct connection *connection);

/* The client has shut down the connection, or half of it, and so no longer wants the answer. */
void connection_hung_up(struct connection *connection);

/* Closes those without a complete request for this long. Checks at most once a second, retired ones more
 * often. */
void connections_expire(struct connections *connections, uint64_t now, uint32_t seconds);

/* No more connections come: from now on connections_expire closes idle ones soon, and the rest after their
 * answers. */
void connections_retire(struct connections *connections, uint64_t now);

/* Tells every exchange that its client is gone. */
void connections_lose_all(struct connections *connections);

#endif
