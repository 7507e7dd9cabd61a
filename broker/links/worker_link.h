/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LINKS_WORKER_LINK_H
#define BROKER_LINKS_WORKER_LINK_H

/* The worker link: a ROUTER that connects to each worker's process at the address that the supervisor names.
 * Workers connect to nothing. So messages on a connection come from that worker, whatever it claims, and from
 * nobody else.
 *
 * Nothing here waits: what a worker does not take at once stays in its outbox. A worker that cannot be
 * reached is killed. Its death is reported like any other, and only that ends its requests, after the frames
 * that it had still published. */

#include <stdbool.h>

#include "broker/wire/outbox.h"
#include "broker/links/supervisor.h"
#include "broker/choose/worker.h"
#include "common/bytes.h"
#include "proto/message.h"

#define WORKER_LINK_LINGER_MS 500 /* for what was sent last to get out */

struct worker_link {
    void *router;
    struct supervisor *supervisor; /* who has it killed */
    struct worker *workers;        /* [n_workers] */
    uint32_t n_workers;
    uint64_t n_connected;  /* connections so far: each has a name of its own */
    struct buffer scratch; /* the message being encoded */
    bool waiting;          /* something could not be sent at once: worker_link_flush will try */
};

enum { WORKER_LINK_E_LOST = 1 }; /* the worker cannot be reached: it is killed, and gets nothing more */

/* Connects to the worker's process, or disconnects from it. It need not listen yet: a connection comes about
 * as soon as that is possible, and again if it breaks; what is sent meanwhile waits. A disconnected worker
 * has to register again, and messages not yet received are lost. 0 or -errno with the endpoint. */
int worker_link_connect(struct worker_link *link, struct worker *worker, const char *endpoint,
                        struct error *err);
void worker_link_disconnect(struct worker_link *link, struct worker *worker);

/* The worker to whom a connection goes; NULL: it was ended meanwhile. */
struct worker *worker_link_of(struct worker_link *link, const struct peer *peer);

/* Sends at once, whatever is under way; a message that is not brief is under way until worker_link_taken.
 * 0, WORKER_LINK_E_LOST, or -errno when the message cannot be encoded, with the reason in `err`, or in
 * the log when that is NULL. */
int worker_link_send(struct worker_link *link, struct worker *worker, const struct message *message,
                     struct error *err);

/* The worker's pong, with its `ref`: it has taken the message before the ping of that. */
void worker_link_taken(struct worker *worker, uint64_t ref);

/* To a worker that has not registered: dropped if it cannot be sent at once. */
void worker_link_send_stranger(struct worker_link *link, const struct peer *peer,
                               const struct message *message);

/* The worker's request may make so many ids in all: it is told by worker_link_send_credits, every turn. */
void worker_link_credit(struct worker_link *link, struct worker *worker, const struct request_key *key,
                        uint64_t count);
void worker_link_send_credits(struct worker_link *link);

/* Asks the worker to publish again what follows the frames that are here, unless that was done just now. */
void worker_link_ask_resend(struct worker_link *link, struct worker *worker, uint64_t now);

/* Acknowledges the worker's frames up to here, when that is due. */
void worker_link_acknowledge(struct worker_link *link, struct worker *worker, uint64_t now);

/* Sends what waits in the outboxes of all workers. */
void worker_link_flush(struct worker_link *link);

void worker_link_deinit(struct worker_link *link);

#endif
