/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_CREDIT_H
#define BROKER_WIRE_CREDIT_H

/* Credit bounds the bytes in flight to a client, whether it reads or not.
 *
 * Messages handed to libzmq stay in our memory until the kernel takes them, which never happens for a client
 * that does not read. libzmq limits only their number, whether they have 20 bytes or 3 MB; here their bytes
 * are counted too, for each connection and in total, until libzmq frees them. A descriptor becomes readable
 * when a refused sender may try again. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <zmq.h>

#include "common/error.h"

/* In flight to one client before the next message waits. A message of any size may start below these bounds,
 * so a client that reads nothing holds at most CREDIT_BYTES and one message. */
#define CREDIT_MESSAGES 64
#define CREDIT_BYTES    ((size_t)128 << 10)

/* When this much is in flight to all clients together, each may have only a few messages and bytes. A client
 * that reads has fewer. */
#define CREDIT_TOTAL_BYTES  ((size_t)64 << 20)
#define CREDIT_FEW_MESSAGES 4
#define CREDIT_FEW_BYTES    ((size_t)4 << 10)

struct credit_total {    /* of all clients */
    atomic_size_t bytes; /* in flight */
    size_t waiting;      /* bytes that wait for room; only the loop's thread uses it */
    int wake_fd;         /* readable when there may be room for a refused client */
};

/* 0 or -errno. The total must outlive all its credits, and the sockets that their messages were given to. */
int credit_total_init(struct credit_total *total, struct error *err);
void credit_total_deinit(struct credit_total *total);

/* Clears wake_fd; true if it was readable. */
bool credit_total_woken(const struct credit_total *total);

struct credit; /* of one connection */

/* NULL: out of memory. */
struct credit *credit_new(struct credit_total *total);

/* Takes NULL and returns NULL. Messages in flight still count in the total. */
struct credit *credit_free(struct credit *credit);

/* Whether a message may be handed over now; if not, wake_fd becomes readable once it may. */
bool credit_ask(struct credit *credit);

/* Counts bytes that start to wait for room, or that no longer wait. */
void credit_wait(struct credit *credit, size_t len);
void credit_wait_no_more(struct credit *credit, size_t len);

/* Makes a message from a copy of the bytes, counted until libzmq frees it. 0 or -ENOMEM. */
int credit_message(struct credit *credit, const void *data, size_t len, zmq_msg_t *ret_message);

#endif
