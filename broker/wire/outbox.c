/* SPDX-License-Identifier: MIT */
/* The bounded outbox of a ROUTER's peer.
 *
 * The socket has ROUTER_MANDATORY set and every send is DONTWAIT, so the part with the routing id says at
 * once what is the matter: EHOSTUNREACH (gone), EAGAIN (its pipe is full), or all is well, and then the part
 * that follows is never refused. Order is kept: while anything waits, later messages wait behind it. */

#include "broker/wire/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "broker/wire/intake.h"

struct outbox_item {
    struct outbox_item *prev, *next;
    size_t len;
    uint8_t data[];
};

/* A part that waits for its routing id: nothing is sent of it unless that is. */
static int send_counted(struct credit *credit, void *router, const struct peer *peer, const void *data,
                        size_t len)
{
    zmq_msg_t message;
    int r = credit_message(credit, data, len, &message);
    if (r < 0)
        return r;
    if (zmq_send(router, peer->bytes, peer->len, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
        zmq_msg_send(&message, router, ZMQ_DONTWAIT) < 0) {
        r = -errno;
        zmq_msg_close(&message);
    }
    return r;
}

static int router_send(void *router, const struct peer *peer, const void *data, size_t len)
{
    if (zmq_send(router, peer->bytes, peer->len, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        return -errno;
    return zmq_send(router, data, len, ZMQ_DONTWAIT) < 0 ? -errno : 0;
}

static int push(struct outbox *outbox, const void *data, size_t len)
{
    if (outbox->n >= OUTBOX_MAX_MESSAGES || outbox->bytes + len > OUTBOX_MAX_BYTES)
        return OUTBOX_E_FULL;
    struct outbox_item *item = malloc(sizeof *item + len);
    if (!item)
        return -ENOMEM;
    item->len = len;
    memcpy(item->data, data, len);
    DL_APPEND(outbox->first, item);
    outbox->n++;
    outbox->bytes += len;
    if (outbox->credit)
        credit_wait(outbox->credit, len);
    return 0;
}

static void pop(struct outbox *outbox)
{
    struct outbox_item *item = outbox->first;
    DL_DELETE(outbox->first, item);
    outbox->n--;
    outbox->bytes -= item->len;
    if (outbox->credit)
        credit_wait_no_more(outbox->credit, item->len);
    free(item);
}

/* -EAGAIN when it has to wait. */
static int send_now(struct outbox *outbox, void *router, const struct peer *peer, const void *data,
                    size_t len)
{
    if (!outbox->credit)
        return router_send(router, peer, data, len);
    return credit_ask(outbox->credit) ? send_counted(outbox->credit, router, peer, data, len) : -EAGAIN;
}

int outbox_send(struct outbox *outbox, void *router, const struct peer *peer, const void *data, size_t len)
{
    int r = outbox->first ? -EAGAIN : send_now(outbox, router, peer, data, len);
    if (r == -EAGAIN)
        return push(outbox, data, len);
    return r == -EHOSTUNREACH ? OUTBOX_E_GONE : r;
}

int outbox_flush(struct outbox *outbox, void *router, const struct peer *peer)
{
    while (outbox->first) {
        int r = send_now(outbox, router, peer, outbox->first->data, outbox->first->len);
        if (r == -EAGAIN)
            return 0;
        if (r < 0)
            return r == -EHOSTUNREACH ? OUTBOX_E_GONE : r;
        pop(outbox);
    }
    return 0;
}

void outbox_deinit(struct outbox *outbox)
{
    while (outbox->first)
        pop(outbox);
    outbox->credit = credit_free(outbox->credit);
}

void outbox_try(void *router, const struct peer *peer, const void *data, size_t len)
{
    (void)router_send(router, peer, data, len);
}

bool router_receive(void *router, struct peer *ret_peer, zmq_msg_t *part)
{
    if (zmq_msg_recv(part, router, ZMQ_DONTWAIT) < 0)
        return false;
    struct peer peer = {.len = (uint8_t)zmq_msg_size(part)}; /* the socket bounds routing ids to 255 bytes */
    memcpy(peer.bytes, zmq_msg_data(part), peer.len);
    int parts = 0;
    while (zmq_msg_more(part) && zmq_msg_recv(part, router, ZMQ_DONTWAIT) >= 0) {
        intake_taken(zmq_msg_get(part, ZMQ_SRCFD), zmq_msg_size(part));
        parts++;
    }
    if (parts != 1) {
        zmq_msg_close(part);
        zmq_msg_init(part);
    }
    *ret_peer = peer;
    return true;
}
