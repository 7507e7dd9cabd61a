/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_OUTBOX_H
#define BROKER_WIRE_OUTBOX_H

/* Messages to one peer of a ROUTER, sent without ever waiting.
 *
 * Messages that the socket does not take at once wait here, in order and bounded. If the outbox is full or
 * the peer is gone, the caller is told and closes it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zmq.h>

#include "broker/wire/credit.h"

/* A client that is busy for a moment must not lose its session: a queue full of its requests may be accepted,
 * cancelled and ended meanwhile. */
#define OUTBOX_MAX_MESSAGES 32768
#define OUTBOX_MAX_BYTES    ((size_t)8 << 20)

struct peer { /* a routing id, as the ROUTER made it or as the peer chose it */
    uint8_t len;
    uint8_t bytes[255];
};

struct outbox_item;

struct outbox {            /* zeroed: empty */
    struct credit *credit; /* bounds the bytes handed to the socket; NULL: only its high-water mark does */
    struct outbox_item *first;
    size_t n, bytes;
};

enum {
    OUTBOX_E_GONE = 1, /* the peer is not connected */
    OUTBOX_E_FULL,     /* the peer does not read */
};

/* Sends one message of one part, or keeps a copy of it. 0, a code above, or -errno of the socket. */
int outbox_send(struct outbox *outbox, void *router, const struct peer *peer, const void *data, size_t len);

/* Sends as many waiting messages as the socket takes now. Results as outbox_send. */
int outbox_flush(struct outbox *outbox, void *router, const struct peer *peer);

/* Drops waiting messages and the credit: the outbox can then be used for another connection. */
void outbox_deinit(struct outbox *outbox);

/* Sends to a peer without an outbox: a message that is not taken at once is dropped. */
void outbox_try(void *router, const struct peer *peer, const void *data, size_t len);

/* Takes the next message, without waiting: its sender, and its one part. A message with another number of
 * parts is returned as an empty part. False: there is none. */
bool router_receive(void *router, struct peer *ret_peer, zmq_msg_t *part);

#endif
