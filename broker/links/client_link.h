/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LINKS_CLIENT_LINK_H
#define BROKER_LINKS_CLIENT_LINK_H

/* The client link: what is sent to clients on the ROUTER that they are connected to (the frontend). Nothing
 * here waits: what a client does not read stays in its session's outbox, and a client that is gone, or whose
 * outbox is full, has its session doomed. */

#include <stdbool.h>
#include <stddef.h>

#include "broker/wire/outbox.h"
#include "broker/books/request.h"
#include "broker/books/session.h"
#include "common/bytes.h"
#include "proto/message.h"

/* Default bound on what may wait in the outboxes of all clients together. */
#define CLIENT_LINK_UNREAD_BYTES ((size_t)128 << 20)

struct client_link {
    void *router;
    struct sessions *sessions;
    struct credit_total credit; /* what is under way to all clients */
    struct buffer scratch;      /* the message being encoded */
    size_t most_unread;         /* bytes that may wait in all outboxes together */
    bool retry; /* pending sessions may have room: client_link_flush and replay_send_owed will try */
};

void client_link_send(struct client_link *link, struct session *session, const struct message *message);

/* Tells a session the end of its request; nothing while that has not ended. */
void client_link_send_end(struct client_link *link, struct session *session, const struct request *request);

/* Sends what asks for no answer, if nothing else waits: a client whose connection is gone has its session
 * doomed by that. */
void client_link_probe(struct client_link *link, struct session *session);

/* To a peer that has no session: dropped if it cannot be sent at once. */
void client_link_send_stranger(struct client_link *link, const struct peer *peer,
                               const struct message *message);

/* Sends what waits in the outboxes of pending sessions. */
void client_link_flush(struct client_link *link);

/* When too much waits for all clients together, dooms those that hold more than their share. Called
 * periodically. */
void client_link_shed(struct client_link *link);

void client_link_deinit(struct client_link *link);

#endif
