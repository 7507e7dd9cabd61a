/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LINK_LINK_H
#define WORKER_LINK_LINK_H

/* The worker link: the DEALER socket for work between a worker and its broker; frames go on the stream. The
 * broker connects, and later its successor; the worker never connects.
 *
 *     unregistered ──register, register_ok──▶ registered ──its mark is subscribed: ready──▶ ready
 *          ▲                                                                               │
 *          └── hello_required: the broker does not know us; or the stream has no listener ─┘
 *
 * The link maintains this by itself: it registers, reports ready, sends heartbeats and answers pings.
 * Messages about requests go to its owner, which polls for them. The link uses neither requests nor the
 * engine. One thread. */

#include <stdbool.h>
#include <stdint.h>

#include <zmq.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/system/socket_news.h"
#include "proto/message.h"
#include "worker/link/stream.h"

/* A message and the memory that it borrows: its bytes, and the decoder's. */
struct received {
    struct message message;
    struct message_decoder *decoder;
    zmq_msg_t bytes;
};

struct link {
    void *socket;
    struct socket_news news;
    const struct stream *stream; /* its subscribers decide when the worker is ready */
    struct message introduction; /* MESSAGE_REGISTER */
    struct received *received;   /* the last message; NULL: the owner kept it */
    struct buffer scratch;       /* for the message being sent */
    bool alone;                  /* there was no broker to register with */
    bool registered, ready;
    struct error refusal; /* why the pool rejects workers of this model; text "": it does not */
    bool listened;        /* the stream had a listener to everything when the worker became ready */
    struct id128 mark;    /* the subscription that the broker announced */
    uint64_t boot;
    uint64_t heartbeat_ns; /* between heartbeats */
    uint64_t next_register_ns, next_heartbeat_ns;
    uint64_t register_wait_ns; /* until the next registration, if this one is not answered */
    uint64_t heard_ns;         /* when the broker last sent anything but an error */
    uint64_t heartbeats;
};

/* The part of a heartbeat that describes the load. */
struct link_load {
    uint32_t active, waiting, kv_free;
    uint64_t waiting_tokens;
    bool draining;
};

/* Waits for the broker at the listener. `introduction` is the `register` message of the worker; its texts and
 * the stream must outlive the link, which sets `wseq` and `acked` when it sends. 0 or -errno with a reason; a
 * zeroed link, or one that failed to open, may be closed too. */
int link_open(struct link *link, void *zmq, const struct listener *listener, const struct stream *stream,
              const struct message *introduction, struct error *err);
void link_close(struct link *link);

/* The next message for the owner: cancel, credit, ack, assign, tokenize, detokenize, trace, profile, trim,
 * resend or drain; NULL if there is none, or after a bounded number of others. Valid until the next call. */
const struct message *link_receive(struct link *link);

/* Takes ownership of the last message, which is then valid until freed. */
struct received *link_keep(struct link *link);
struct received *received_free(struct received *received); /* takes NULL; returns NULL */

/* Sends a message; if it cannot be encoded or sent, logs that and returns false. While no broker is connected
 * it returns false without a log line: the next broker repeats what it believes the worker to have. */
bool link_send(struct link *link, const struct message *message);

/* Answers the question with this ref with an error. */
static inline void link_refuse(struct link *link, uint64_t ref, enum proto_error error, const char *text)
{
    struct message no = {.kind = MESSAGE_ERROR};
    no.error.ref = ref;
    no.error.error = error;
    no.error.text = bytes_of_string(text);
    link_send(link, &no);
}

/* As link_send, for a message that a request depends on: if it cannot be encoded, or sent to a connected
 * broker, the process exits, and another one takes over its requests. */
void link_must_send(struct link *link, const struct message *message);

/* Whether link_tend has something to do now; and the latest time when it will. */
bool link_is_due(const struct link *link, uint64_t now);
uint64_t link_due_ns(const struct link *link);

/* Makes the next heartbeat due now, because it has news. */
void link_hurry(struct link *link);

/* Registers, reports ready and sends heartbeats when due. True if this made the worker ready. */
bool link_tend(struct link *link, const struct link_load *load, uint64_t now);

#endif
