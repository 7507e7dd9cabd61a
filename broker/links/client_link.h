/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LINKS_CLIENT_LINK_H
#define BROKER_LINKS_CLIENT_LINK_H

/* The client link: output to clients on the ROUTER that they connect to (the frontend). Nothing here waits:
 * messages that a client does not read stay in its session's outbox. If a client is gone or its outbox is
 * full, its session is doomed. */

#include <stdbool.h>
#include <stddef.h>

#include "broker/wire/outbox.h"
#include "broker/books/request.h"
#include "broker/books/session.h"
#include "common/bytes.h"
#include "common/system/socket_news.h"
#include "proto/message.h"

/* Default bound on what may wait in the outboxes of all clients together. */
#define CLIENT_LINK_UNREAD_BYTES ((size_t)128 << 20)

struct client_link {
    void *router;
    struct socket_news news; /* of the router */
    struct sessions *sessions;
    struct credit_total credit; /* for all bytes in flight to clients */
    struct buffer scratch;      /* the message being encoded */
    size_t most_unread;         /* bytes that may wait in all outboxes together */
    bool retry; /* pending sessions may have room: client_link_flush and replay_send_owed will try */
};

void client_link_send(struct client_link *link, struct session *session, const struct message *message);

/* Sends the end of a request to its session; does nothing for an unfinished one. */
void client_link_send_end(struct client_link *link, struct session *session, const struct request *request);

/* Sends a message that needs no answer, if nothing else waits: if the client's connection is gone, this dooms
 * its session. */
void client_link_probe(struct client_link *link, struct session *session);

/* Sends to a peer without a session; dropped if it cannot be sent at once. */
void client_link_send_stranger(struct client_link *link, const struct peer *peer,
                               const struct message *message);

/* Sends waiting messages of pending sessions. */
void client_link_flush(struct client_link *link);

/* If too much waits for all clients together, dooms the sessions that hold more than their share. Call it
 * periodically. */
void client_link_shed(struct client_link *link);

void client_link_deinit(struct client_link *link);

#endif
