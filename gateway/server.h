/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_SERVER_H
#define GATEWAY_SERVER_H

/* HTTP: connections, bodies, time. libmicrohttpd without a thread of its own, run by the gateway's loop.
 *
 *     server_start(…);
 *     while (…)
 *         pool_wait(pool, server_run(server));
 *
 * Every descriptor that is waited for lies in one epoll(7), server_watched, which the pool's wait looks at
 * too: so there is one loop, one thread, and no lock. */

#include "common/error.h"
#include "gateway/core/gateway.h"

struct server;

/* Listens, or uses the inherited socket; no request is answered before server_run. The gateway outlives the
 * server. -errno with a reason that names the address. */
int server_start(struct gateway *gateway, struct server **ret_server, struct error *err);

/* Closes all connections. Takes NULL. */
struct server *server_stop(struct server *server);

/* Where it listens: "127.0.0.1:8080". */
const char *server_address(const struct server *server);

/* Readable when server_run has something to do. Others may be added: what they are is in server_run's hands.
 */
int server_watched(const struct server *server);

/* Reads, handles and sends what can be without waiting. Milliseconds after which it wants to run again though
 * nothing has come. */
int server_run(struct server *server);

/* Takes no further connection; those there are go on. */
void server_refuse_connections(struct server *server);

/* The same, and those there are end with what is being answered on them: another process listens. */
void server_retire(struct server *server);

/* Whether there is none. */
bool server_is_deserted(const struct server *server);

#endif
