/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LINK_WINDOW_H
#define WORKER_LINK_WINDOW_H

/* The frames that a worker has published and that the broker has not acknowledged, kept for a resend.
 *
 * Each has a number, `wseq`, counting from 1. Acknowledged frames are dropped; the owner produces no more
 * while WINDOW_MOST frames are kept (window_is_full). It uses no sockets. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "proto/message.h"

#define WINDOW_MOST 32768

struct window_entry;

struct window {
    struct buffer bytes;          /* topic and payload of each kept frame, one after the other */
    size_t gone;                  /* bytes at the front that are acknowledged */
    struct window_entry *entries; /* ring of `cap`, a power of two; wseq is at wseq mod cap */
    uint64_t cap;
    uint64_t acked, last; /* wseq: acked + 1 … last are kept */
};

/* A zeroed window is empty and ready. */
void window_deinit(struct window *window);

/* Gives the frame (kind MESSAGE_FRAME) its wseq, encodes it and keeps it under `topic`. 0; -ENOMEM or -EINVAL
 * from message_encode, with the window unchanged. */
int window_add(struct window *window, const uint8_t topic[PROTO_TOPIC_BYTES], struct message *frame);

/* The topic and payload of a kept frame, valid until the next add or ack. False if it is not kept. */
bool window_get(const struct window *window, uint64_t wseq, struct bytes *ret_topic,
                struct bytes *ret_payload);

/* Drops frames up to and including wseq. Ignores numbers that were acknowledged before, and future ones. */
void window_ack(struct window *window, uint64_t wseq);

static inline uint64_t window_kept(const struct window *window)
{
    return window->last - window->acked;
}

static inline bool window_is_full(const struct window *window)
{
    return window_kept(window) >= WINDOW_MOST;
}

#endif
