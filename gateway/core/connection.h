/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_CONNECTION_H
#define GATEWAY_CORE_CONNECTION_H

/* The connections of clients, in addition to libmicrohttpd's data: the exchange on each, how long it has been
 * waiting for a request, and whether the client has left while nothing was read or written.
 *
 * When nearly all places are taken, a new connection closes one without a request in progress: the oldest
 * that has sent no request head for a second, else the one idle longest since its last answer, else the
 * oldest whose body is a second late. If a quarter of all places is in one of these states, that is a flood,
 * and the oldest connection in that state is closed first, however young. So idle clients displace each
 * other, and a client that sends a request at once is served. */

#include <stdbool.h>
#include <stdint.h>

#include "gateway/http/addresses.h"
#include "gateway/core/counters.h"
#include "gateway/http/exchange.h"

/* What the gateway waits for on a connection. */
enum connection_awaits { CONNECTION_FIRST_HEAD, CONNECTION_NEXT_HEAD, CONNECTION_BODY, CONNECTION_AWAITS };

struct connection {
    struct connections *connections;
    struct connection *next, *prev; /* utlist: all */
    enum connection_awaits awaits;  /* the queue it is in */
    struct connection *queue_next, *queue_prev;
    bool queued;
    uint64_t awaits_ns;  /* when it entered its queue */
    int fd;              /* libmicrohttpd's */
    uint64_t since_ns;   /* when it began to wait for a request; 0: one is being answered */
    bool used;           /* a request was answered on it */
    uint64_t bytes_used; /* received up to the end of the last request; with TLS, bytes of its records */
    struct exchange *exchange; /* NULL: between two exchanges */
    struct address *address;   /* under which it is counted; NULL: none */
    const char *target_fault;  /* of the current request (framing.h); NULL: none */
    size_t target_len;
};

struct connections {
    int epoll_fd; /* watches all of them */
    struct connection *list;
    struct connection *queues[CONNECTION_AWAITS]; /* the oldest first */
    unsigned queued[CONNECTION_AWAITS];           /* how many are in each */
    unsigned n, most;                             /* of all */
    struct addresses addresses;
    struct counters *counters; /* the gateway's */
    uint64_t said_ns;          /* when closing one to make room was last logged */
    uint64_t looked_ns;
    uint64_t retired_ns; /* when the gateway stopped accepting; 0: it accepts */
};

/* Whether a client may connect: false if its address has too many connections. */
bool connections_admit(struct connections *connections, const struct sockaddr *from);

/* A client connected. NULL: out of memory. */
struct connection *connection_new(struct connections *connections, int fd, const struct sockaddr *from);
void connection_free(struct connections *connections, struct connection *connection);

/* The head of a request has arrived. */
void connection_asked(struct connection *connection, struct exchange *exchange);

/* The request is complete: the connection waits for nothing. */
void connection_whole(struct connection *connection);

/* A request was answered: the connection waits for the next one. */
void connection_answered(struct connection *connection);

/* The client has shut down the connection, at least for writing, so it no longer wants the answer. */
void connection_hung_up(struct connection *connection);

/* Closes connections without a complete request for this long. Checks at most once a second, but more often
 * if retired. */
void connections_expire(struct connections *connections, uint64_t now, uint32_t seconds);

/* The gateway accepts no more connections: from now on connections_expire closes idle ones soon, and the rest
 * after their answers. */
void connections_retire(struct connections *connections, uint64_t now);

/* Tells every exchange that its client is gone. */
void connections_lose_all(struct connections *connections);

#endif
