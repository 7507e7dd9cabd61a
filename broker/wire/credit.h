/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_CREDIT_H
#define BROKER_WIRE_CREDIT_H

/* Credit bounds the bytes under way to a client, whether it reads or not.
 *
 * What is handed to libzmq stays in our memory until the kernel takes it, which is never for a client that
 * does not read. libzmq counts messages only by number, whether 20 bytes or 3 MB; here their bytes are
 * counted too, for each connection and in total, from the hand-over until libzmq frees them. A descriptor
 * tells a refused sender when there is room again. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <zmq.h>

#include "common/error.h"

/* Under way to one client before the next message waits. That may be the largest there is, so a client that
 * reads nothing holds CREDIT_BYTES and one message. */
#define CREDIT_MESSAGES 64
#define CREDIT_BYTES    ((size_t)128 << 10)

/* Under way to all clients before each may have no more than a few. A client that reads has fewer under
 * way. */
#define CREDIT_TOTAL_BYTES  ((size_t)64 << 20)
#define CREDIT_FEW_MESSAGES 4
#define CREDIT_FEW_BYTES    ((size_t)4 << 10)

struct credit_total {    /* of all clients */
    atomic_size_t bytes; /* under way */
    size_t waiting;      /* bytes that wait for room; of the loop's thread alone */
    int wake_fd;         /* readable when there may be room for a refused client */
};

/* -errno. The total outlives all its credits, and the sockets that their messages were given to. */
int credit_total_init(struct credit_total *total, struct error *err);
void credit_total_deinit(struct credit_total *total);

/* Takes what made the descriptor readable; true when it was. */
bool credit_total_woken(const struct credit_total *total);

struct credit; /* of one connection */

/* NULL when out of memory. */
struct credit *credit_new(struct credit_total *total);

/* Takes NULL. What is under way goes on being counted in the total. Returns NULL. */
struct credit *credit_free(struct credit *credit);

/* Whether a message may be handed over; if not, wake_fd will tell. */
bool credit_ask(struct credit *credit);

/* Counts bytes that begin or cease to wait for room. */
void credit_wait(struct credit *credit, size_t len);
void credit_wait_no_more(struct credit *credit, size_t len);

/* Makes a message of a copy of the bytes, counted until libzmq frees it. 0 or -ENOMEM. */
int credit_message(struct credit *credit, const void *data, size_t len, zmq_msg_t *ret_message);

#endif
