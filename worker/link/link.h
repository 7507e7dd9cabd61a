/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LINK_LINK_H
#define WORKER_LINK_LINK_H

/* The worker link: the DEALER for work between a worker and its broker; frames go on the stream. The broker
 * connects, and after it the next one; the worker never connects.
 *
 *     unregistered ──register, register_ok──▶ registered ──its mark is subscribed: ready──▶ ready
 *          ▲                                                                               │
 *          └──── hello_required: the broker does not know us; or nobody hears the stream ──┘
 *
 * The link keeps this up by itself: it registers, says ready, sends heartbeats and answers pings. Messages
 * about requests go to its owner, which polls for them. Knows no request and no engine. One thread. */

#include <stdbool.h>
#include <stdint.h>

#include <zmq.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/system/socket_news.h"
#include "proto/message.h"
#include "worker/link/stream.h"

/* A message and what it borrows: its bytes, and the decoder's memory. */
struct received {
    struct message message;
    struct message_decoder *decoder;
    zmq_msg_t bytes;
};

struct link {
    void *socket;
    struct socket_news news;
    const struct stream *stream; /* whose subscribers decide when the worker is ready */
    struct message introduction; /* MESSAGE_REGISTER */
    struct received *received;   /* the message that came last; NULL: it was kept */
    struct buffer scratch;       /* of the message being sent */

    bool alone; /* there was no broker to register with */
    bool registered, ready;
    struct error refusal; /* why the pool rejects workers of this model; text "": it does not */
    bool listened;        /* somebody heard everything when it became ready */
    struct id128 mark;    /* the subscription that the broker said it makes */
    uint64_t boot;
    uint64_t heartbeat_ns; /* between heartbeats */
    uint64_t next_register_ns, next_heartbeat_ns;
    uint64_t register_wait_ns; /* until the next registration, if this one is not answered */
    uint64_t heard_ns;         /* when the broker last said something kind */
    uint64_t heartbeats;
};

/* What a heartbeat says of the work in hand. */
struct link_load {
    uint32_t active, waiting, kv_free;
    uint64_t waiting_tokens;
    bool draining;
};

/* Waits there for the broker. `introduction` is the `register` message of the worker; its texts and the
 * stream outlive the link, which sets `wseq` and `acked` when it sends. 0 or -errno with a reason; close a
 * link of zeroes, or one that failed to open, too. */
int link_open(struct link *link, void *zmq, const struct listener *listener, const struct stream *stream,
              const struct message *introduction, struct error *err);
void link_close(struct link *link);

/* The next message for the owner: cancel, credit, ack, assign, tokenize, detokenize, trace, profile, trim,
 * resend or drain; NULL if there is none, or after a bounded number of others. Valid until the next call. */
const struct message *link_receive(struct link *link);

/* Takes the message received last, which is then valid until freed. */
struct received *link_keep(struct link *link);
struct received *received_free(struct received *received); /* takes NULL; returns NULL */

/* Sends a message; if it cannot be encoded or sent, logs that and returns false. While no broker is
 * connected it returns false silently: the next one repeats what it believes the worker to have. */
bool link_send(struct link *link, const struct message *message);

/* Answers the question of this ref with an error. */
static inline void link_refuse(struct link *link, uint64_t ref, enum proto_error error, const char *text)
{
    struct message no = {.kind = MESSAGE_ERROR};
    no.error.ref = ref;
    no.error.error = error;
    no.error.text = bytes_of_string(text);
    link_send(link, &no);
}

/* As link_send, for a message that a request depends on: if it cannot be encoded, or sent to a connected
 * broker, the process ends, and another takes over its requests. */
void link_must_send(struct link *link, const struct message *message);

/* Whether link_tend has something to do; and when it will at the latest. */
bool link_is_due(const struct link *link, uint64_t now);
uint64_t link_due_ns(const struct link *link);

/* The next heartbeat is due now: there is news in it. */
void link_hurry(struct link *link);

/* Registers, reports ready and sends heartbeats when due. True if this made the worker ready. */
bool link_tend(struct link *link, const struct link_load *load, uint64_t now);

#endif
