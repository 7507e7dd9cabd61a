/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_SERVER_H
#define GATEWAY_SERVER_H

/* The HTTP server: connections, bodies, timeouts. The gateway's loop runs libmicrohttpd, which has no thread.
 *
 *     server_start(…);
 *     while (…)
 *         fleet_wait(fleet, server_run(server));
 *
 * All descriptors are in one epoll(7), server_watched, which the pools' wait polls too: so there is one loop,
 * one thread, and no lock. */

#include "common/error.h"
#include "gateway/core/gateway.h"

struct server;

/* Listens, or uses the inherited socket; no request is answered before server_run. The gateway must outlive
 * the server. 0 or -errno with a reason that names the address. */
int server_start(struct gateway *gateway, struct server **ret_server, struct error *err);

/* Closes all connections. Takes NULL. */
struct server *server_stop(struct server *server);

/* Where it listens: "127.0.0.1:8080". */
const char *server_address(const struct server *server);

/* An epoll descriptor, readable when server_run has something to do. */
int server_watched(const struct server *server);

/* Reads, handles and sends as much as possible without waiting. Returns the milliseconds after which to call
 * it again at the latest. */
int server_run(struct server *server);

/* Accepts no more connections; existing ones continue. */
void server_refuse_connections(struct server *server);

/* The same, and existing ones end after their current answers: another process listens. */
void server_retire(struct server *server);

/* Whether there are no connections. */
bool server_is_deserted(const struct server *server);

#endif
