/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LINKS_WORKER_LINK_H
#define BROKER_LINKS_WORKER_LINK_H

/* The worker link: a ROUTER that connects to each worker's process at the address that the supervisor names.
 * Workers connect to nothing, so all messages on a connection come from that worker, whatever they claim.
 *
 * Nothing here waits: messages that a worker does not take at once stay in its outbox. A worker that cannot
 * be reached is killed. Its death is reported like any other. Its requests move only then, after the last
 * frames that it published. */

#include <stdbool.h>

#include "broker/wire/outbox.h"
#include "broker/links/supervisor.h"
#include "broker/choose/worker.h"
#include "common/bytes.h"
#include "common/system/socket_news.h"
#include "proto/message.h"

#define WORKER_LINK_LINGER_MS 500 /* how long closing waits for the last messages to be sent */

struct worker_link {
    void *router;
    struct socket_news news;       /* of the router */
    struct supervisor *supervisor; /* kills workers on request */
    struct worker *workers;        /* [n_workers] */
    uint32_t n_workers;
    uint64_t n_connected;  /* connections so far: each gets a new name */
    struct buffer scratch; /* the message being encoded */
    bool waiting;          /* something could not be sent at once: worker_link_flush will try */
};

enum {
    WORKER_LINK_E_LOST = 1
}; /* the worker cannot be reached: it is killed, and nothing more is sent to it */

/* Connects to the worker's process, or disconnects from it. It need not listen yet: libzmq connects as soon
 * as it does, and again if the connection breaks; messages sent meanwhile wait. A disconnected worker has to
 * register again, and messages not yet received are lost. 0 or -errno with the endpoint. */
int worker_link_connect(struct worker_link *link, struct worker *worker, const char *endpoint,
                        struct error *err);
void worker_link_disconnect(struct worker_link *link, struct worker *worker);

/* The worker at the other end of a connection; NULL: it has since ended. */
struct worker *worker_link_of(struct worker_link *link, const struct peer *peer);

/* Sends at once, whatever else is in flight; a message that is not brief counts as in flight until
 * worker_link_taken. 0; WORKER_LINK_E_LOST; or -errno if the message cannot be encoded, with the reason in
 * `err`, or in the log if that is NULL. */
int worker_link_send(struct worker_link *link, struct worker *worker, const struct message *message,
                     struct error *err);

/* The worker's pong with this `ref`: it has taken the message before the ping with that ref. */
void worker_link_taken(struct worker *worker, uint64_t ref);

/* Sends to a worker that has not registered; dropped if it cannot be sent at once. */
void worker_link_send_stranger(struct worker_link *link, const struct peer *peer,
                               const struct message *message);

/* Notes that the worker's request may generate `count` ids in all; worker_link_send_credits, called every
 * turn, sends it. */
void worker_link_credit(struct worker_link *link, struct worker *worker, const struct request_key *key,
                        uint64_t count);
void worker_link_send_credits(struct worker_link *link);

/* Asks the worker to republish the frames after the last one received, unless it was asked a moment ago. */
void worker_link_ask_resend(struct worker_link *link, struct worker *worker, uint64_t now);

/* Acknowledges the worker's frames received so far, when that is due. */
void worker_link_acknowledge(struct worker_link *link, struct worker *worker, uint64_t now);

/* Sends waiting messages of all workers. */
void worker_link_flush(struct worker_link *link);

void worker_link_deinit(struct worker_link *link);

#endif
